//! The only place that looks at a clock. It counts from the start and never goes back.

use jackfield_hub::Time;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The same, to measure with.
    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed()
    }

    /// How long until `at`; zero if it has passed.
    pub(crate) fn until(self, at: Time) -> Duration {
        Duration::from_millis(at.0).saturating_sub(self.elapsed())
    }
}
