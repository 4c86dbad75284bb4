//! `jackfield sessions prune`: removes old sessions, and only such that nobody uses.

use super::table;
use crate::{
    amount::Age,
    app::Desk,
    env,
    hub::{Conn, Row, Until, Wait, sessions},
    out::{ALERT, Format, count, document, now_ms, paint},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::json;
use std::{collections::BTreeSet, io};

/// Remove sessions that nothing was said in for a long time
///
/// A session is never removed while a turn runs in it, something is asked or queued, or a client is
/// attached. What would go is listed first; on a terminal you are asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions prune --dry-run
  $ jackfield sessions prune --older-than 7d --closed
  $ jackfield sessions prune --older-than 90d --keep 20 --yes")]
pub(super) struct Prune {
    /// Nothing was said for so long: a number and `s`, `m`, `h`, `d` or `w`
    #[arg(long, env = env::OLDER_THAN, hide_env_values = true, value_name = "TIME", default_value = "30d")]
    older_than: Age,

    /// Keep the latest so many, however old
    #[arg(long, env = env::KEEP, hide_env_values = true, value_name = "COUNT", default_value_t)]
    keep: usize,

    /// Only closed sessions
    #[arg(long, env = env::CLOSED, hide_env_values = true, value_parser = env::flag())]
    closed: bool,

    /// Only say what would go
    #[arg(long, env = env::DRY_RUN, hide_env_values = true, value_parser = env::flag())]
    dry_run: bool,

    /// Do not ask first
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag())]
    yes: bool,

    /// How to print what goes; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Prune {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let all = sessions(conn)?;
        let doomed = self.doomed(&all, now_ms());
        self.print(desk, &all, &doomed)?;
        if doomed.is_empty() || self.dry_run {
            return Ok(());
        }
        if !self.yes {
            confirm(desk, doomed.len())?;
        }
        let agreed: BTreeSet<&str> = doomed.iter().map(|it| it.session_id.as_str()).collect();
        // Someone may have come back to one of them meanwhile.
        let now = sessions(conn)?;
        let still = self.doomed(&now, now_ms());
        let still: Vec<&&Row> =
            still.iter().filter(|it| agreed.contains(it.session_id.as_str())).collect();
        for row in &still {
            let wait = Wait { what: "the session to be removed", until: Until::Owner };
            conn.call(Method::SessionDelete.name(), &json!({ "sessionId": row.session_id }), wait)?;
        }
        desk.out.note(&format!("removed {}", count(still.len(), "session")));
        Ok(())
    }

    fn doomed<'a>(&self, latest_first: &'a [Row], now: u64) -> Vec<&'a Row> {
        let Age(age) = self.older_than;
        let old = |it: &&Row| it.updated() <= now.saturating_sub(age);
        let closed = |it: &&Row| !self.closed || it.state == "closed";
        latest_first
            .iter()
            .skip(self.keep)
            .filter(|it| is_free(it))
            .filter(old)
            .filter(closed)
            .collect()
    }

    fn print(&self, desk: &Desk, all: &[Row], doomed: &[&Row]) -> Result<(), Failure> {
        match self.format {
            Format::Json => {
                let rows: Vec<_> = doomed.iter().map(|it| &it.raw).collect();
                document(&desk.out, &json!({ "sessions": rows, "dryRun": self.dry_run }))
            }
            Format::Quiet => doomed.iter().try_for_each(|it| desk.out.line(&it.session_id)),
            Format::Text if doomed.is_empty() => {
                desk.out.note("there is nothing to remove");
                Ok(())
            }
            Format::Text => table(desk, all, doomed),
        }
    }
}

/// Nobody uses it and nothing waits in it.
fn is_free(row: &Row) -> bool {
    let rests = matches!(row.state.as_str(), "asleep" | "closed" | "idle");
    rests && row.clients == 0 && row.asks == 0 && row.queued == 0
}

fn confirm(desk: &Desk, number: usize) -> Result<(), Failure> {
    let what = count(number, "session");
    if !desk.out.can_ask() {
        let message = format!("removing {what} cannot be undone");
        return Err(Failure::usage(
            message,
            "say `--yes` if you mean it, `--dry-run` to look only",
        ));
    }
    desk.out.question(&format!("{} {what} and their logs? [y/N]", paint(ALERT, "remove")));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|source| Failure::local("cannot read the answer", source))?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
}
