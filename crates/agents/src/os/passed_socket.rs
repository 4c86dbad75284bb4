//! The socket that a service manager passes to a process, as described in `sd_listen_fds(3)`.
#![expect(unsafe_code, reason = "a descriptor that another process opened for this one")]

use std::env;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor after stdin, stdout and stderr.
const FIRST_PASSED: RawFd = 3;
/// More descriptors than a service manager passes.
const COUNT_MAX: RawFd = 1024;

/// Takes the socket that was passed to this process; `None` if there is none, or if it was taken
/// before. No child inherits it.
pub fn take_passed_socket() -> io::Result<Option<OwnedFd>> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    // The variables may be inherited from a parent process, to which the descriptors were passed.
    if number("LISTEN_PID") != Some(std::process::id()) || IS_TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(None);
    }
    let count = number("LISTEN_FDS").and_then(|it| RawFd::try_from(it).ok()).unwrap_or(0);
    for descriptor in FIRST_PASSED..FIRST_PASSED + count.min(COUNT_MAX) {
        // SAFETY: only a flag is set; a descriptor that is not open is refused.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    match count {
        0 => Ok(None),
        // SAFETY: the descriptor is open, and by the protocol it belongs to this process and to no
        // other part of it; `IS_TAKEN` prevents a second call.
        1 => Ok(Some(unsafe { OwnedFd::from_raw_fd(FIRST_PASSED) })),
        _ => Err(io::Error::other(format!("{count} sockets were passed; expected 1"))),
    }
}
