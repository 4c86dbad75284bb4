//! Reads the log of a session as events, as the journal stores them.

use super::{CommandConnection, ConnectionEvent};
use crate::{exit::CliExitCode, plain_text::format_count, report::CommandError};
use jackfield_hub_client::{HubClientError, SessionReplay, attach_params};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};

/// Passes every event up to now to `on_event`, in order, as `{"seq":7,"at":…,"is":…,…}`.
pub(crate) fn read_log(
    conn: &mut CommandConnection,
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
    conn: &mut CommandConnection,
    session: &str,
    range: LogRange,
    on_event: &mut dyn FnMut(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut params = attach_params(session, range.after);
    if range.skip_damaged {
        params["skipDamaged"] = json!(true);
    }
    let id = conn.send_request(Method::ControlAttach, &params)?;
    let mut replay = SessionReplay::new(session, range.after, id);
    let failed = |error| log_error(session, error);
    let mut waited_for = "the session's log";
    loop {
        match conn.next_event(None)? {
            ConnectionEvent::LogEvent(event) => {
                if let Some(event) = replay.on_event(event).map_err(failed)? {
                    on_event(&event.to_journal_text())?;
                }
            }
            ConnectionEvent::Response(response) => {
                let Some(result) = replay.on_response(response).map_err(failed)? else { continue };
                warn_if_incomplete(conn, session, &result);
                if !range.follow {
                    return Ok(());
                }
                waited_for = "new events";
            }
            ConnectionEvent::Closed => {
                return Err(CommandError::ConnectionClosed { waited_for: waited_for.into() });
            }
            _ => {}
        }
    }
}

/// Attaches as an observer, who receives no requests, and passes every notification up to now to `on_frame`.
pub(crate) fn read_notifications(
    conn: &mut CommandConnection,
    session: &str,
    after: u64,
    waited_for: &str,
    on_frame: &mut dyn FnMut(&Frame),
) -> Result<(), CommandError> {
    let params = json!({ "sessionId": session, "after": after, "observe": true });
    let id = conn.send_request(Method::ControlAttach, &params)?;
    loop {
        match conn.next_event(None)? {
            ConnectionEvent::Frame(frame) => on_frame(&frame),
            ConnectionEvent::Response(response) if response.id == id => {
                return Ok(response.into_result().map(drop)?);
            }
            ConnectionEvent::Closed => {
                return Err(CommandError::ConnectionClosed { waited_for: waited_for.into() });
            }
            _ => {}
        }
    }
}

/// Prints the warnings in the response to an attach: the last events are not written yet, or the log comes from the
/// journal because no host runs the session.
pub(crate) fn warn_if_incomplete(conn: &CommandConnection, session: &str, response: &Value) {
    if let Some(unwritten) = response["unwritten"].as_u64() {
        let events = format_count(usize::try_from(unwritten).unwrap_or(usize::MAX), "event");
        conn.print_warning(&format!("{events} of {session} not written to the journal yet"));
    }
    if let Some(why) = response["away"].as_str() {
        conn.print_warning(&format!("this log of {session} comes from the journal: {why}"));
    }
}

fn log_error(session: &str, error: HubClientError) -> CommandError {
    match error {
        HubClientError::Refused(response) => response.into(),
        error => CommandError::Local {
            what: format!("cannot read the log of {session}"),
            source: error.into(),
            exit: CliExitCode::Failed,
            hint: "see the daemon's log, or check the journal with `jackfield doctor`".into(),
        },
    }
}
