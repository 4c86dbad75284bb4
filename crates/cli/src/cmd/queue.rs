//! `jackfield queue`: prompts that wait in a session.

use super::{run::prepare_to_wake, sessions::shown_time};
use crate::{
    app::Desk,
    env,
    hub::{Conn, Row, Until, Wait, find, sessions},
    out::{BRIGHT, Cell, DIM, Format, Table, count, document, one_line},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// List the prompts that wait in a session; withdraw one, or run those that are held
///
/// A prompt waits behind the turn that runs, or until the agent is awake. Prompts that waited when
/// the daemon ended are held: they are kept, and run only when you say so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield queue s-7f3
  $ jackfield queue s-7f3 --withdraw 2
  $ jackfield queue s-7f3 --run
  $ jackfield queue s-7f3 --format json | jq '.prompts[] | select(.held)'")]
pub(crate) struct Queue {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// Take this prompt out of the queue; whoever sent it is told
    #[arg(long, env = env::WITHDRAW, hide_env_values = true, value_name = "N", conflicts_with = "run")]
    withdraw: Option<u64>,

    /// Run the prompts that are held, in order
    #[arg(long, env = env::RUN, hide_env_values = true, value_parser = env::flag())]
    run: bool,

    /// How to print the list; `quiet` prints the numbers
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Queue {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("queue")?;
        let row = find(&sessions(&mut conn)?, &self.session)?;
        match self.withdraw {
            Some(number) => withdraw(desk, &mut conn, &row, number),
            None if self.run => release(desk, &mut conn, &row),
            None => self.list(desk, &mut conn, &row),
        }
    }

    fn list(&self, desk: &Desk, conn: &mut Conn, row: &Row) -> Result<(), Failure> {
        let wait = Wait { what: "the list of prompts", until: Until::Hub };
        let params = json!({ "sessionId": row.session_id });
        let mut answer = conn.call(Method::ControlQueue.name(), &params, wait)?;
        let prompts = answer["prompts"].take();
        let rows = prompts.as_array().cloned().unwrap_or_default();
        match self.format {
            Format::Json => document(&desk.out, &json!({ "prompts": prompts })),
            Format::Quiet => {
                rows.iter().try_for_each(|it| desk.out.line(&it["prompt"].to_string()))
            }
            Format::Text if rows.is_empty() => {
                desk.out.note(&format!("no prompt waits in {}", row.session_id));
                Ok(())
            }
            Format::Text => table(desk, row, &rows),
        }
    }
}

fn table(desk: &Desk, row: &Row, prompts: &[Value]) -> Result<(), Failure> {
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    let mut table = Table::new(&["PROMPT", "STATE", "SINCE", "BY", "TEXT"]);
    for it in prompts {
        let state = if it["held"] == true { "held" } else { "queued" };
        table.row(vec![
            Cell::styled(it["prompt"].to_string(), BRIGHT),
            Cell::new(state),
            Cell::new(shown_time(desk, &text(it, "since"))),
            Cell::styled(one_line(&text(it, "by"), usize::MAX), DIM),
            Cell::new(one_line(&text(it, "text"), usize::MAX)),
        ]);
    }
    table.print(&desk.out)?;
    if prompts.iter().any(|it| it["held"] == true) {
        let id = &row.session_id;
        desk.out.note(&format!(
            "the daemon ended before the held ones ran; run them with `jackfield queue {id} --run`"
        ));
    }
    Ok(())
}

fn withdraw(desk: &Desk, conn: &mut Conn, row: &Row, number: u64) -> Result<(), Failure> {
    let wait = Wait { what: "the prompt to be withdrawn", until: Until::Hub };
    let params = json!({ "sessionId": row.session_id, "prompt": number });
    conn.call(Method::ControlWithdraw.name(), &params, wait)?;
    desk.out.note(&format!("withdrew prompt {number} of {}", row.session_id));
    Ok(())
}

/// Should the agent have to be started, it is as the caller would.
fn release(desk: &Desk, conn: &mut Conn, row: &Row) -> Result<(), Failure> {
    prepare_to_wake(conn, row)?;
    let wait = Wait { what: "the prompts to be released", until: Until::Hub };
    let params = json!({ "sessionId": row.session_id });
    let answer = conn.call(Method::ControlRelease.name(), &params, wait)?;
    let released = answer["released"].as_array().map_or(0, Vec::len);
    let id = &row.session_id;
    if released == 0 {
        desk.out.note(&format!("no prompt is held in {id}"));
    } else {
        let what = count(released, "prompt");
        desk.out.note(&format!("released {what}; `jackfield attach {id}` follows"));
    }
    Ok(())
}
