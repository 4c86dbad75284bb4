//! `jackfield ps`: lists running sessions.

use super::sessions::{
    SessionFilterArgs, directory_cell, id_cell, name_cell, state_cell, time_cell,
};
use crate::{
    context::CommandContext,
    env,
    hub::{SessionRow, list_sessions_and_starts, unique_prefix_length},
    out::{NAME, OutputFormat, TableCell, TextTable, print_json_document},
    report::CommandError,
};
use clap::Args;
use serde_json::json;

/// List sessions that run, are being opened, or have queued prompts
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield ps
  $ jackfield ps --cwd . --state asks
  $ jackfield ps --format json | jq -r '.sessions[] | select(.asks > 0).sessionId'
  $ jackfield ps --format quiet | xargs -n1 jackfield cancel")]
pub(crate) struct PsCommand {
    #[command(flatten)]
    filter: SessionFilterArgs,

    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl PsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        // No agent runs without a daemon, so there is no need to start one.
        let (all, starting) = match context.daemon.connect_if_running("ps")? {
            Some(mut conn) => list_sessions_and_starts(&mut conn)?,
            None => (Vec::new(), Vec::new()),
        };
        let live = all.iter().filter(|it| it.is_live() || 0 < it.queued);
        let live = self.filter.select_rows(live)?;
        let starting = self.filter.select_rows(&starting)?;
        let shown: Vec<&SessionRow> =
            starting.iter().copied().chain(live.iter().copied()).collect();
        match self.format {
            OutputFormat::Text => print_table(context, &all, &shown),
            OutputFormat::Quiet => {
                live.iter().try_for_each(|it| context.output.print_line(&it.session_id))
            }
            OutputFormat::Json => {
                let raw = |it: &SessionRow| it.raw.clone();
                let rows: Vec<_> = live.iter().copied().map(raw).collect();
                let starting: Vec<_> = starting.iter().copied().map(raw).collect();
                let list = json!({ "sessions": rows, "starting": starting });
                print_json_document(&context.output, &list)
            }
        }
    }
}

/// Prints `live`; ids are shortened to prefixes that are unique in `all`.
pub(super) fn print_table(
    context: &CommandContext,
    all: &[SessionRow],
    live: &[&SessionRow],
) -> Result<(), CommandError> {
    if live.is_empty() {
        context.output.print_note("nothing is running");
        return Ok(());
    }
    let id_length = unique_prefix_length(all);
    let has_activity = live.iter().any(|it| it.doing.is_some());
    let has_names = live.iter().any(|it| it.name.is_some());
    let mut headings = vec!["SESSION", "AGENT", "STATE", "QUEUED", "CLIENTS", "LAST", "DIR"];
    if has_names {
        headings.insert(1, "NAME");
    }
    if has_activity {
        headings.push("DOING");
    }
    let mut table = TextTable::new(&headings);
    for row in live {
        let mut cells = vec![
            id_cell(context, row, id_length),
            TableCell::styled(row.agent.clone(), NAME),
            state_cell(row),
            TableCell::new(row.queued.to_string()),
            TableCell::new(row.clients.to_string()),
            time_cell(context, &row.updated_at),
            directory_cell(context, &row.cwd),
        ];
        if has_names {
            cells.insert(1, name_cell(row));
        }
        if has_activity {
            cells.push(TableCell::new(row.doing.clone().unwrap_or_default()));
        }
        table.add_row(cells);
    }
    table.print(&context.output)?;
    for row in live {
        for why in row.unheard.clone().into_iter().chain(row.describe_fallback()) {
            context.output.print_note(&format!("{}: {why}", row.session_id));
        }
    }
    Ok(())
}
