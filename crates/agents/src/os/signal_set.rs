//! Sets of signals: which ones a guard blocks and handles, and how an agent gets the defaults back.
#![expect(unsafe_code, reason = "masking signals has no safe interface")]

use std::io;

/// Always blocked in the guard. SIGCHLD and SIGTERM arrive through the
/// [`SignalReader`](super::SignalReader), the others never.
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

/// What a [`SignalReader`](super::SignalReader) has read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CaughtSignals {
    pub(crate) child: bool,
    pub(crate) term: bool,
    /// The followed processes that have started another one.
    pub(crate) forked: Vec<u32>,
}

/// Blocks the signals in this thread, and makes sure that exit statuses are kept.
pub(super) fn block_signals() -> io::Result<()> {
    let blocked = signal_set(&BLOCKED);
    // If the parent process ignored SIGCHLD, exit statuses would be lost.
    // SAFETY: SIG_DFL is a valid disposition and no handler of ours is replaced; the set is
    // initialized and outlives the call; a null old set is allowed.
    let status = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut())
    };
    // It returns the error and does not set `errno`.
    if status == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(status)) }
}

/// Resets every signal to its default action and unblocks it, because masks and ignored signals
/// survive an exec. To be called between fork and exec.
pub(crate) fn reset_signals() {
    let none = signal_set(&[]);
    // SAFETY: the set is initialized and outlives the call; a null old set is allowed.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
    for number in 1..=libc::SIGSYS {
        // SAFETY: SIG_DFL is valid for all; KILL and STOP refuse, which does not matter.
        // `signal` is safe to call between fork and exec.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

pub(super) fn signal_set(numbers: &[libc::c_int]) -> libc::sigset_t {
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
