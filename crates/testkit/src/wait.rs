//! Waiting for a condition, with a bound.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Asks until `condition` gives a value; panics with `what` after `bound`.
pub(crate) fn wait_for<T>(
    what: &str,
    bound: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begin.elapsed() < bound, "waited {bound:?} in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
