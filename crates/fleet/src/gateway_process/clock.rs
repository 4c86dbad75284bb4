//! The only place that reads a clock. It counts from the start and is monotonic.

use jackfield_hub::Time;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(crate) struct MonotonicClock {
    start: Instant,
}

impl MonotonicClock {
    pub(crate) fn start() -> MonotonicClock {
        MonotonicClock { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The same, for measurements.
    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed()
    }

    /// How long until `at`; zero if that has passed.
    pub(crate) fn until(self, at: Time) -> Duration {
        Duration::from_millis(at.0).saturating_sub(self.elapsed())
    }
}
