//! Waiting for a condition, with a bound. The only sleep in the suite, and never for luck.

use std::time::{Duration, Instant};

/// Polls until `condition` gives a value; panics with `what` after `bound`.
pub fn wait_for<T>(what: &str, bound: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begin.elapsed() < bound, "waited {bound:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
