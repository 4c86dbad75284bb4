//! Reads the log of a session as events, as the journal stores them.

use super::{ConnectionEvent, HubConnection, is_response_to, parse_response};
use crate::{exit::CliExitCode, out::format_count, report::CommandError};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Passes every event up to now to `on_event`, in order, as `{"seq":7,"at":…,"is":…,…}`.
pub(crate) fn read_log(
    conn: &mut HubConnection,
    session: &str,
    on_event: &mut dyn FnMut(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    read_log_range(conn, session, LogRange::default(), on_event)
}

/// The part of a log to read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogRange {
    /// The sequence number of the event after which to start.
    pub(crate) after: u64,
    /// Also read new events, until the daemon exits.
    pub(crate) follow: bool,
    /// Continue after damaged events; each is passed as `{"seq":7,"is":"missing","why":…}`.
    pub(crate) skip_damaged: bool,
}

pub(crate) fn read_log_range(
    conn: &mut HubConnection,
    session: &str,
    range: LogRange,
    on_event: &mut dyn FnMut(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let after = range.after;
    let mut params =
        json!({ "sessionId": session, "after": after, "observe": true, "facts": true });
    if range.skip_damaged {
        params["skipDamaged"] = json!(true);
    }
    let id = conn.send_request(Method::ControlAttach.name(), &params)?;
    let prefix = format!(r#"{{"sessionId":{},"#, Value::from(session));
    let (mut next, mut waited_for) = (None, "the session's log");
    loop {
        let frame = match conn.next_event(None)? {
            ConnectionEvent::Frame(frame) => frame,
            ConnectionEvent::Closed => {
                return Err(CommandError::ConnectionClosed { waited_for: waited_for.into() });
            }
            _ => continue,
        };
        if is_response_to(&frame, id) {
            let result = parse_response(&frame)?;
            warn_if_incomplete(conn, session, &result);
            let head = result["head"].as_u64().unwrap_or(0);
            let next = next.unwrap_or(after.saturating_add(1));
            // The frame reader drops events that are nested too deeply.
            if next <= head {
                return Err(missing_event(session, next));
            }
            if !range.follow {
                return Ok(());
            }
            waited_for = "new events";
            continue;
        }
        if !frame.is_method(Method::ControlEvent) {
            continue;
        }
        let Some(rest) = frame.params().and_then(|it| it.strip_prefix(&prefix)) else { continue };
        let Some(seq) = parse_seq(rest) else { continue };
        // A start position after the end of the log means the end.
        let expected = next.unwrap_or(seq.min(after.saturating_add(1)));
        if seq != expected {
            return Err(missing_event(session, expected));
        }
        on_event(&format!("{{{rest}"))?;
        next = Some(seq + 1);
    }
}

/// Prints the warnings in the response to an attach: the last events are not written yet, or the log comes from the
/// journal because no host runs the session.
pub(crate) fn warn_if_incomplete(conn: &HubConnection, session: &str, response: &Value) {
    if let Some(unwritten) = response["unwritten"].as_u64() {
        let events = format_count(usize::try_from(unwritten).unwrap_or(usize::MAX), "event");
        conn.print_warning(&format!("{events} of {session} not written to the journal yet"));
    }
    if let Some(why) = response["away"].as_str() {
        conn.print_warning(&format!("this log of {session} comes from the journal: {why}"));
    }
}

/// The sequence number at the start of an event.
fn parse_seq(event: &str) -> Option<u64> {
    event.strip_prefix(r#""seq":"#)?.split(',').next()?.parse().ok()
}

fn missing_event(session: &str, seq: u64) -> CommandError {
    CommandError::Local {
        what: format!("cannot read the log of {session}"),
        source: format!("event {seq} of {session} is missing").into(),
        exit: CliExitCode::Failed,
        hint: "see the daemon's log, or check the journal with `jackfield doctor`".into(),
    }
}
