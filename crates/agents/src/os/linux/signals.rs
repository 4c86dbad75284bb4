//! Signals as a file descriptor to wait for: exited children, and requests to stop.
#![expect(unsafe_code, reason = "signalfd has no safe interface")]

use crate::os::ProcessIdentity;
use crate::os::signal_set::{self, CaughtSignals};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

/// The blocked signals that the guard handles.
const HANDLED: [libc::c_int; 2] = [libc::SIGCHLD, libc::SIGTERM];

const RECORD_BYTES: usize = size_of::<libc::signalfd_siginfo>();

pub(crate) struct SignalReader {
    file: File,
}

impl SignalReader {
    /// Blocks the signals. For a process with one thread, because the mask belongs to the thread.
    pub(crate) fn block() -> io::Result<SignalReader> {
        signal_set::block_signals()?;
        let handled = signal_set::signal_set(&HANDLED);
        // SAFETY: the set is initialized and outlives the call.
        let fd = unsafe {
            libc::signalfd(-1, &raw const handled, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        Ok(SignalReader { file: File::from(unsafe { OwnedFd::from_raw_fd(fd) }) })
    }

    /// Reports the forks of a process from now on. Here orphans become children of the guard, so
    /// nothing has to be reported.
    #[expect(clippy::unused_self, reason = "other systems follow the process")]
    pub(crate) fn follow(&self, _process: ProcessIdentity) {}

    /// The signals that arrived since the last call. Never waits.
    pub(crate) fn read_caught(&self) -> CaughtSignals {
        let mut caught = CaughtSignals::default();
        let mut records = [0; 8 * RECORD_BYTES];
        while let Ok(count) = (&self.file).read(&mut records) {
            for record in records[..count].chunks_exact(RECORD_BYTES) {
                // The signal's number is the first field of a record.
                let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
                caught.child |= i32::try_from(number) == Ok(libc::SIGCHLD);
                caught.term |= i32::try_from(number) == Ok(libc::SIGTERM);
            }
            if count == 0 {
                break;
            }
        }
        caught
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
