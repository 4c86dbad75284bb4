//! `--no-wait`: the prompt is on its way, and nobody stays for the answer.

use super::{Run, goal::Goal};
use crate::{
    app::Desk,
    hub::{Conn, Heard, Row, is_answer, result_of},
    out::{Telling, document},
    report::Failure,
};
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
        let id = conn.ask("session/prompt", prompt)?;
        let listing = conn.ask("_jackfield/sessions", &json!({}))?;
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
                Heard::Frame(frame) if frame.method().as_deref() == Some("_jackfield/turn") => {
                    let fact: Value =
                        serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
                    if fact["is"] == "prompted" {
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
