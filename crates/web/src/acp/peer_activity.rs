//! Detects whether the peer of a connection is still alive. TCP alone needs many minutes.

use super::limits::DEAD_AFTER;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The time of the last activity of the peer.
#[derive(Debug)]
pub(super) struct PeerActivity {
    begun: Instant,
    /// Milliseconds since `begun`, an atomic that both directions may write.
    last: AtomicU64,
}

impl PeerActivity {
    pub(super) fn new() -> PeerActivity {
        PeerActivity { begun: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Records that the peer sent something or read our data.
    pub(super) fn mark_activity(&self) {
        self.last.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        let silent = self.elapsed_ms().saturating_sub(self.last.load(Ordering::Relaxed));
        DEAD_AFTER <= Duration::from_millis(silent)
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
