//! Identifies one process, as opposed to a later one with the same pid.

use super::{ProcessPin, ProcessTable};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

/// A pid and a start time, which together identify a process. A pid alone may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// In a unit of the system: see [`super::current_start_time`].
    pub(crate) start: u64,
}

impl ProcessIdentity {
    /// The process that has this pid now, unless it is a zombie.
    pub(crate) fn find(pid: u32) -> Option<ProcessIdentity> {
        ProcessTable::system().row(pid).filter(|row| !row.zombie).map(|row| row.process)
    }

    /// Whether this process is still running. A zombie is not.
    pub(crate) fn is_alive(self) -> bool {
        ProcessIdentity::find(self.pid) == Some(self)
    }

    /// Signals this process. Returns `false` if it has exited or the signal is not permitted.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        signal_if(self.pid, signal, || ProcessIdentity::find(self.pid) == Some(self))
    }
}

/// Signals `pid` if `proof` returns `true`. The process is pinned before the check, so that a pid
/// that is reused in between receives no signal.
pub(crate) fn signal_if(pid: u32, signal: Signal, proof: impl FnOnce() -> bool) -> bool {
    if pid <= 1 || pid == std::process::id() {
        return false;
    }
    ProcessPin::open(pid).is_some_and(|pin| proof() && pin.signal(signal))
}
