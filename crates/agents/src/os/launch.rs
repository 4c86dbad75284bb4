//! Turns this process into a guard, and starts an agent that dies with it.
#![expect(unsafe_code, reason = "code between fork and exec, and descriptors without an owner")]

use super::{signal_set, system};
use rustix::io::Errno;
use rustix::process as sys;
use std::ffi::{CStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The process name of a guard in `ps -c` and for `killall`.
const GUARD_NAME: &CStr = c"jf-guard";
const WATCHER_NAME: &CStr = c"jf-watcher";

/// Starts a new session, so that Ctrl-C at the terminal of the daemon does not end the watcher.
pub(crate) fn become_watcher() -> io::Result<()> {
    lead_session()?;
    system::launch::set_process_name(WATCHER_NAME);
    Ok(())
}

fn lead_session() -> io::Result<()> {
    match sys::setsid() {
        // Already the leader of a group, which suffices for a guard that was started manually.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Starts a new session, so that Ctrl-C at a terminal has no effect, and becomes the parent of
/// orphaned descendants if the system permits it.
pub(crate) fn become_guard() -> io::Result<()> {
    lead_session()?;
    system::launch::adopt_orphans()?;
    // `killall -9 jackfield` ends the daemon and must not end its guards, which clean up after it.
    system::launch::set_process_name(GUARD_NAME);
    mark_close_on_exec();
    // The guard must not keep a file system busy.
    std::env::set_current_dir("/")
}

/// Sets the limit of open files. The daemon's own limit is too high for some programs, which
/// iterate over all possible descriptors.
pub(crate) fn limit_files(count: u64) {
    let limit = sys::getrlimit(sys::Resource::Nofile);
    // This was the daemon's limit, so it can only be refused if it is higher than the current one.
    let _ = sys::setrlimit(sys::Resource::Nofile, sys::Rlimit { current: Some(count), ..limit });
}

/// Marks inherited descriptors as close-on-exec, so that they do not reach the agent. They are not
/// closed now, because earlier code in this process may own one of them.
fn mark_close_on_exec() {
    let open = std::fs::read_dir(system::OPEN_DESCRIPTORS).into_iter().flatten().flatten();
    let open = open.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::c_int>().ok());
    for descriptor in open.filter(|descriptor| 2 < *descriptor) {
        // SAFETY: only a flag is set; a descriptor that is no longer open is refused.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Starts the agent in a session of its own, with this process's stdout and stderr. Returns its
/// pid. It fails if this process exits meanwhile.
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
    // The program is searched on the `PATH` of this environment.
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    // SAFETY: only system calls that are allowed between fork and exec, and no allocation.
    unsafe {
        command.pre_exec(move || {
            signal_set::reset_signals();
            sys::setsid()?;
            system::launch::end_with_parent(guard)
        });
    }
    // `reap` reaps the child, like all other descendants.
    command.spawn().map(|child| child.id())
}

/// Closes the guard's copies of the agent's stdout and stderr, so that the daemon sees their end.
/// If this fails, the agent's exit is still reported, and its output ends only with the guard.
pub(crate) fn close_output() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
