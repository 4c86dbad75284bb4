//! Time in clock ticks since boot, the unit of start times in the process table.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

pub(crate) fn ticks_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // Neither part of a time since boot is negative.
    let part = |it: i64| u64::try_from(it).unwrap_or_default();
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    ticks_from_duration(Duration::new(part(now.tv_sec), nanos))
}

pub(crate) fn ticks_from_duration(time: Duration) -> u64 {
    let ticks = time.as_nanos() * u128::from(rustix::param::clock_ticks_per_second());
    u64::try_from(ticks / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::ProcessIdentity;

    #[test]
    fn start_time_of_a_new_process_is_now() {
        let before = ticks_since_boot();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = ProcessIdentity::find(child.id()).map(|it| it.start);
        child.wait().unwrap();
        // It may have exited before its start time was read.
        let now = ticks_since_boot();
        assert!(start.is_none_or(|it| (before..=now).contains(&it)), "{before} {start:?}");
    }
}
