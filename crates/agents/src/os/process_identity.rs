//! Identifies one process, as opposed to a later one with the same pid.

use super::ProcessTable;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A pid and a start time, which together identify a process. A pid alone may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
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
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if pid <= 1 || pid == std::process::id() {
        return false;
    }
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(pin) => proof() && pidfd_send_signal(pin, signal).is_ok(),
        // Old kernels and some sandboxes have no pidfd; then the check just before must suffice.
        Err(Errno::NOSYS | Errno::PERM) => proof() && kill_process(number, signal).is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn process_with_another_start_time_is_never_signaled() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let real = ProcessIdentity::find(child.id()).unwrap();
        let recycled = ProcessIdentity { start: real.start + 1, ..real };
        assert!(!recycled.is_alive());
        assert!(!recycled.signal(Signal::KILL));
        assert!(real.is_alive());
        assert!(real.signal(Signal::KILL));
        child.wait().unwrap();
        assert!(!real.is_alive());
        assert!(!real.signal(Signal::KILL));
    }

    #[test]
    fn zombie_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while ProcessIdentity::find(pid).is_some() {
            assert!(std::time::Instant::now() < deadline, "`true` did not end");
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn init_and_this_process_are_never_signaled() {
        assert!(!signal_if(1, Signal::KILL, || true));
        assert!(!signal_if(0, Signal::KILL, || true));
        assert!(!signal_if(std::process::id(), Signal::KILL, || true));
    }
}
