//! `jackfield sessions fork`: creates a session from the log of another.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, ResponseWait, WaitLimit, find_session, list_sessions},
    out::{OutputFormat, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;

/// Create a session that continues from a copy of another session's log
///
/// The log is copied up to an event, by default the last one; `jackfield log` shows the numbers. Queued
/// prompts are not copied. It prints the id of the new session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions fork s-7f3
  $ jackfield sessions fork s-7f3 --at 120
  $ jackfield run -s \"$(jackfield sessions fork s-7f3)\" \"Try it the other way\"")]
pub(super) struct ForkSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// The last event to copy [default: the last event of the log]
    #[arg(long, env = env::AT, hide_env_values = true, value_name = "SEQ")]
    at: Option<u64>,

    /// How to print the new session's id
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ForkSessionCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let row = find_session(&list_sessions(conn)?, &self.session)?;
        if let Some(at) = self.at.filter(|it| !(1..=row.events).contains(it)) {
            let (id, events) = (&row.session_id, row.events);
            let message = format!("{id} has no event {at}: its events are 1 to {events}");
            let hint = format!("`jackfield log {id} --format json` shows them");
            return Err(CommandError::usage(message, &hint));
        }
        let mut params = json!({ "sessionId": row.session_id, "cwd": row.cwd });
        if let Some(at) = self.at {
            params["_meta"] = json!({ "jackfield": { "seq": at } });
        }
        // Copying a long log takes time; Ctrl-C cancels the wait.
        let wait = ResponseWait {
            waited_for: "the daemon to copy the session",
            limit: WaitLimit::Caller(None),
        };
        let answer = conn.call_method(Method::SessionFork, &params, wait)?;
        let fork = answer["sessionId"].as_str().unwrap_or_default();
        match self.format {
            OutputFormat::Json => {
                print_json_document(&context.output, &json!({ "sessionId": fork }))
            }
            OutputFormat::Text | OutputFormat::Quiet => context.output.print_line(fork),
        }
    }
}
