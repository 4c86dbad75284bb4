//! The only place that reads the wall clock.

use jackfield_hub::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long until `at`; zero if that has passed.
pub(crate) fn until(at: Time) -> Duration {
    Duration::from_millis(at.0.saturating_sub(now().0))
}
