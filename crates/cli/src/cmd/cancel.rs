//! `jackfield cancel`: cancels the running turn.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{find_session, list_sessions},
    out::{OutputFormat, print_json_document},
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
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// How to print the result
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
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
        match self.format {
            OutputFormat::Json => {
                let canceled = has_turn(&row.state);
                let members = json!({ "sessionId": id, "state": row.state, "canceled": canceled });
                print_json_document(&context.output, &members)
            }
            OutputFormat::Quiet => context.output.print_line(id),
            OutputFormat::Text => {
                context.output.print_note(&describe_cancel(id, &row.state));
                Ok(())
            }
        }
    }
}

/// Whether a session in this state has a turn that a cancel stops.
fn has_turn(state: &str) -> bool {
    matches!(state, "working" | "asks" | "quiet" | "starting" | "waiting")
}

/// What a cancel does to a session in this state.
fn describe_cancel(id: &str, state: &str) -> String {
    match state {
        _ if has_turn(state) => format!("canceling the turn of {id}"),
        // The journal cannot be written, with or without a turn.
        "stalled" => format!("canceling the turn of {id}, if one runs"),
        _ => format!("{id} has no running turn"),
    }
}
