//! Waiting for a condition, with a bound.

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
        assert!(begin.elapsed() < bound, "waited {bound:?} in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
