//! Waiting with a timeout.

use std::future::Future;
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it takes too long")
}

/// Runs blocking work on a thread and waits for it.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    within(tokio::task::spawn_blocking(work)).await.expect("the thread panicked")
}
