//! The guard: the parent of one agent's process tree, a small process between daemon and agent.
//!
//! It communicates with the daemon over one socket (its descriptor 0; see `guard_report`) and does
//! not relay the agent's traffic: the agent inherits the daemon's pipes. Orphaned processes below
//! it become its children where the system has subreapers, so no process can leave the tree by
//! creating sessions or groups; elsewhere the guard follows the tree (`agent_tree`). When the daemon requests it or exits, or when the agent exits, the guard follows the
//! `stop_sequence` until no process is left.
//!
//! Own code because process supervisors manage services of a configuration, not the descendants of one
//! process that may create sessions and groups.
//!
//! **Invariant:** one thread, no runtime, no agent traffic. Thousands of guards must be affordable.

mod agent_tree;
mod arguments;
mod guard_loop;
pub(crate) mod guard_report;
mod stop_sequence;
mod tool_reaper;

#[cfg(test)]
pub(crate) use agent_tree::AgentTree;

use crate::agent_env;
use crate::ledger_watcher;
use crate::os::cgroup::ControlGroup;
use crate::os::{self, ProcessIdentity, SignalReader};
use crate::shortage::describe_shortage;
use crate::watcher_handle::WATCHER_OPTION;
use arguments::GuardArguments;
use guard_loop::GuardLoop;
use guard_report::GuardReport;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;

/// Runs `guard [options] -- command…`; `args` are the arguments after the word `guard`.
///
/// Call it at the start of `main`, before any thread is started. Descriptor 0 must be the socket
/// that [`crate::spawn_agent`] creates.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    if args.next_if(|it| it == WATCHER_OPTION).is_some() {
        let watched = args.next().map(|it| ledger_watcher::run_watcher(&it));
        return ExitCode::from(u8::from(!matches!(watched, Some(Ok(())))));
    }
    let socket = rustix::stdio::stdin();
    match run(args, socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartFailure { why, shortage }) => {
            if !guard_report::send_report(
                socket,
                &GuardReport::Failed { why: why.clone(), shortage },
            ) {
                // There is no daemon: the guard was started manually.
                let _ = writeln!(io::stderr(), "guard: {why}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Why the agent could not be started.
struct StartFailure {
    why: String,
    shortage: bool,
}

impl From<String> for StartFailure {
    fn from(why: String) -> StartFailure {
        StartFailure { why, shortage: false }
    }
}

fn run(
    args: impl IntoIterator<Item = OsString>,
    socket: BorrowedFd<'_>,
) -> Result<(), StartFailure> {
    let GuardArguments { cwd, files, control_group, graces, argv } = GuardArguments::parse(args)?;
    os::launch::become_guard().map_err(|error| format!("failed to become a guard: {error}"))?;
    files.into_iter().for_each(os::launch::limit_files);
    let signals =
        SignalReader::block().map_err(|error| format!("failed to block signals: {error}"))?;
    let stdin = os::fd_passing::receive_file(socket)
        .map_err(|error| format!("failed to receive the agent's stdin from the daemon: {error}"))?;
    // A command that was canceled before it started must not start.
    if guard_report::is_hung_up(socket) {
        return Err("it was canceled before it started".to_owned().into());
    }
    let environment = agent_env::restore_environment(std::env::vars_os());
    let start = || os::launch::start_agent(&argv, &cwd, &environment, stdin);
    let started = match control_group {
        Some(directory) => ControlGroup::at(directory).start_inside(start),
        None => start(),
    };
    let pid = started.map_err(|error| match describe_shortage(&error) {
        Some(hint) => {
            let why = format!("`{}`: {error}; {hint}", argv[0].to_string_lossy());
            StartFailure { why, shortage: true }
        }
        None => describe_start_error(&argv[0], &cwd, &environment, &error).into(),
    })?;
    os::launch::close_output();
    // A child keeps its pid until it is reaped, so this row is the agent's even if it has exited.
    let start = os::ProcessTable::system().row(pid).map_or(0, |row| row.process.start);
    guard_report::send_report(
        socket,
        &GuardReport::Started { process: ProcessIdentity { pid, start } },
    );

    let survivors = GuardLoop::new(socket, &signals, pid, graces).run();
    guard_report::send_report(socket, &GuardReport::Swept { survivors });
    Ok(())
}

/// The system's error is only "not found"; this names what was not found.
fn describe_start_error(
    program: &OsString,
    cwd: &Path,
    environment: &[(OsString, OsString)],
    error: &io::Error,
) -> String {
    let shown = program.to_string_lossy();
    match std::fs::metadata(cwd) {
        Err(error) => return format!("the working directory `{}`: {error}", cwd.display()),
        Ok(found) if !found.is_dir() => {
            return format!("the working directory `{}` is not a directory", cwd.display());
        }
        Ok(_) => {}
    }
    let bare = !shown.contains('/');
    // The search also fails with "permission denied" if a directory on `PATH` is not accessible.
    if bare && !is_on_path(program, environment) {
        return format!("`{shown}` was not found on PATH");
    }
    if error.kind() == io::ErrorKind::NotFound && (bare || cwd.join(program).exists()) {
        return format!("the interpreter of `{shown}` was not found: {error}");
    }
    format!("`{shown}`: {error}")
}

fn is_on_path(program: &OsString, environment: &[(OsString, OsString)]) -> bool {
    let paths = environment.iter().filter(|(name, _)| name == "PATH").map(|(_, value)| value);
    paths.flat_map(std::env::split_paths).any(|dir| dir.join(program).is_file())
}
