//! `jackfield ps`: what is running.

use super::sessions::{id_cell, state_cell, time_cell};
use crate::{
    app::Desk,
    env,
    hub::{Row, sessions, unique_chars},
    out::{Cell, Format, NAME, Table, document},
    report::Failure,
};
use clap::Args;
use serde_json::json;

/// List the sessions whose agents are running, or where prompts wait
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield ps
  $ jackfield ps --format json | jq -r '.sessions[] | select(.asks > 0).sessionId'
  $ jackfield ps --format quiet | xargs -n1 jackfield cancel")]
pub(crate) struct Ps {
    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Ps {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        // Without a daemon nothing runs, so none is started to say so.
        let all = match desk.dial.talk_if_running("ps")? {
            Some(mut conn) => sessions(&mut conn)?,
            None => Vec::new(),
        };
        let live: Vec<&Row> = all.iter().filter(|it| it.is_live() || 0 < it.queued).collect();
        match self.format {
            Format::Text => table(desk, &all, &live),
            Format::Quiet => live.iter().try_for_each(|it| desk.out.line(&it.session_id)),
            Format::Json => {
                let rows: Vec<_> = live.iter().map(|it| &it.raw).collect();
                document(&desk.out, &json!({ "sessions": rows }))
            }
        }
    }
}

/// Ids are cut so that they name a session among all there are.
pub(super) fn table(desk: &Desk, all: &[Row], live: &[&Row]) -> Result<(), Failure> {
    if live.is_empty() {
        desk.out.note("nothing is running");
        return Ok(());
    }
    let chars = unique_chars(all);
    let says = live.iter().any(|it| it.doing.is_some());
    let heads = ["SESSION", "AGENT", "STATE", "QUEUED", "CLIENTS", "LAST", "DOING"];
    let mut table = Table::new(if says { &heads } else { &heads[..6] });
    for row in live {
        let mut cells = vec![
            id_cell(desk, row, chars),
            Cell::styled(row.agent.clone(), NAME),
            state_cell(row),
            Cell::new(row.queued.to_string()),
            Cell::new(row.clients.to_string()),
            time_cell(desk, &row.updated_at),
        ];
        if says {
            cells.push(Cell::new(row.doing.clone().unwrap_or_default()));
        }
        table.row(cells);
    }
    table.print(&desk.out)?;
    for row in live {
        for why in row.unheard.clone().into_iter().chain(row.instead()) {
            desk.out.note(&format!("{}: {why}", row.session_id));
        }
    }
    Ok(())
}
