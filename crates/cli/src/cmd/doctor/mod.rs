//! `jackfield doctor`: checks the installation and shows how to fix problems.

mod journal;

use super::daemon::request_status;
use crate::{
    context::CommandContext,
    env,
    hub::load_settings,
    out::{ALERT, DONE, NAME, OutputFormat, paint, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use clap::Args;
use jackfield_agents::{
    find::{ProgramLocations, find_program},
    probe::{AgentSurvey, DiagnosticReason, DiagnosticSeverity},
};
use jackfield_daemon::{Paths, Settings, environment};
use jackfield_protocol::chain;
use journal::{RunningDaemon, check_journal};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Check this installation and show how to fix problems
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield doctor
  $ jackfield doctor --format json | jq '.checks[] | select(.ok | not)'")]
pub(crate) struct DoctorCommand {
    /// How to print the checks
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The result of one check.
struct DoctorCheck {
    name: &'static str,
    found: String,
    /// How to fix it, if the check failed.
    fix: Option<String>,
}

impl DoctorCheck {
    fn passed(name: &'static str, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, found: found.into(), fix: None }
    }

    fn failed(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, found: found.into(), fix: Some(fix.into()) }
    }
}

impl DoctorCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let paths = context.daemon.paths();
        let settings = load_settings(paths);
        let (daemon, daemon_status) = check_daemon(context);
        let running =
            daemon_status.as_ref().map(|(status, pid)| RunningDaemon { status, pid: *pid });
        let is_running = context.daemon.is_running();
        let checks = [
            check_config(paths, &settings),
            check_directory("state", &paths.state),
            check_directory("runtime", &paths.runtime),
            daemon,
            check_journal(&paths.journal(), running.as_ref(), is_running),
            check_ledger(&paths.ledger(), is_running),
            check_agents(paths, settings.as_ref().ok()),
        ];
        let problems = checks.iter().filter(|it| it.fix.is_some()).count();
        match self.format {
            OutputFormat::Json => {
                print_json_document(&context.output, &json!({ "checks": checks.map(to_json) }))?;
            }
            OutputFormat::Text => checks.iter().try_for_each(|it| print_check(context, it))?,
            OutputFormat::Quiet => {
                checks
                    .iter()
                    .filter(|it| it.fix.is_some())
                    .try_for_each(|it| print_check(context, it))?;
            }
        }
        if problems == 0 { Ok(()) } else { Err(CommandError::ChecksFailed { problems }) }
    }
}

fn to_json(check: DoctorCheck) -> Value {
    let DoctorCheck { name, found, fix } = check;
    json!({ "name": name, "ok": fix.is_none(), "found": found, "fix": fix })
}

fn print_check(context: &CommandContext, check: &DoctorCheck) -> Result<(), CommandError> {
    let result = match check.fix {
        None => paint(DONE, "ok   "),
        Some(_) => paint(ALERT, "error"),
    };
    context.output.print_line(&format!("{result} {:<8} {}", check.name, check.found))?;
    check.fix.iter().try_for_each(|it| {
        context.output.print_line(&format!("{:14} {} {it}", "", paint(NAME, "fix:")))
    })
}

fn check_config(paths: &Paths, settings: &Result<Settings, CommandError>) -> DoctorCheck {
    let file = paths.config_file();
    match settings {
        Err(error) => {
            let reason = std::error::Error::source(error).map(chain);
            let reason =
                reason.unwrap_or_else(|| error.to_string()).replace('\n', "\n               ");
            DoctorCheck::failed("config", reason, format!("correct `{}`", file.display()))
        }
        Ok(_) if !file.exists() => DoctorCheck::passed(
            "config",
            format!("{} does not exist and is not required", file.display()),
        ),
        Ok(settings) => {
            let agents = format_count(settings.agents.len(), "agent");
            DoctorCheck::passed("config", format!("{}, {agents}", file.display()))
        }
    }
}

/// Checks that a directory belongs to this user and is closed to others, or does not exist yet.
fn check_directory(name: &'static str, dir: &Path) -> DoctorCheck {
    let shown = dir.display();
    let Ok(meta) = fs::symlink_metadata(dir) else {
        return check_missing_directory(name, dir);
    };
    let user_id = rustix::process::getuid().as_raw();
    let mode = meta.permissions().mode() & 0o777;
    if !meta.is_dir() {
        DoctorCheck::failed(name, format!("{shown} is not a directory"), format!("rm {shown}"))
    } else if meta.uid() != user_id {
        let found = format!("{shown} belongs to user {}, not to you", meta.uid());
        DoctorCheck::failed(
            name,
            found,
            format!(
                "remove {shown}, or set JACKFIELD_{}_DIR to another directory",
                name.to_uppercase()
            ),
        )
    } else if mode & 0o077 != 0 {
        let found = format!("{shown} is accessible to other users (mode {mode:o})");
        DoctorCheck::failed(name, found, format!("chmod 700 {shown}"))
    } else {
        DoctorCheck::passed(name, shown.to_string())
    }
}

/// Checks that a directory can be created: the first of its parents that exists must be a directory.
fn check_missing_directory(name: &'static str, dir: &Path) -> DoctorCheck {
    let shown = dir.display();
    let parent = dir.ancestors().skip(1).find(|it| fs::symlink_metadata(it).is_ok());
    match parent.filter(|it| !it.is_dir()) {
        None => DoctorCheck::passed(name, format!("{shown} is created on first use")),
        Some(file) => {
            let file = file.display();
            let found = format!("{shown} cannot be created: {file} is not a directory");
            let variable = format!("JACKFIELD_{}_DIR", name.to_uppercase());
            DoctorCheck::failed(name, found, format!("rm {file}, or set {variable}"))
        }
    }
}

