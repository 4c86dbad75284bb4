//! Becoming a guard, and starting an agent that dies with it.
#![expect(unsafe_code, reason = "code between fork and exec, and descriptors nobody owns")]

use super::signals;
use rustix::io::Errno;
use rustix::process as sys;
use std::ffi::{CStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// As `ps -c` and `killall` know a guard.
const GUARD_NAME: &CStr = c"jf-guard";
const WATCHER_NAME: &CStr = c"jf-watcher";

/// Leads a session of its own, so that Ctrl-C at the terminal of the daemon does not end it.
pub(crate) fn become_watcher() -> io::Result<()> {
    lead_session()?;
    let _kept = rustix::thread::set_name(WATCHER_NAME);
    Ok(())
}

fn lead_session() -> io::Result<()> {
    match sys::setsid() {
        // Already the leader of a group: good enough for a guard that was started by hand.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A session of our own (Ctrl-C at a terminal passes by), and the new parent of every orphan below.
pub(crate) fn become_guard() -> io::Result<()> {
    lead_session()?;
    sys::set_child_subreaper(Some(sys::getpid()))?;
    // `killall -9 jackfield` ends the daemon, and must not end those who clean up after it. Only a name.
    let _kept = rustix::thread::set_name(GUARD_NAME);
    keep_descriptors();
    // The guard must not keep a directory busy.
    std::env::set_current_dir("/")
}

/// The daemon opens more files than others expect: some programs look at each number they might have.
pub(crate) fn limit_files(count: u64) {
    let limit = sys::getrlimit(sys::Resource::Nofile);
    // It was ours before, so it can only be refused if it is too much, and then it is not needed.
    let _ = sys::setrlimit(sys::Resource::Nofile, sys::Rlimit { current: Some(count), ..limit });
}

/// Whatever the daemon was started with must not reach the agent. Closed on exec, not now: code
/// before us in this process may own one of them.
fn keep_descriptors() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = open.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::c_int>().ok());
    for descriptor in open.filter(|descriptor| 2 < *descriptor) {
        // SAFETY: only a flag is set; a number that is not open any more is refused.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Starts the agent in a session of its own, with our stdout and stderr; returns its pid.
pub(crate) fn start_agent(
    argv: &[OsString],
    cwd: &Path,
    environment: &[(OsString, OsString)],
    stdin: OwnedFd,
) -> io::Result<u32> {
    let (program, rest) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let guard = sys::getpid();
    let mut command = Command::new(program);
    command.args(rest).current_dir(cwd).stdin(Stdio::from(stdin));
    // `PATH` among them is where the program is searched for.
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    // SAFETY: only system calls that are allowed between fork and exec, and no allocation.
    unsafe {
        command.pre_exec(move || {
            signals::reset_all();
            sys::setsid()?;
            sys::set_parent_process_death_signal(Some(sys::Signal::KILL))?;
            // The guard may have died just before: then nobody would send that signal.
            if sys::getppid() == Some(guard) { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
    // The child is reaped by `reap`, like everything else below us.
    command.spawn().map(|child| child.id())
}

/// Lets go of our copies of the agent's stdout and stderr: the daemon must see their end. Should that
/// fail, the agent's end is still told, only its output seems to go on until then.
pub(crate) fn let_go_of_output() {
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
}
