//! `jackfield daemon`: the daemon in the background.

use crate::{
    app::Desk,
    env,
    hub::{Conn, Heard, STOP_SECONDS_MAX, Until, Wait, storage_warning},
    out::{DIM, Format, WARNING, count, document, paint},
    report::Failure,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Start, stop and look at the daemon in the background
///
/// Commands that need a daemon start one by themselves; it ends when it has had nothing to do for
/// ten minutes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon start
  $ jackfield daemon status
  $ jackfield daemon stop")]
pub(crate) struct Daemon {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Start(Start),
    Stop(Stop),
    Status(Status),
}

/// Start the daemon, unless it runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon start")]
struct Start {}

/// Stop the daemon and every agent; sessions stay in the journal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon stop")]
struct Stop {}

/// Show whether the daemon runs, and what it has to do
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon status
  $ jackfield daemon status --format json | jq .pid")]
struct Status {
    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

const PATIENCE: Duration = Duration::from_secs(1);

impl Daemon {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Start(_) => start(desk),
            Command::Stop(_) => stop(desk),
            Command::Status(it) => it.run(desk),
        }
    }
}

fn start(desk: &Desk) -> Result<(), Failure> {
    let already = desk.dial.running()?.is_some();
    let conn = desk.dial.talk("daemon")?;
    let pid = conn.peer_pid().map(|it| format!(", pid {it}")).unwrap_or_default();
    let what = if already { "already runs" } else { "started" };
    desk.out.note(&format!("the daemon {what}{pid}"));
    Ok(())
}

fn stop(desk: &Desk) -> Result<(), Failure> {
    let Some(mut conn) = desk.dial.talk_if_running("daemon")? else {
        desk.out.note("no daemon is running");
        return Ok(());
    };
    let agents = status(&mut conn)?["agents"].as_u64().and_then(|it| it.try_into().ok());
    let agents = count(agents.unwrap_or(0), "agent");
    let wait = Wait { what: "the daemon to answer", until: Until::Hub };
    conn.call("_jackfield/stop", &json!({}), wait)?;
    let began = Instant::now();
    let limit = began + Duration::from_secs(STOP_SECONDS_MAX);
    let mut until = began + PATIENCE;
    loop {
        match conn.next(Some(until))? {
            Heard::HubGone => break,
            Heard::TimedOut if until < limit => {
                until = limit;
                desk.out.note(&format!("waiting for {agents} to end…"));
            }
            Heard::TimedOut => {
                let waited_for = "it to stop".to_owned();
                return Err(Failure::Silent { waited_for, seconds: STOP_SECONDS_MAX });
            }
            _ => {}
        }
    }
    // It closes its connections first and its door last.
    desk.dial.wait_until_gone()?;
    desk.out.note("the daemon stopped");
    Ok(())
}

/// What the daemon says of itself.
pub(super) fn status(conn: &mut Conn) -> Result<Value, Failure> {
    let wait = Wait { what: "the daemon's status", until: Until::Hub };
    conn.call("_jackfield/status", &json!({}), wait)
}

impl Status {
    fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let Some(mut conn) = desk.dial.talk_if_running("daemon")? else {
            let hint =
                "`jackfield daemon start` starts one; commands that need one do so themselves";
            return Err(Failure::NoDaemon { hint });
        };
        let mut status = status(&mut conn)?;
        status["address"] = json!(desk.dial.address().to_string());
        status["pid"] = json!(conn.peer_pid());
        match self.format {
            Format::Json => return document(&desk.out, &status),
            Format::Quiet => return Ok(()),
            Format::Text => {}
        }
        for name in ["version", "pid", "address", "sessions", "agents", "clients"] {
            let value = match &status[name] {
                Value::String(text) => text.clone(),
                Value::Null => continue,
                other => other.to_string(),
            };
            desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<9}"))))?;
        }
        if status["stopping"] == true {
            desk.out.line(&paint(WARNING, "it is stopping"))?;
        }
        if let Some(warning) = storage_warning(&status["storage"]) {
            desk.out.line(&paint(WARNING, warning))?;
        }
        Ok(())
    }
}
