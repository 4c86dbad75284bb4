//! `--no-wait`: the prompt is on its way, and nobody stays for the answer.

use super::{Run, goal::Goal};
use crate::{
    app::Desk,
    hub::{Conn, Heard, Row, event_of, is_answer, result_of},
    out::{Telling, document},
    report::Failure,
};
use jackfield_events::EventKind;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

impl Run {
    /// Says where the prompt went, as soon as the hub has it.
    pub(super) fn leave(
        &self,
        conn: &mut Conn,
        goal: &Goal,
        prompt: &Value,
        desk: &Desk,
    ) -> Result<(), Failure> {
        let taken =
            |rows: &[Row]| rows.iter().any(|it| it.session_id == goal.session && 0 < it.queued);
        let id = conn.ask(Method::SessionPrompt.name(), prompt)?;
        let listing = conn.ask(Method::ControlSessions.name(), &json!({}))?;
        loop {
            match conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, id) => {
                    result_of(&frame)?;
                    break;
                }
                // Behind another turn it is only queued, and no notice comes.
                Heard::Frame(frame) if is_answer(&frame, listing) => {
                    let rows = result_of(&frame)?["sessions"].take();
                    let rows: Vec<Row> = serde_json::from_value(rows).unwrap_or_default();
                    if taken(&rows) {
                        break;
                    }
                }
                Heard::Frame(frame) if frame.is_method(Method::ControlTurn) => {
                    let kind = event_of(&frame).map(|it| it.body.kind());
                    if kind == Some(EventKind::Prompted) {
                        break;
                    }
                }
                Heard::Interrupt => {
                    let waited_for = "the daemon to take the prompt".to_owned();
                    return Err(Failure::Interrupted { waited_for });
                }
                Heard::HubGone => {
                    let waited_for = "the daemon to take the prompt".to_owned();
                    return Err(Failure::HubGone { waited_for });
                }
                Heard::Frame(_) | Heard::Typed(_) | Heard::TypedEnd | Heard::TimedOut => {}
            }
        }
        match self.format {
            Telling::Text | Telling::Quiet => desk.out.line(&goal.session),
            Telling::Json | Telling::Events | Telling::Envelopes => {
                document(&desk.out, &json!({ "sessionId": goal.session }))
            }
        }
    }
}
