//! `jackfield cancel`: cancels the running turn.

use crate::{
    context::CommandContext,
    hub::{find_session, list_sessions},
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;

/// Cancel the running turn of a session and withdraw its queued prompts
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield cancel s-7f3")]
pub(crate) struct CancelCommand {
    /// An id, a unique prefix of an id, or a title
    session: String,
}

impl CancelCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let Some(mut conn) = context.daemon.connect_if_running("cancel")? else {
            let hint = "no agent runs without a daemon, so there is nothing to cancel";
            return Err(CommandError::NoDaemon { hint });
        };
        let row = find_session(&list_sessions(&mut conn)?, &self.session)?;
        let id = &row.session_id;
        conn.send_notification(Method::SessionCancel, &json!({ "sessionId": id }))?;
        // A notification has no response: the response to a later request shows that it has arrived.
        list_sessions(&mut conn)?;
        match row.state.as_str() {
            "working" | "asks" | "starting" => {
                context.output.print_note(&format!("canceling the turn of {id}"));
            }
            _ => context.output.print_note(&format!("{id} has no running turn")),
        }
        Ok(())
    }
}
