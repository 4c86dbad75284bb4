//! Pidfds: descriptors that stay bound to one process.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::{BorrowedFd, OwnedFd};

/// A descriptor that becomes readable when this process exits. `NOSYS` and `PERM` mean that the
/// system cannot provide it.
pub(crate) fn open(pid: Pid) -> Result<OwnedFd, Errno> {
    pidfd_open(pid, PidfdFlags::empty())
}

/// Signals the pinned process, and never a later one with the same pid.
pub(crate) fn signal(pin: BorrowedFd<'_>, _pid: Pid, signal: Signal) -> Result<(), Errno> {
    pidfd_send_signal(pin, signal)
}
