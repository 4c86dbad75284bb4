//! `jackfield doctor`: what is wrong here, and the command that fixes it.

mod journal;

use super::daemon::status;
use crate::{
    app::Desk,
    env,
    hub::settings,
    out::{ALERT, DONE, Format, NAME, count, document, paint},
    report::Failure,
};
use clap::Args;
use jackfield_agents::find::{ProgramLocations, choose_variant, find_program};
use jackfield_daemon::{Paths, Settings, environment};
use journal::{RunningDaemon, check_journal};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Check this installation: what is wrong, and how to fix it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield doctor
  $ jackfield doctor --format json | jq '.checks[] | select(.ok | not)'")]
pub(crate) struct Doctor {
    /// How to print the checks
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    found: String,
    /// What to do if it is wrong.
    fix: Option<String>,
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, found: found.into(), fix: None }
    }

    fn bad(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, found: found.into(), fix: Some(fix.into()) }
    }
}

impl Doctor {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let paths = desk.dial.paths();
        let settings = settings(paths);
        let (daemon, asked) = check_daemon(desk);
        let running = asked.as_ref().map(|(status, pid)| RunningDaemon { status, pid: *pid });
        let runs = desk.dial.is_running();
        let checks = [
            check_config(paths, &settings),
            check_directory("state", &paths.state),
            check_directory("runtime", &paths.runtime),
            daemon,
            check_journal(&paths.journal(), running.as_ref(), runs),
            check_ledger(&paths.ledger(), runs),
            check_agents(paths, settings.as_ref().ok()),
        ];
        let problems = checks.iter().filter(|it| it.fix.is_some()).count();
        match self.format {
            Format::Json => document(&desk.out, &json!({ "checks": checks.map(to_json) }))?,
            Format::Text => checks.iter().try_for_each(|it| print(desk, it))?,
            Format::Quiet => {
                checks.iter().filter(|it| it.fix.is_some()).try_for_each(|it| print(desk, it))?;
            }
        }
        if problems == 0 { Ok(()) } else { Err(Failure::Unhealthy { problems }) }
    }
}

fn to_json(check: Check) -> Value {
    let Check { name, found, fix } = check;
    json!({ "name": name, "ok": fix.is_none(), "found": found, "fix": fix })
}

fn print(desk: &Desk, check: &Check) -> Result<(), Failure> {
    let verdict = match check.fix {
        None => paint(DONE, "ok   "),
        Some(_) => paint(ALERT, "wrong"),
    };
    desk.out.line(&format!("{verdict} {:<8} {}", check.name, check.found))?;
    check
        .fix
        .iter()
        .try_for_each(|it| desk.out.line(&format!("{:14} {} {it}", "", paint(NAME, "fix:"))))
}

fn check_config(paths: &Paths, settings: &Result<Settings, Failure>) -> Check {
    let file = paths.config_file();
    match settings {
        Err(failure) => {
            let reason = std::error::Error::source(failure).map(ToString::to_string);
            let reason =
                reason.unwrap_or_else(|| failure.to_string()).replace('\n', "\n               ");
            Check::bad("config", reason, format!("correct `{}`", file.display()))
        }
        Ok(_) if !file.exists() => {
            Check::good("config", format!("there is no {}; it is not needed", file.display()))
        }
        Ok(settings) => {
            let agents = count(settings.agents.len(), "agent");
            Check::good("config", format!("{}, {agents}", file.display()))
        }
    }
}

/// Ours and closed to others, or not there yet.
fn check_directory(name: &'static str, dir: &Path) -> Check {
    let shown = dir.display();
    let Ok(meta) = fs::symlink_metadata(dir) else {
        return Check::good(name, format!("{shown} is made when it is needed"));
    };
    let us = rustix::process::getuid().as_raw();
    let mode = meta.permissions().mode() & 0o777;
    if !meta.is_dir() {
        Check::bad(name, format!("{shown} is no directory"), format!("rm {shown}"))
    } else if meta.uid() != us {
        let found = format!("{shown} belongs to user {}, not to us", meta.uid());
        Check::bad(
            name,
            found,
            format!("remove {shown}, or set another with JACKFIELD_{}_DIR", name.to_uppercase()),
        )
    } else if mode & 0o077 != 0 {
        let found = format!("{shown} is open to others (mode {mode:o})");
        Check::bad(name, found, format!("chmod 700 {shown}"))
    } else {
        Check::good(name, shown.to_string())
    }
}

