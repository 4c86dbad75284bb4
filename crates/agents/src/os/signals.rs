//! Signals as a file descriptor to wait for: exited children, and requests to stop.
#![expect(unsafe_code, reason = "masking signals and signalfd have no safe interface")]

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

/// Always blocked in the guard. Those of [`HANDLED`] arrive through the descriptor, the others
/// never.
const BLOCKED: [libc::c_int; 8] = [
    libc::SIGCHLD,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
];
/// The blocked signals that the guard handles.
const HANDLED: [libc::c_int; 2] = [libc::SIGCHLD, libc::SIGTERM];

const RECORD_BYTES: usize = size_of::<libc::signalfd_siginfo>();

pub(crate) struct SignalReader {
    file: File,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CaughtSignals {
    pub(crate) child: bool,
    pub(crate) term: bool,
}

impl SignalReader {
    /// Blocks the signals. For a process with one thread, because the mask belongs to the thread.
    pub(crate) fn block() -> io::Result<SignalReader> {
        // If the parent process ignored SIGCHLD, exit statuses would be lost.
        // SAFETY: SIG_DFL is a valid disposition and no handler of ours is replaced.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let (blocked, handled) = (signal_set(&BLOCKED), signal_set(&HANDLED));
        // SAFETY: both sets are initialized and outlive the calls; a null old set is allowed.
        let fd = unsafe {
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut()) != 0
            {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const handled, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        Ok(SignalReader { file: File::from(unsafe { OwnedFd::from_raw_fd(fd) }) })
    }

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

/// Resets every signal to its default action and unblocks it, because masks and ignored signals
/// survive an exec. To be called between fork and exec.
pub(super) fn reset_signals() {
    let none = signal_set(&[]);
    // SAFETY: the set is initialized and outlives the call; a null old set is allowed.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
    for number in 1..=libc::SIGSYS {
        // SAFETY: SIG_DFL is valid for all; KILL and STOP refuse, which does not matter.
        // `signal` is safe to call between fork and exec.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

fn signal_set(numbers: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigemptyset initializes the set before anything reads it; the numbers are valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
        set
    }
}
