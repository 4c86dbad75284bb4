//! The clocks of Linux: ticks since boot, the unit of start times in the process table.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since boot, including the time in which the machine slept.
pub fn time_since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // Neither part of a time since boot is negative.
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The start time that a process would have that starts now.
pub(crate) fn current_start_time() -> u64 {
    start_time_span(time_since_boot())
}

/// A duration in the unit of start times, rounded down.
pub(crate) fn start_time_span(time: Duration) -> u64 {
    let ticks = time.as_nanos() * u128::from(rustix::param::clock_ticks_per_second());
    u64::try_from(ticks / 1_000_000_000).unwrap_or(u64::MAX)
}
