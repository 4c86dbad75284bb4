//! Whether the other side of a connection is still there. TCP alone takes many minutes to say.

use super::limits::DEAD_AFTER;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// When something was last seen of the other side.
#[derive(Debug)]
pub(super) struct Pulse {
    begun: Instant,
    /// Milliseconds after the beginning: a number both directions may write at once.
    last: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse { begun: Instant::now(), last: AtomicU64::new(0) }
    }

    /// It said something, or it took what waited for it.
    pub(super) fn felt(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        let silent = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
        DEAD_AFTER <= Duration::from_millis(silent)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
