//! The clocks of macOS: start times are in microseconds since the epoch.

use super::kernel_calls;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// The time since some moment of this boot, including the time in which the machine slept.
pub fn time_since_boot() -> Duration {
    // Unlike the clock of `Instant`, this one continues while the machine sleeps.
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The start time that a process would have that starts now.
pub(crate) fn current_start_time() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    start_time_span(since_epoch.unwrap_or_default())
}

/// A duration in the unit of start times, rounded down.
pub(crate) fn start_time_span(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// An id that differs for each boot, so that pids and start times of earlier boots can be ignored.
/// Empty if it is unknown.
pub(crate) fn boot_id() -> String {
    kernel_calls::kernel_text(c"kern.bootsessionuuid").unwrap_or_default()
}
