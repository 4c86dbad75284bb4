//! Linux: `/proc`, pidfds, signalfd, a subreaper, parent-death signals, control groups and kernel
//! timers.

pub(crate) mod cgroup;
mod clock;
mod file_lock;
mod kill_timer;
pub(super) mod launch;
mod peer_pin;
pub(super) mod process_pin;
mod process_table;
mod signals;

use super::OrphanParent;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::AsFd;

pub use clock::time_since_boot;
pub(crate) use clock::{current_start_time, start_time_span};
pub use file_lock::holds_lock;
pub use kill_timer::KillTimer;
pub(crate) use peer_pin::PeerPin;
pub(crate) use process_table::ProcessTable;
pub(crate) use signals::SignalReader;

/// The guard is a subreaper.
pub(crate) const ORPHAN_PARENT: OrphanParent = OrphanParent::Guard;

/// A send to a closed socket fails and sends no signal.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

/// A received descriptor closes on exec from the beginning.
pub(super) const RECEIVE_FILE: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// The directory that lists the open descriptors of this process.
pub(super) const OPEN_DESCRIPTORS: &str = "/proc/self/fd";

/// The number of bytes that a full pipe holds.
pub(crate) fn pipe_capacity(pipe: impl AsFd) -> Option<usize> {
    rustix::pipe::fcntl_getpipe_size(pipe).ok()
}

/// Does nothing: [`NO_SIGNAL`] suffices.
pub(crate) fn suppress_sigpipe(_socket: impl AsFd) {}

/// An id that differs for each boot, so that pids and start times of earlier boots can be ignored.
/// Empty if it is unknown.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
