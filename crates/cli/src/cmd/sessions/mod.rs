//! `jackfield sessions`: manages all sessions, running or not.

mod export;
mod filter;
mod fork;
mod import;
mod prune;
mod rename;
mod show;
mod table;

pub(super) use export::{create_private_file, write_error};
pub(super) use filter::SessionFilterArgs;
pub(super) use table::{
    directory_cell, format_time, id_cell, name_cell, shorten_id, state_cell, time_cell,
};

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, ResponseWait, SessionRow, WaitLimit, find_session, list_sessions},
    out::{ALERT, OutputFormat, paint, print_json_document},
    plain_text::to_one_line,
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_protocol::acp::Method;
use serde_json::json;
use std::io;
use table::print_table;

/// List, show, name, fork, close, remove, export and import sessions, running or not
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions list
  $ jackfield sessions show s-7f3
  $ jackfield sessions fork s-7f3 --at 120
  $ jackfield sessions rm s-7f3 --yes")]
pub(crate) struct SessionsCommand {
    #[command(subcommand)]
    command: SessionsSubcommand,
}

#[derive(Debug, Subcommand)]
enum SessionsSubcommand {
    List(ListSessionsCommand),
    Show(show::ShowSessionCommand),
    Rename(rename::RenameSessionCommand),
    Fork(fork::ForkSessionCommand),
    Close(CloseSessionCommand),
    Rm(RemoveSessionCommand),
    Export(export::ExportSessionCommand),
    Import(import::ImportSessionCommand),
    Prune(prune::PruneSessionsCommand),
}

/// List all sessions, the latest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions list
  $ jackfield sessions list -n 10 --cwd . --agent claude
  $ jackfield sessions list --state asks,working
  $ jackfield sessions list --format json | jq '.sessions | length'")]
struct ListSessionsCommand {
    #[command(flatten)]
    filter: SessionFilterArgs,

    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Stop a session's agent; the log stays, and a prompt restarts the agent
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions close s-7f3")]
struct CloseSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,
}

/// Remove a session and its log permanently
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions rm s-7f3
  $ jackfield sessions rm s-7f3 --yes")]
struct RemoveSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// Do not ask for confirmation
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag_parser())]
    yes: bool,
}

impl SessionsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("sessions")?;
        match self.command {
            SessionsSubcommand::List(it) => it.run(context, &mut conn),
            SessionsSubcommand::Show(it) => it.run(context, &mut conn),
            SessionsSubcommand::Rename(it) => it.run(context, &mut conn),
            SessionsSubcommand::Fork(it) => it.run(context, &mut conn),
            SessionsSubcommand::Close(it) => it.run(context, &mut conn),
            SessionsSubcommand::Rm(it) => it.run(context, &mut conn),
            SessionsSubcommand::Export(it) => it.run(context, &mut conn),
            SessionsSubcommand::Import(it) => it.run(context, &mut conn),
            SessionsSubcommand::Prune(it) => it.run(context, &mut conn),
        }
    }
}

impl ListSessionsCommand {
    fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let all = list_sessions(conn)?;
        let rows = self.filter.select_rows(&all)?;
        match self.format {
            OutputFormat::Text if rows.is_empty() => {
                let is_filtered = self.filter.is_active() && !all.is_empty();
                context.output.print_note(if is_filtered {
                    "no session matches; leave out a filter to see more"
                } else {
                    "there are no sessions yet"
                });
                Ok(())
            }
            OutputFormat::Text => print_table(context, &all, &rows),
            OutputFormat::Quiet => {
                rows.iter().try_for_each(|it| context.output.print_line(&it.session_id))
            }
            OutputFormat::Json => {
                let rows: Vec<_> = rows.iter().map(|it| &it.raw).collect();
                print_json_document(&context.output, &json!({ "sessions": rows }))
            }
        }
    }
}

impl CloseSessionCommand {
    fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let row = find_session(&list_sessions(conn)?, &self.session)?;
        let wait = ResponseWait {
            waited_for: "the daemon to close the session",
            limit: WaitLimit::SessionHost,
        };
        conn.call_method(Method::SessionClose, &json!({ "sessionId": row.session_id }), wait)?;
        context.output.print_note(&format!("closed {}", row.session_id));
        Ok(())
    }
}

impl RemoveSessionCommand {
    fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let row = find_session(&list_sessions(conn)?, &self.session)?;
        if !self.yes {
            confirm_removal(context, &row)?;
        }
        let wait = ResponseWait {
            waited_for: "the daemon to remove the session",
            limit: WaitLimit::SessionHost,
        };
        conn.call_method(Method::SessionDelete, &json!({ "sessionId": row.session_id }), wait)?;
        context.output.print_note(&format!("removed {}", row.session_id));
        Ok(())
    }
}

fn confirm_removal(context: &CommandContext, row: &SessionRow) -> Result<(), CommandError> {
    let id = &row.session_id;
    if !context.output.can_prompt_user() {
        let message = format!("removing {id} cannot be undone");
        return Err(CommandError::usage(message, "pass `--yes` to confirm"));
    }
    let title = to_one_line(row.title.as_deref().unwrap_or_default(), 60);
    let question = format!("{} {id} {title} and its log? [y/N]", paint(ALERT, "remove"));
    context.output.print_question(&question);
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|source| CommandError::local("cannot read the answer", source))?;
    if matches!(line.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(CommandError::RemovalDeclined)
    }
}
