//! A process that is pinned by a descriptor of the system, so that its exit is noticed and a later
//! process with the same pid is not taken for it.

use super::system;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// The pause between checks where the system cannot pin.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A pinned process, which need not be a child.
#[derive(Debug)]
pub struct ProcessPin {
    pid: Pid,
    /// Becomes readable when the process exits. Absent on old kernels and in some sandboxes.
    descriptor: Option<OwnedFd>,
}

impl ProcessPin {
    /// Pins the process that has this pid now; `None` if there is none. The caller then checks
    /// whether it is the expected process.
    pub fn open(pid: u32) -> Option<ProcessPin> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        match system::process_pin::open(pid) {
            Ok(descriptor) => Some(ProcessPin { pid, descriptor: Some(descriptor) }),
            Err(Errno::NOSYS | Errno::PERM) => Some(ProcessPin { pid, descriptor: None }),
            Err(_) => None,
        }
    }

    /// Whether the system keeps the pin. If not, a check just before a signal must suffice.
    pub fn is_certain(&self) -> bool {
        self.descriptor.is_some()
    }

    /// Signals the process. Returns `false` if it has exited or the signal is not permitted.
    pub fn signal(&self, signal: Signal) -> bool {
        match &self.descriptor {
            Some(pin) => system::process_pin::signal(pin.as_fd(), self.pid, signal).is_ok(),
            None => kill_process(self.pid, signal).is_ok(),
        }
    }

    /// Whether the process has exited. A zombie has.
    pub fn has_exited(&self) -> bool {
        self.wait_for_exit(Duration::ZERO)
    }

    /// Waits for the exit; `false` after the timeout.
    pub fn wait_for_exit(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let Some(pin) = &self.descriptor else {
            while test_kill_process(self.pid).is_ok() {
                if deadline <= Instant::now() {
                    return false;
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
            return true;
        };
        retry_on_intr(|| {
            let left = deadline.saturating_duration_since(Instant::now());
            poll(&mut [PollFd::new(pin, PollFlags::IN)], Timespec::try_from(left).ok().as_ref())
        })
        .is_ok_and(|count| 0 < count)
    }

    /// A descriptor that becomes readable when the process exits, if the system keeps the pin.
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        self.descriptor
    }

    #[cfg(test)]
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }
}
