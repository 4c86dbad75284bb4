//! `jackfield daemon`: the daemon in the background.

mod stop;

use crate::{
    app::Desk,
    env,
    hub::{Conn, Until, Wait, storage_warning},
    out::{DIM, Format, WARNING, document, paint},
    report::Failure,
};
use clap::{Args, Subcommand};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Start, stop and look at the daemon in the background
///
/// Commands that need a daemon start one by themselves; it ends when it has had nothing to do for
/// ten minutes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon start
  $ jackfield daemon status
  $ jackfield daemon restart
  $ jackfield daemon stop")]
pub(crate) struct Daemon {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Start(Start),
    Stop(Stop),
    Restart(Restart),
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
  $ jackfield daemon stop
  $ jackfield daemon stop --force")]
struct Stop {
    #[command(flatten)]
    how: StopArgs,
}

/// Stop the daemon if one runs, and start it again
///
/// Sessions are in the journal; turns that run are interrupted. The new daemon is started as by `daemon start`: it has the
/// settings of config.toml and of the environment, not the flags of an earlier `jackfield serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon restart
  $ jackfield daemon restart --force")]
struct Restart {
    #[command(flatten)]
    how: StopArgs,
}

#[derive(Debug, Clone, Copy, Args)]
struct StopArgs {
    /// End a daemon that does not answer, too: SIGTERM, then SIGKILL
    ///
    /// Turns that run are interrupted, and each agent is ended by its guard. What was acknowledged is in
    /// the journal.
    #[arg(long, env = env::FORCE, hide_env_values = true, value_parser = env::flag())]
    force: bool,
}

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

impl Daemon {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Start(_) => start(desk),
            Command::Stop(it) => stop::stop(desk, it.how.force),
            Command::Restart(it) => it.run(desk),
            Command::Status(it) => it.run(desk),
        }
    }
}

impl Restart {
    fn run(&self, desk: &Desk) -> Result<(), Failure> {
        if desk.dial.is_named() {
            return Err(Failure::usage(
                "`daemon restart` starts the daemon of this user, and `--socket` names another one",
                "leave out `--socket`",
            ));
        }
        stop::stop(desk, self.how.force)?;
        start(desk)
    }
}

fn start(desk: &Desk) -> Result<(), Failure> {
    let already = desk.dial.running()?.is_some();
    let conn = desk.dial.talk("daemon")?;
    let pid = desk.dial.pid_of(&conn).map(|it| format!(", pid {it}")).unwrap_or_default();
    let what = if already { "already runs" } else { "started" };
    desk.out.note(&format!("the daemon {what}{pid}"));
    Ok(())
}

/// What the daemon says of itself.
pub(super) fn status(conn: &mut Conn) -> Result<Value, Failure> {
    let wait = Wait { what: "the daemon's status", until: Until::Hub };
    conn.call(Method::ControlStatus.name(), &json!({}), wait)
}

impl Status {
    fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let Some(mut conn) = desk.dial.talk_if_running("daemon")? else {
            let hint =
                "`jackfield daemon start` starts one; commands that need one do so themselves";
            return Err(Failure::NoDaemon { hint });
        };
        let mut status = status(&mut conn)?;
        let address = conn.peer_address().unwrap_or_else(|| desk.dial.address());
        status["address"] = json!(address.to_string());
        status["pid"] = json!(desk.dial.pid_of(&conn));
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
