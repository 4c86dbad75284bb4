//! Options of sockets and pipes of macOS.
#![expect(unsafe_code, reason = "no safe wrapper has this socket option")]

use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::{AsFd, AsRawFd as _};

/// The system has no such flag: see [`suppress_sigpipe`].
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// The system has no flag for close-on-exec; it is set after the call.
pub(in crate::os) const RECEIVE_FILE: RecvFlags = RecvFlags::empty();

/// The size to which the kernel lets a pipe grow; it cannot be queried.
const PIPE_BYTES_MAX: usize = 64 << 10;

/// The number of bytes that a full pipe holds at most.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) fn pipe_capacity(_pipe: impl AsFd) -> Option<usize> {
    Some(PIPE_BYTES_MAX)
}

/// Lets a send to a closed socket fail without a signal.
pub(crate) fn suppress_sigpipe(socket: impl AsFd) {
    let on: libc::c_int = 1;
    let length = size_of_val(&on).try_into().expect("four bytes");
    // SAFETY: the pointer is to `on`, which has this length and outlives the call. If it fails, the
    // Rust runtime still ignores the signal.
    unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NOSIGPIPE,
            (&raw const on).cast(),
            length,
        );
    }
}