/// With what the daemon says of itself, and its process, if it runs and answers.
fn check_daemon(desk: &Desk) -> (Check, Option<(Value, Option<i32>)>) {
    let ours = env!("CARGO_PKG_VERSION");
    let address = desk.dial.address();
    let asked = desk.dial.talk_if_running("doctor").and_then(|conn| match conn {
        Some(mut conn) => status(&mut conn).map(|it| Some((it, conn.peer_pid()))),
        None => Ok(None),
    });
    let check = match &asked {
        Ok(None) => Check::good("daemon", "not running; it is started when it is needed"),
        Ok(Some((status, pid))) => {
            let theirs = status["version"].as_str().unwrap_or("unknown").to_owned();
            let pid = pid.map(|it| format!(", pid {it}")).unwrap_or_default();
            if theirs == ours {
                Check::good("daemon", format!("version {theirs}{pid}, on {address}"))
            } else {
                let found = format!("version {theirs}{pid}, but this command is {ours}");
                Check::bad("daemon", found, "jackfield daemon stop")
            }
        }
        Err(failure) => {
            let cause = std::error::Error::source(failure).map(|it| format!(": {it}"));
            let found = format!("{failure}{}", cause.unwrap_or_default());
            let restart = || "jackfield daemon stop; jackfield daemon start".to_owned();
            Check::bad("daemon", found, failure.lockout_hint().unwrap_or_else(restart))
        }
    };
    (check, asked.ok().flatten())
}

/// Process trees of ours that are noted as running.
fn check_ledger(dir: &Path, runs: bool) -> Check {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let pages = entries.filter(|it| it.path().extension().is_some_and(|it| it == "json")).count();
    match (pages, runs) {
        (0, _) => Check::good("ledger", "no agents are noted as running"),
        (pages, true) => {
            Check::good("ledger", format!("noted as running: {}", count(pages, "agent")))
        }
        (pages, false) => {
            let found = format!("left of a daemon that is gone: {}", count(pages, "agent"));
            Check::bad("ledger", found, "jackfield daemon start, which ends them")
        }
    }
}

/// What is configured can be started, every file is an agent, and who else is there.
fn check_agents(paths: &Paths, settings: Option<&Settings>) -> Check {
    let catalogue = jackfield_daemon::catalogue(paths);
    let places = ProgramLocations::new(environment::ours());
    if let Some(flaw) = catalogue.errors().first() {
        return Check::bad("agents", flaw.to_string(), "correct or remove the file");
    }
    for (name, agent) in settings.into_iter().flat_map(|it| &it.agents) {
        let Some(command) = &agent.command else {
            if catalogue.get(name).is_none() {
                let found = format!("[agents.{name}] has no `command` and is no agent we know");
                return Check::bad("agents", found, "add a `command`, or correct the name");
            }
            continue;
        };
        let program = command.first().cloned().unwrap_or_default();
        if find_program(std::slice::from_ref(&program), None, &places).is_err() {
            let found = format!("[agents.{name}] starts `{program}`, which was not found");
            let fix = format!("install `{program}`, or correct `command`");
            return Check::bad("agents", found, fix);
        }
    }
    let found = catalogue.iter().filter(|it| choose_variant(it, &places).is_ok());
    let found: Vec<&str> = found.map(|it| it.id.as_str()).collect();
    if found.is_empty() {
        Check::good("agents", "none that we know is installed; give any command after `--`")
    } else {
        Check::good("agents", format!("found: {}", found.join(", ")))
    }
}
