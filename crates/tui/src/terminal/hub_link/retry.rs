//! The delay before a lost connection is opened again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Grows with each failure.
#[derive(Debug)]
pub(super) struct RetryDelay(Duration);

impl Default for RetryDelay {
    fn default() -> RetryDelay {
        RetryDelay(FIRST)
    }
}

impl RetryDelay {
    /// A connection was opened.
    pub(super) fn reset(&mut self) {
        self.0 = FIRST;
    }

    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
