//! Time as the table of processes counts it: ticks since the machine started.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // Neither part of a time since boot is negative.
    let part = |it: i64| u64::try_from(it).unwrap_or_default();
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    of(Duration::new(part(now.tv_sec), nanos))
}

pub(crate) fn of(time: Duration) -> u64 {
    let ticks = time.as_nanos() * u128::from(rustix::param::clock_ticks_per_second());
    u64::try_from(ticks / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::Process;

    #[test]
    fn a_process_that_begins_now_begins_now() {
        let before = now();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = Process::find(child.id()).map(|it| it.start);
        child.wait().unwrap();
        // It may have ended before we looked.
        assert!(start.is_none_or(|it| (before..=now()).contains(&it)), "{before} {start:?}");
    }
}