/// Also returns the status and the pid of the daemon, if it answers.
fn check_daemon(context: &CommandContext) -> (DoctorCheck, Option<(Value, Option<i32>)>) {
    let own_version = env!("CARGO_PKG_VERSION");
    let mut address = context.daemon.address();
    let status = context.daemon.connect_if_running("doctor").and_then(|conn| match conn {
        Some(mut conn) => {
            // The daemon may listen in another runtime directory than that of this environment.
            address = conn.peer_address().unwrap_or_else(|| address.clone());
            request_status(&mut conn).map(|it| Some((it, conn.peer_pid())))
        }
        None => Ok(None),
    });
    let check = match &status {
        Ok(None) => DoctorCheck::passed("daemon", "not running; it is started on first use"),
        Ok(Some((status, pid))) => {
            let version = status["version"].as_str().unwrap_or("unknown").to_owned();
            let pid = pid.map(|it| format!(", pid {it}")).unwrap_or_default();
            if version == own_version {
                DoctorCheck::passed("daemon", format!("version {version}{pid}, on {address}"))
            } else {
                let found =
                    format!("version {version}{pid}, but this command has version {own_version}");
                DoctorCheck::failed("daemon", found, "jackfield daemon stop")
            }
        }
        Err(error) => {
            let cause = std::error::Error::source(error).map(|it| format!(": {it}"));
            let found = format!("{error}{}", cause.unwrap_or_default());
            let restart = || "jackfield daemon restart".to_owned();
            DoctorCheck::failed("daemon", found, error.lockout_hint().unwrap_or_else(restart))
        }
    };
    (check, status.ok().flatten())
}

/// Checks the ledger of process trees for agents of a dead daemon.
fn check_ledger(dir: &Path, is_running: bool) -> DoctorCheck {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let agents = entries.filter(|it| it.path().extension().is_some_and(|it| it == "json")).count();
    match (agents, is_running) {
        (0, _) => DoctorCheck::passed("ledger", "no agents are recorded as running"),
        (agents, true) => DoctorCheck::passed(
            "ledger",
            format!("recorded as running: {}", format_count(agents, "agent")),
        ),
        (agents, false) => {
            let found = format!("{} left over from a dead daemon", format_count(agents, "agent"));
            DoctorCheck::failed("ledger", found, "jackfield daemon start, which kills them")
        }
    }
}

/// Checks that the configured commands exist and all agent files are valid, and lists the installed agents.
fn check_agents(paths: &Paths, settings: Option<&Settings>) -> DoctorCheck {
    let catalog = jackfield_daemon::load_catalog(paths);
    let locations = ProgramLocations::new(environment::process_env());
    if let Some(error) = catalog.errors().first() {
        return DoctorCheck::failed("agents", error.to_string(), "correct or remove the file");
    }
    for (name, agent) in settings.into_iter().flat_map(|it| &it.agents) {
        let Some(command) = &agent.command else {
            if catalog.get(name).is_none() {
                let found =
                    format!("[agents.{name}] has no `command`, and the catalog has no such agent");
                return DoctorCheck::failed(
                    "agents",
                    found,
                    "add a `command`, or correct the name",
                );
            }
            continue;
        };
        let program = command.first().cloned().unwrap_or_default();
        if find_program(std::slice::from_ref(&program), None, &locations).is_err() {
            let found = format!("[agents.{name}] starts `{program}`, which was not found");
            let fix = format!("install `{program}`, or correct `command`");
            return DoctorCheck::failed("agents", found, fix);
        }
    }
    describe_installed(&AgentSurvey::new(catalog, locations, &paths.probes()))
}

/// Lists the installed agents. Fails if the last probe of one found that it cannot be used.
fn describe_installed(survey: &AgentSurvey) -> DoctorCheck {
    let specs = survey.catalogue.iter().map(|it| (it, survey.status(it)));
    let installed: Vec<_> = specs.filter(|(_, status)| status.chosen.is_some()).collect();
    let found: Vec<&str> = installed.iter().map(|(spec, _)| spec.id.as_str()).collect();
    if found.is_empty() {
        return DoctorCheck::passed(
            "agents",
            "no known agent is installed; pass any command after `--`",
        );
    }
    let found = format!("found: {}", found.join(", "));
    let problems = installed.iter().flat_map(|(spec, status)| {
        status.diagnostics.iter().map(|problem| (spec.id.as_str(), problem))
    });
    let is_failure = |it: &DiagnosticReason| *it == DiagnosticReason::LaunchVariantFailed;
    let failed: Vec<_> = problems.filter(|(_, it)| is_failure(&it.reason)).collect();
    let error = failed.iter().find(|(_, it)| it.severity == DiagnosticSeverity::Error);
    match (error, failed.first()) {
        (Some((agent, problem)), _) => {
            DoctorCheck::failed("agents", format!("{agent}: {}", problem.message), &problem.fix)
        }
        (None, Some((agent, problem))) => {
            DoctorCheck::passed("agents", format!("{found}; {agent}: {}", problem.message))
        }
        (None, None) => DoctorCheck::passed("agents", found),
    }
}
