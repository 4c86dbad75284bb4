//! `jackfield sessions show`: what is known of one session, and what its turns have cost.

use crate::{
    app::Desk,
    env,
    hub::{Conn, Row, facts, find, sessions},
    out::{Cell, DIM, Format, Table, document, one_line, paint},
    report::Failure,
};
use clap::Args;
use jackfield_views::{Usage, usage::HEADINGS};
use serde_json::json;

/// Show what is known of one session, and what its turns have used and cost
///
/// Agents say how many tokens a turn took, what it cost, both or neither; what was not said is
/// shown as a dash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions show s-7f3
  $ jackfield sessions show s-7f3 --format json | jq -r .session.cwd
  $ jackfield sessions show s-7f3 --format json | jq .usage.sum.tokens.total")]
pub(super) struct Show {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Show {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        if self.format == Format::Quiet {
            return desk.out.line(&row.session_id);
        }
        let mut usage = Usage::default();
        facts(conn, &row.session_id, &mut |event| {
            // Facts about usage are flat; what cannot be read as a value is not about it.
            usage.fold(&serde_json::from_str(event).unwrap_or_default());
            Ok(())
        })?;
        if self.format == Format::Json {
            let mut told = serde_json::to_value(&usage).unwrap_or_default();
            told["sum"] = serde_json::to_value(usage.sum()).unwrap_or_default();
            return document(&desk.out, &json!({ "session": row.raw, "usage": told }));
        }
        tell_row(desk, &row)?;
        if usage.turns.is_empty() { Ok(()) } else { tell_usage(desk, &usage) }
    }
}

fn tell_row(desk: &Desk, row: &Row) -> Result<(), Failure> {
    let number = |it: u64| if it == 0 { String::new() } else { it.to_string() };
    let fields = [
        ("session", row.session_id.clone()),
        ("title", one_line(row.title.as_deref().unwrap_or_default(), usize::MAX)),
        ("state", row.state.clone()),
        ("asks", number(row.asks)),
        ("doing", row.doing.clone().unwrap_or_default()),
        ("queued", number(row.queued)),
        ("policy", row.unheard.clone().unwrap_or_default()),
        ("agent", row.agent.clone()),
        ("instead", row.instead().unwrap_or_default()),
        ("command", row.argv.join(" ")),
        ("pid", row.pid.map(|it| it.to_string()).unwrap_or_default()),
        ("its id", row.agent_session.clone()),
        ("directory", row.cwd.clone()),
        ("opened", row.opened_at.clone()),
        ("last", row.updated_at.clone()),
        ("turns", row.turns.to_string()),
        ("events", row.events.to_string()),
        ("clients", row.clients.to_string()),
    ];
    for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
        desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    Ok(())
}

fn tell_usage(desk: &Desk, usage: &Usage) -> Result<(), Failure> {
    let cells = |row: [String; 8]| row.iter().map(|it| Cell::new(one_line(it, 40))).collect();
    let mut table = Table::new(&HEADINGS);
    for turn in &usage.turns {
        table.row(cells(turn.cells()));
    }
    table.row(cells(usage.sum().cells()));
    desk.out.line("")?;
    table.print(&desk.out)?;
    let Some(context) = usage.context else { return Ok(()) };
    desk.out.line(&format!("{} {context}", paint(DIM, "context   ")))
}
