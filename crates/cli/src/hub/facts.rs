//! The log of a session as the journal has it: every event, none of it as ACP.

use super::{Conn, Heard, is_answer, result_of};
use crate::{exit::Exit, report::Failure};
use serde_json::{Value, json};

/// Hands every event up to now to `each`, in order, as `{"seq":7,"at":…,"is":…,…}`.
pub(crate) fn facts(
    conn: &mut Conn,
    session: &str,
    each: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let params = json!({ "sessionId": session, "after": 0, "observe": true, "facts": true });
    let id = conn.ask("_jackfield/attach", &params)?;
    let address = format!(r#"{{"sessionId":{},"#, Value::from(session));
    let mut next = 1;
    loop {
        let frame = match conn.next(None)? {
            Heard::Frame(frame) => frame,
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: "the session's log".into() });
            }
            _ => continue,
        };
        if is_answer(&frame, id) {
            let head = result_of(&frame)?["head"].as_u64().unwrap_or(0);
            // What is nested deeper than a message may be is left out by the reader.
            return if next == head + 1 { Ok(()) } else { Err(missing(session, next)) };
        }
        if frame.method().as_deref() != Some("_jackfield/event") {
            continue;
        }
        let Some(rest) = frame.params().and_then(|it| it.strip_prefix(&address)) else { continue };
        if !rest.starts_with(&format!(r#""seq":{next},"#)) {
            return Err(missing(session, next));
        }
        each(&format!("{{{rest}"))?;
        next += 1;
    }
}

fn missing(session: &str, seq: u64) -> Failure {
    Failure::Local {
        what: "the session's log cannot be read".into(),
        source: format!("event {seq} of {session} did not come").into(),
        exit: Exit::Failed,
        hint: "the daemon's log says more; `jackfield doctor` looks at the journal".into(),
    }
}
