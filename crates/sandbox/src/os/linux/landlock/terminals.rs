//! Opens the terminal of a pseudo-terminal pair: Landlock would have to permit all of `/dev/pts` for it.
#![expect(unsafe_code, reason = "the call has no safe interface without another feature of rustix")]

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Flags that a process may open its terminal with.
const PERMITTED_FLAGS: i32 = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// The other end of a pair, of which the process has this one. The terminal does not become that of the
/// supervisor.
pub(super) fn open_peer(pair: &OwnedFd, flags: i32) -> Result<OwnedFd, Errno> {
    let flags = (flags & PERMITTED_FLAGS) | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the call takes a number and returns a descriptor.
    let descriptor = unsafe { libc::ioctl(pair.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if descriptor < 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    // SAFETY: the call returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
