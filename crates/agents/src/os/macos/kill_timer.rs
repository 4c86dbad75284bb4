//! macOS has no timer that kills a process.

use std::{convert::Infallible, io, time::Duration};

/// Kills this process at a deadline. Cannot be created on this system.
pub struct KillTimer {
    never: Infallible,
}

impl KillTimer {
    /// Fails on this system.
    pub fn new() -> io::Result<KillTimer> {
        let why = "this system has no timer that kills a stalled process; a host of a fleet needs \
                   Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Sets the deadline.
    pub fn set_deadline(&mut self, _deadline: Duration) {
        match self.never {}
    }
}
