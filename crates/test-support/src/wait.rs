//! Waits for a condition, with a timeout.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Repeats `condition` until it returns a value. Panics with `what` after `bound`.
pub fn wait_for<T>(what: &str, bound: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begin.elapsed() < bound, "timed out after {bound:?} waiting for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
