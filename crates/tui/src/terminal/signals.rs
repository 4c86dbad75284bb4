//! Signals that end the interface or give the terminal back to it.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivedSignal {
    Interrupt,
    /// Also when the terminal was closed.
    Terminate,
    /// The process was stopped and continues.
    Continue,
}

pub(super) struct SignalStreams {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    continued: Signal,
}

impl SignalStreams {
    pub(super) fn new() -> io::Result<SignalStreams> {
        const CONTINUE: i32 = rustix::process::Signal::CONT.as_raw();
        Ok(SignalStreams {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            continued: signal(SignalKind::from_raw(CONTINUE))?,
        })
    }

    /// The next signal. Safe to cancel.
    pub(super) async fn next(&mut self) -> ReceivedSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ReceivedSignal::Interrupt,
            _ = self.terminate.recv() => ReceivedSignal::Terminate,
            _ = self.hangup.recv() => ReceivedSignal::Terminate,
            _ = self.continued.recv() => ReceivedSignal::Continue,
        }
    }
}
