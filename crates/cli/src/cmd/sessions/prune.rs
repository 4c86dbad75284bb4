//! `jackfield sessions prune`: removes old sessions that are not in use.

use super::print_table;
use crate::{
    amount::TimeSpan,
    context::CommandContext,
    env,
    hub::{CommandConnection, ResponseWait, SessionRow, WaitLimit, list_sessions},
    out::{ALERT, OutputFormat, now_ms, paint, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;
use std::{collections::BTreeSet, io};

/// Remove sessions that have not been used for a long time
///
/// A session with a running turn, an open ask, queued prompts or an attached client is never removed.
/// The sessions are listed first, and on a terminal you are asked for confirmation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions prune --dry-run
  $ jackfield sessions prune --older-than 7d --closed
  $ jackfield sessions prune --older-than 90d --keep 20 --yes")]
pub(super) struct PruneSessionsCommand {
    /// Remove sessions without events for this long: a number and `s`, `m`, `h`, `d` or `w`
    #[arg(long, env = env::OLDER_THAN, hide_env_values = true, value_name = "TIME", default_value = "30d")]
    older_than: TimeSpan,

    /// Keep this many of the latest sessions
    #[arg(long = "keep", env = env::KEEP_SESSIONS, hide_env_values = true, value_name = "COUNT", default_value_t)]
    keep_sessions: usize,

    /// Remove only closed sessions
    #[arg(long, env = env::CLOSED, hide_env_values = true, value_parser = env::flag_parser())]
    closed: bool,

    /// Only list the sessions
    #[arg(long, env = env::DRY_RUN, hide_env_values = true, value_parser = env::flag_parser())]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag_parser())]
    yes: bool,

    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl PruneSessionsCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let all = list_sessions(conn)?;
        let selected = self.select_rows(&all, now_ms());
        self.print_rows(context, &all, &selected)?;
        if selected.is_empty() || self.dry_run {
            return Ok(());
        }
        if !self.yes {
            confirm_removal(context, selected.len())?;
        }
        let confirmed: BTreeSet<&str> = selected.iter().map(|it| it.session_id.as_str()).collect();
        // A client may have used one of them in the meantime.
        let now = list_sessions(conn)?;
        let removable = self.select_rows(&now, now_ms());
        let removable: Vec<&&SessionRow> =
            removable.iter().filter(|it| confirmed.contains(it.session_id.as_str())).collect();
        for row in &removable {
            let wait = ResponseWait {
                waited_for: "the daemon to remove the session",
                limit: WaitLimit::SessionHost,
            };
            conn.call_method(Method::SessionDelete, &json!({ "sessionId": row.session_id }), wait)?;
        }
        context.output.print_note(&format!("removed {}", format_count(removable.len(), "session")));
        Ok(())
    }

    fn select_rows<'a>(&self, latest_first: &'a [SessionRow], now: u64) -> Vec<&'a SessionRow> {
        let TimeSpan(age) = self.older_than;
        let is_old = |it: &&SessionRow| it.updated_at_ms() <= now.saturating_sub(age);
        let is_state_selected = |it: &&SessionRow| !self.closed || it.state == "closed";
        latest_first
            .iter()
            .skip(self.keep_sessions)
            .filter(|it| is_unused(it))
            .filter(is_old)
            .filter(is_state_selected)
            .collect()
    }

    fn print_rows(
        &self,
        context: &CommandContext,
        all: &[SessionRow],
        selected: &[&SessionRow],
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => {
                let rows: Vec<_> = selected.iter().map(|it| &it.raw).collect();
                print_json_document(
                    &context.output,
                    &json!({ "sessions": rows, "dryRun": self.dry_run }),
                )
            }
            OutputFormat::Quiet => {
                selected.iter().try_for_each(|it| context.output.print_line(&it.session_id))
            }
            OutputFormat::Text if selected.is_empty() => {
                context.output.print_note("no sessions to remove");
                Ok(())
            }
            OutputFormat::Text => print_table(context, all, selected),
        }
    }
}

/// Whether no turn runs, no client is attached, and nothing is queued or open.
fn is_unused(row: &SessionRow) -> bool {
    let is_inactive = matches!(row.state.as_str(), "asleep" | "closed" | "idle");
    is_inactive && row.clients == 0 && row.asks == 0 && row.queued == 0
}

fn confirm_removal(context: &CommandContext, number: usize) -> Result<(), CommandError> {
    let what = format_count(number, "session");
    if !context.output.can_prompt_user() {
        let message = format!("removing {what} cannot be undone");
        return Err(CommandError::usage(
            message,
            "pass `--yes` to confirm, or `--dry-run` to list them only",
        ));
    }
    context
        .output
        .print_question(&format!("{} {what} and their logs? [y/N]", paint(ALERT, "remove")));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|source| CommandError::local("cannot read the answer", source))?;
    if matches!(line.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(CommandError::RemovalDeclined)
    }
}
