//! `jackfield sessions`: every session there is, running or not.

mod export;
mod fork;
mod import;
mod prune;
mod show;

pub(super) use export::{private_file, unwritten};

use crate::{
    app::Desk,
    env,
    hub::{Conn, Row, Until, Wait, find, sessions, unique_chars},
    out::{
        ALERT, BRIGHT, Cell, DIM, DONE, Format, NAME, Table, WARNING, ago, document, one_line,
        paint, parse_rfc3339,
    },
    report::Failure,
};
use clap::{Args, Subcommand};
use jackfield_protocol::acp::Method;
use serde_json::json;
use std::io;

/// List, show, fork, close, remove, export and import sessions, running or not
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions list
  $ jackfield sessions show s-7f3
  $ jackfield sessions fork s-7f3 --at 120
  $ jackfield sessions rm s-7f3 --yes")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Show(show::Show),
    Fork(fork::Fork),
    Close(Close),
    Rm(Rm),
    Export(export::Export),
    Import(import::Import),
    Prune(prune::Prune),
}

/// List every session, the latest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions list
  $ jackfield sessions list --format json | jq '.sessions | length'")]
struct List {
    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

/// End a session's agent; its log stays, and a prompt wakes it again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions close s-7f3")]
struct Close {
    /// An id, a unique prefix of one, or a title
    session: String,
}

/// Remove a session and its log for good
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions rm s-7f3
  $ jackfield sessions rm s-7f3 --yes")]
struct Rm {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// Do not ask first
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag())]
    yes: bool,
}

impl Sessions {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("sessions")?;
        match self.command {
            Command::List(it) => it.run(desk, &mut conn),
            Command::Show(it) => it.run(desk, &mut conn),
            Command::Fork(it) => it.run(desk, &mut conn),
            Command::Close(it) => it.run(desk, &mut conn),
            Command::Rm(it) => it.run(desk, &mut conn),
            Command::Export(it) => it.run(desk, &mut conn),
            Command::Import(it) => it.run(desk, &mut conn),
            Command::Prune(it) => it.run(desk, &mut conn),
        }
    }
}

impl List {
    fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let rows = sessions(conn)?;
        match self.format {
            Format::Text if rows.is_empty() => {
                desk.out.note("there are no sessions yet");
                Ok(())
            }
            Format::Text => table(desk, &rows, &rows.iter().collect::<Vec<_>>()),
            Format::Quiet => rows.iter().try_for_each(|it| desk.out.line(&it.session_id)),
            Format::Json => {
                let rows: Vec<_> = rows.iter().map(|it| &it.raw).collect();
                document(&desk.out, &json!({ "sessions": rows }))
            }
        }
    }
}

/// Ids are cut so that they name a session among all there are.
fn table(desk: &Desk, all: &[Row], shown: &[&Row]) -> Result<(), Failure> {
    let chars = unique_chars(all);
    let mut table = Table::new(&["SESSION", "AGENT", "STATE", "TURNS", "LAST", "TITLE"]);
    for row in shown {
        table.row(vec![
            id_cell(desk, row, chars),
            Cell::styled(row.agent.clone(), NAME),
            state_cell(row),
            Cell::new(row.turns.to_string()),
            time_cell(desk, &row.updated_at),
            Cell::new(one_line(row.title.as_deref().unwrap_or_default(), usize::MAX)),
        ]);
    }
    table.print(&desk.out)
}

/// On a terminal only as much of the id as it takes to name it.
pub(super) fn id_cell(desk: &Desk, row: &Row, chars: usize) -> Cell {
    Cell::styled(short_id(desk, &row.session_id, chars), BRIGHT)
}

pub(super) fn short_id(desk: &Desk, id: &str, chars: usize) -> String {
    if desk.out.has_reader() { id.chars().take(chars).collect() } else { id.to_owned() }
}

pub(super) fn state_cell(row: &Row) -> Cell {
    let style = match row.state.as_str() {
        "asks" | "quiet" | "stalled" | "waiting" => WARNING,
        "working" | "starting" | "opening" => DONE,
        "asleep" | "closed" => DIM,
        _ => anstyle::Style::new(),
    };
    Cell::styled(row.state.clone(), style)
}

/// How long ago for people, the moment itself for programs.
pub(super) fn time_cell(desk: &Desk, time: &str) -> Cell {
    Cell::new(shown_time(desk, time))
}

pub(super) fn shown_time(desk: &Desk, time: &str) -> String {
    match parse_rfc3339(time).filter(|_| desk.out.has_reader()) {
        Some(then) => ago(then),
        None => time.to_owned(),
    }
}

impl Close {
    fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        let wait = Wait { what: "the session to close", until: Until::Owner };
        conn.call(Method::SessionClose.name(), &json!({ "sessionId": row.session_id }), wait)?;
        desk.out.note(&format!("closed {}", row.session_id));
        Ok(())
    }
}

impl Rm {
    fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        if !self.yes {
            confirm(desk, &row)?;
        }
        let wait = Wait { what: "the session to be removed", until: Until::Owner };
        conn.call(Method::SessionDelete.name(), &json!({ "sessionId": row.session_id }), wait)?;
        desk.out.note(&format!("removed {}", row.session_id));
        Ok(())
    }
}

fn confirm(desk: &Desk, row: &Row) -> Result<(), Failure> {
    let id = &row.session_id;
    if !desk.out.can_ask() {
        let message = format!("removing {id} cannot be undone");
        return Err(Failure::usage(message, "say `--yes` if you mean it"));
    }
    let title = one_line(row.title.as_deref().unwrap_or_default(), 60);
    let question = format!("{} {id} {title} and its log? [y/N]", paint(ALERT, "remove"));
    desk.out.question(&question);
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|source| Failure::local("cannot read the answer", source))?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
}
