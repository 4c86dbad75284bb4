//! Checks the clock: against the times that earlier events and files have, and against the steady clock of the system.

use super::{check_context::CheckContext, finding::DoctorFinding, journal::read_newest_event};
use jackfield_protocol::format_age;
use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Clocks of two machines that share a home directory may differ by this much.
const AHEAD_MAX: Duration = Duration::from_mins(2);
/// The correction of a clock by its service is slower than this during a run of the checks.
const JUMP_MAX: Duration = Duration::from_secs(2);
/// 2025-01-01, before this check was written.
const PLAUSIBLE_SECONDS_MIN: u64 = 1_735_689_600;
const SET_CLOCK: &str = "set the clock, on Linux with: sudo timedatectl set-ntp true";

pub(super) fn check_clock(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let (steady, wall) = context.started_at;
    let journal = context.paths.journal();
    let files = [&journal, &journal.with_extension("db-wal"), &context.paths.log()];
    let newest_file = files.into_iter().filter_map(|it| read_change_time(it)).max();
    let is_readable = !context.daemon().is_running || context.daemon().running().is_some();
    let newest_event = is_readable.then(|| read_newest_event(&journal)).flatten();
    vec![judge_clock(&ClockReading {
        now: since_epoch(SystemTime::now()),
        newest: newest_file.max(newest_event),
        started: since_epoch(wall),
        elapsed: steady.elapsed(),
    })]
}

fn read_change_time(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok().map(since_epoch)
}

/// Zero for times before 1970.
fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Times since 1970.
struct ClockReading {
    now: Duration,
    /// The time of the newest event or file of ours.
    newest: Option<Duration>,
    /// The time when the checks began, and how long they took by the steady clock.
    started: Duration,
    elapsed: Duration,
}

fn judge_clock(clock: &ClockReading) -> DoctorFinding {
    let expected = clock.started + clock.elapsed;
    let jump = expected.abs_diff(clock.now);
    let ahead = clock.newest.and_then(|it| it.checked_sub(clock.now)).unwrap_or_default();
    if clock.now.as_secs() < PLAUSIBLE_SECONDS_MIN {
        let found = "the clock is in the past: certificates are refused, and ages are wrong";
        DoctorFinding::problem(found, SET_CLOCK)
    } else if JUMP_MAX < jump {
        let found = format!("the clock was changed by {} s during these checks", jump.as_secs());
        DoctorFinding::warning(found, "find the program that sets it, and run only one of them")
    } else if AHEAD_MAX < ahead {
        let ahead = format_age(ahead.as_secs());
        let found =
            format!("the newest event or file is {ahead} in the future: the clock was set back");
        DoctorFinding::warning(found, SET_CLOCK)
    } else {
        DoctorFinding::ok("no event or file of ours is in the future")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    const NOW: Duration = Duration::from_hours(500_000);

    fn judge(now: Duration, newest: Option<Duration>, elapsed: Duration) -> DoctorFinding {
        judge_clock(&ClockReading { now, newest, started: NOW, elapsed })
    }

    #[test]
    fn clock_that_was_set_back_or_jumps_is_a_warning() {
        let second = Duration::from_secs(1);
        assert_eq!(judge(NOW, None, second).verdict, CheckVerdict::Ok);
        assert_eq!(
            judge(NOW, Some(Duration::from_hours(499_999)), second).verdict,
            CheckVerdict::Ok
        );
        assert_eq!(judge(NOW, Some(NOW + second), second).verdict, CheckVerdict::Ok);
        let ahead = judge(NOW, Some(NOW + Duration::from_hours(3)), second);
        assert_eq!(ahead.verdict, CheckVerdict::Warning);
        assert!(ahead.found.contains("3h in the future"), "{}", ahead.found);
        let jumped = judge(NOW + Duration::from_hours(1), None, second);
        assert_eq!(jumped.verdict, CheckVerdict::Warning);
        assert!(jumped.found.contains("by 3599 s"), "{}", jumped.found);
    }

    #[test]
    fn clock_without_a_battery_is_a_problem() {
        let reset = ClockReading {
            now: Duration::from_secs(9),
            newest: None,
            started: Duration::from_secs(8),
            elapsed: Duration::from_secs(1),
        };
        assert_eq!(judge_clock(&reset).verdict, CheckVerdict::Problem);
    }
}
