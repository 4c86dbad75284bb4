//! File descriptors and signals that a program keeps when it is executed.
#![expect(unsafe_code, reason = "descriptors without an owner, and dispositions of signals")]

use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::{
    fs::File,
    io::{self, Seek as _, Write as _},
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::Path,
};

const LAST_STANDARD: i32 = 2;

/// Closes all descriptors except for 0, 1 and 2 when a program is executed.
pub(super) fn close_all_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|it| it.parse::<i32>().ok());
        if let Some(number) = number.filter(|it| LAST_STANDARD < *it) {
            // SAFETY: only a flag is set; a descriptor that is no longer open is refused.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

pub(super) fn keep_on_exec(descriptor: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?)
}

/// Opens a file without any access to its content, to be named later as `/proc/self/fd/N`.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A descriptor from which an executed program reads these bytes.
pub(super) fn pass_bytes(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("sandbox", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Lets `bwrap` survive the TERM that a guard sends to every process of an agent: it would kill the whole
/// sandbox at once, before the agent has saved its work.
pub(super) fn ignore_termination() {
    // SAFETY: SIG_IGN is a valid disposition, and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

pub(super) fn restore_termination() {
    // SAFETY: SIG_DFL is a valid disposition, and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
}

/// The process after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForkSide {
    Parent,
    /// A child of the first process of the namespace, in a session of its own and without stdio.
    Orphan,
}

/// Forks twice, so that the parent has no child afterwards. To be called by a process with one thread.
pub(super) fn fork_orphan() -> io::Result<ForkSide> {
    match fork()? {
        0 => {}
        child => {
            let child = rustix::process::Pid::from_raw(child);
            rustix::process::waitpid(child, rustix::process::WaitOptions::empty())?;
            return Ok(ForkSide::Parent);
        }
    }
    // From here on, an error must not return into the code of the parent.
    let orphan = rustix::process::setsid().map_err(io::Error::from).and_then(|_| fork());
    if !matches!(orphan, Ok(0)) {
        exit_now(0);
    }
    if discard_stdio().is_err() {
        exit_now(1);
    }
    Ok(ForkSide::Orphan)
}

/// Returns 0 in the child. To be called by a process with one thread.
pub(super) fn fork() -> io::Result<i32> {
    // SAFETY: the process has one thread, so no lock is held by another one.
    let child = unsafe { libc::fork() };
    if child < 0 { Err(io::Error::last_os_error()) } else { Ok(child) }
}

/// Ends this process without running code that the parent runs, too.
pub(super) fn exit_now(status: i32) -> ! {
    // SAFETY: it does not return, and touches no memory.
    unsafe { libc::_exit(status) }
}

/// Releases the pipes of the agent, whose ends its reader waits for.
fn discard_stdio() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    debug_assert!(LAST_STANDARD < null.as_raw_fd(), "descriptors 0, 1 and 2 were open");
    Ok(())
}
