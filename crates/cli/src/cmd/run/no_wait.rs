//! `run --no-wait`: submits the prompt and does not wait for the response.

use super::{RunCommand, target::TargetSession};
use crate::{
    context::CommandContext,
    hub::{CommandConnection, ConnectionEvent, SessionRow},
    out::{ConversationFormat, print_json_document},
    report::CommandError,
};
use jackfield_events::EventKind;
use jackfield_hub_client::{parse_event, parse_session_list};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

impl RunCommand {
    /// Sends the prompt and prints the session's id as soon as the hub has accepted the prompt.
    pub(super) fn submit_prompt(
        &self,
        conn: &mut CommandConnection,
        target: &TargetSession,
        prompt: &Value,
        context: &CommandContext,
    ) -> Result<(), CommandError> {
        let is_queued = |rows: &[SessionRow]| {
            rows.iter().any(|it| it.session_id == target.session && 0 < it.queued)
        };
        let id = conn.send_request(Method::SessionPrompt, prompt)?;
        let list_id = conn.send_request(Method::ControlSessions, &json!({}))?;
        loop {
            match conn.next_event(None)? {
                ConnectionEvent::Response(response) if response.id == id => {
                    response.into_result()?;
                    break;
                }
                // A prompt that is queued behind another turn causes no notification.
                ConnectionEvent::Response(response) if response.id == list_id => {
                    if is_queued(&parse_session_list(response.into_result()?)) {
                        break;
                    }
                }
                ConnectionEvent::Frame(frame) if frame.is_method(Method::ControlTurn) => {
                    let kind = parse_event(&frame).map(|it| it.body.kind());
                    if kind == Some(EventKind::Prompted) {
                        break;
                    }
                }
                ConnectionEvent::Interrupt => {
                    let waited_for = "the daemon to accept the prompt".to_owned();
                    return Err(CommandError::Interrupted { waited_for });
                }
                ConnectionEvent::Closed => {
                    let waited_for = "the daemon to accept the prompt".to_owned();
                    return Err(CommandError::ConnectionClosed { waited_for });
                }
                ConnectionEvent::Frame(_)
                | ConnectionEvent::Response(_)
                | ConnectionEvent::LogEvent(_)
                | ConnectionEvent::StdinLine(_)
                | ConnectionEvent::StdinClosed
                | ConnectionEvent::TimedOut => {}
            }
        }
        match self.format {
            ConversationFormat::Text | ConversationFormat::Quiet => {
                context.output.print_line(&target.session)
            }
            ConversationFormat::Json
            | ConversationFormat::Events
            | ConversationFormat::Envelopes
            | ConversationFormat::ExtendedEnvelopes => {
                print_json_document(&context.output, &json!({ "sessionId": target.session }))
            }
        }
    }
}
