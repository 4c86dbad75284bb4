//! `jackfield cancel`: stop the turn that runs.

use crate::{
    app::Desk,
    hub::{find, sessions},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;

/// Stop the running turn of a session, and withdraw the prompts behind it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield cancel s-7f3")]
pub(crate) struct Cancel {
    /// An id, a unique prefix of one, or a title
    session: String,
}

impl Cancel {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let Some(mut conn) = desk.dial.talk_if_running("cancel")? else {
            let hint = "without one nothing runs, so there is nothing to cancel";
            return Err(Failure::NoDaemon { hint });
        };
        let row = find(&sessions(&mut conn)?, &self.session)?;
        let id = &row.session_id;
        conn.notify(Method::SessionCancel.name(), &json!({ "sessionId": id }))?;
        // A notification has no answer: one that comes after it shows that it has arrived.
        sessions(&mut conn)?;
        match row.state.as_str() {
            "working" | "asks" | "starting" => desk.out.note(&format!("asked {id} to stop")),
            _ => desk.out.note(&format!("{id} was not doing anything")),
        }
        Ok(())
    }
}
