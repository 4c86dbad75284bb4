//! One process, told apart from a later one that got the same number.

use super::Table;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A pid alone proves nothing: numbers are used again. Together with the start time it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
    pub(crate) start: u64,
}

impl Process {
    /// The process that has this number now, unless it is a zombie.
    pub(crate) fn find(pid: u32) -> Option<Process> {
        Table::system().row(pid).filter(|row| !row.zombie).map(|row| row.process)
    }

    /// Is this very process still running? A zombie is not.
    pub(crate) fn lives(self) -> bool {
        Process::find(self.pid) == Some(self)
    }

    /// Signals this very process; false if it is gone or we may not.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        signal_if(self.pid, signal, || Process::find(self.pid) == Some(self))
    }
}

/// Signals `pid` if the proof holds. The process is pinned before the proof is taken, so that a
/// number which changes hands in between reaches nobody.
pub(crate) fn signal_if(pid: u32, signal: Signal, proof: impl FnOnce() -> bool) -> bool {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if pid <= 1 || pid == std::process::id() {
        return false;
    }
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(pin) => proof() && pidfd_send_signal(pin, signal).is_ok(),
        // Old kernels and some sandboxes have no pidfd: the check just before must do.
        Err(Errno::NOSYS | Errno::PERM) => proof() && kill_process(number, signal).is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_with_another_start_time_is_never_signalled() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let real = Process::find(child.id()).unwrap();
        let recycled = Process { start: real.start + 1, ..real };
        assert!(!recycled.lives());
        assert!(!recycled.signal(Signal::KILL));
        assert!(real.lives());
        assert!(real.signal(Signal::KILL));
        child.wait().unwrap();
        assert!(!real.lives());
        assert!(!real.signal(Signal::KILL));
    }

    #[test]
    fn a_zombie_does_not_live() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while Process::find(pid).is_some() {
            assert!(std::time::Instant::now() < deadline, "`true` did not end");
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn neither_init_nor_we_ourselves_can_be_signalled() {
        assert!(!signal_if(1, Signal::KILL, || true));
        assert!(!signal_if(0, Signal::KILL, || true));
        assert!(!signal_if(std::process::id(), Signal::KILL, || true));
    }
}
