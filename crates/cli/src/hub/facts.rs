//! The log of a session as the journal has it: every event, none of it as ACP.

use super::{Conn, Heard, is_answer, result_of};
use crate::{exit::Exit, report::Failure};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Hands every event up to now to `each`, in order, as `{"seq":7,"at":…,"is":…,…}`.
pub(crate) fn facts(
    conn: &mut Conn,
    session: &str,
    each: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    facts_of(conn, session, Part::default(), each)
}

/// How much of a log to read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    pub(crate) after: u64,
    /// Also what comes from now on, until the daemon ends.
    pub(crate) follow: bool,
    /// Go on behind events that are damaged; each comes as `{"seq":7,"is":"missing","why":…}`.
    pub(crate) skip_damaged: bool,
}

pub(crate) fn facts_of(
    conn: &mut Conn,
    session: &str,
    part: Part,
    each: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let after = part.after;
    let mut params =
        json!({ "sessionId": session, "after": after, "observe": true, "facts": true });
    if part.skip_damaged {
        params["skipDamaged"] = json!(true);
    }
    let id = conn.ask(Method::ControlAttach.name(), &params)?;
    let address = format!(r#"{{"sessionId":{},"#, Value::from(session));
    let (mut next, mut waited_for) = (None, "the session's log");
    loop {
        let frame = match conn.next(None)? {
            Heard::Frame(frame) => frame,
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: waited_for.into() });
            }
            _ => continue,
        };
        if is_answer(&frame, id) {
            let result = result_of(&frame)?;
            warn_if_incomplete(conn, session, &result);
            let head = result["head"].as_u64().unwrap_or(0);
            let next = next.unwrap_or(after.saturating_add(1));
            // What is nested deeper than a message may be is left out by the reader.
            if next <= head {
                return Err(missing(session, next));
            }
            if !part.follow {
                return Ok(());
            }
            waited_for = "what is said next";
            continue;
        }
        if !frame.is_method(Method::ControlEvent) {
            continue;
        }
        let Some(rest) = frame.params().and_then(|it| it.strip_prefix(&address)) else { continue };
        let Some(seq) = seq_of(rest) else { continue };
        // Who wants to begin behind the end begins at the end.
        let expected = next.unwrap_or(seq.min(after.saturating_add(1)));
        if seq != expected {
            return Err(missing(session, expected));
        }
        each(&format!("{{{rest}"))?;
        next = Some(seq + 1);
    }
}

/// Says what the answer to an attach tells of the log: its last events are not written yet, or it comes from the
/// journal because no host has the session.
pub(crate) fn warn_if_incomplete(conn: &Conn, session: &str, answer: &Value) {
    if let Some(unwritten) = answer["unwritten"].as_u64() {
        conn.warn(&format!("the last events of {session} are not written yet: {unwritten}"));
    }
    if let Some(why) = answer["away"].as_str() {
        conn.warn(&format!("this is the log of {session} as the journal has it: {why}"));
    }
}

/// The number that an event begins with.
fn seq_of(event: &str) -> Option<u64> {
    event.strip_prefix(r#""seq":"#)?.split(',').next()?.parse().ok()
}

fn missing(session: &str, seq: u64) -> Failure {
    Failure::Local {
        what: "the session's log cannot be read".into(),
        source: format!("event {seq} of {session} did not come").into(),
        exit: Exit::Failed,
        hint: "the daemon's log says more; `jackfield doctor` looks at the journal".into(),
    }
}
