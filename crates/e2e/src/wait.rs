//! Conditions with a bound in time. No test sleeps elsewhere.

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

/// Asserts that `round` can take less than `bound`: it is run up to three times.
/// A busy machine delays a round; a product that waits for a timer delays every round.
pub fn assert_takes_less(bound: Duration, mut round: impl FnMut() -> Duration) {
    let mut times = Vec::new();
    while times.len() < 3 {
        times.push(round());
        if times.last().is_some_and(|it| *it < bound) {
            return;
        }
    }
    panic!("every round took more than {bound:?}: {times:?}");
}
