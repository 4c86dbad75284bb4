//! The guard: the parent of one agent's process tree, a small process between daemon and agent.
//!
//! It speaks with the daemon over one socket (its descriptor 0; see `fact`) and touches none of
//! the agent's traffic: the agent inherits the daemon's pipes. Orphans below it become its children
//! (subreaper), so nobody leaves the tree, whatever sessions and groups they make. When the daemon
//! asks, or vanishes, or the agent ends, it climbs the `ladder` until nobody is left.
//!
//! **Invariant:** one thread, no runtime, no agent traffic. It must be cheap enough to have thousands.

mod args;
pub(crate) mod fact;
mod ladder;
mod tools;
mod watch;

use crate::agent_env;
use crate::ledger_watcher;
use crate::os::cgroup::ControlGroup;
use crate::os::{self, Process, Signals};
use crate::shortage::describe_shortage;
use args::Args;
use fact::Fact;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;
use watch::Watch;

/// The whole life of `guard [options] -- command…`; `args` are what follows the word `guard`.
///
/// Call it first thing in `main`, before any thread is started. Descriptor 0 must be the socket
/// that [`crate::spawn`] makes.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    if args.next_if(|it| it == ledger_watcher::OPTION).is_some() {
        let watched = args.next().map(|it| ledger_watcher::run(&it));
        return ExitCode::from(u8::from(!matches!(watched, Some(Ok(())))));
    }
    let socket = rustix::stdio::stdin();
    match run(args, socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { why, shortage }) => {
            if !fact::tell(socket, &Fact::Failed { why: why.clone(), shortage }) {
                // No daemon: somebody started a guard by hand.
                let _ = writeln!(io::stderr(), "guard: {why}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Why there is no agent.
struct Failure {
    why: String,
    shortage: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { why, shortage: false }
    }
}

fn run(args: impl IntoIterator<Item = OsString>, socket: BorrowedFd<'_>) -> Result<(), Failure> {
    let Args { cwd, files, control_group, graces, argv } = Args::parse(args)?;
    os::launch::become_guard().map_err(|error| format!("failed to become a guard: {error}"))?;
    files.into_iter().for_each(os::launch::limit_files);
    let signals =
        Signals::take().map_err(|error| format!("failed to take over signals: {error}"))?;
    let stdin = os::handover::receive(socket)
        .map_err(|error| format!("failed to get the agent's stdin from the daemon: {error}"))?;
    // A command that was cancelled before it began must not begin.
    if fact::is_hung_up(socket) {
        return Err("nobody wants it any more".to_owned().into());
    }
    let environment = agent_env::restore(std::env::vars_os());
    let start = || os::launch::start_agent(&argv, &cwd, &environment, stdin);
    let started = match control_group {
        Some(directory) => ControlGroup::at(directory).start_inside(start),
        None => start(),
    };
    let pid = started.map_err(|error| match describe_shortage(&error) {
        Some(way_out) => {
            let why = format!("`{}`: {error}; {way_out}", argv[0].to_string_lossy());
            Failure { why, shortage: true }
        }
        None => why_not_started(&argv[0], &cwd, &environment, &error).into(),
    })?;
    os::launch::let_go_of_output();
    // A child we have not reaped keeps its number, so this row is the agent's even if it ended.
    let start = os::Table::system().row(pid).map_or(0, |row| row.process.start);
    fact::tell(socket, &Fact::Started { process: Process { pid, start } });

    let survivors = Watch::new(socket, &signals, pid, graces).run();
    fact::tell(socket, &Fact::Swept { survivors });
    Ok(())
}

/// The system says only "not found"; people need to know what was not found.
fn why_not_started(
    program: &OsString,
    cwd: &Path,
    environment: &[(OsString, OsString)],
    error: &io::Error,
) -> String {
    let shown = program.to_string_lossy();
    match std::fs::metadata(cwd) {
        Err(error) => return format!("the working directory `{}`: {error}", cwd.display()),
        Ok(found) if !found.is_dir() => {
            return format!("the working directory `{}` is no directory", cwd.display());
        }
        Ok(_) => {}
    }
    let bare = !shown.contains('/');
    // The search also says "denied" when a directory on the way is closed to us.
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
