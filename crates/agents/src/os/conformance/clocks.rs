//! Boots, clocks and timers.

use super::TestProcess;
use crate::os::{KillTimer, boot_id, current_start_time, start_time_span, time_since_boot};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn boot_id_is_known_and_stable() {
    assert!(!boot_id().is_empty());
    assert_eq!(boot_id(), boot_id());
    assert!(boot_id().chars().all(|it| it.is_ascii_hexdigit() || it == '-'));
}

#[test]
fn start_time_of_a_new_process_is_now() {
    let before = current_start_time();
    let child = TestProcess::sleeper();
    let start = child.identity().start;
    let after = current_start_time();
    assert!((before..=after).contains(&start), "{before} {start} {after}");
    assert!(0 < start_time_span(Duration::from_millis(100)));
    assert_eq!(start_time_span(Duration::ZERO), 0);
}

#[test]
fn time_since_boot_advances_at_least_as_fast_as_the_clock_without_sleep() {
    let (boot, awake) = (time_since_boot(), Instant::now());
    std::thread::sleep(Duration::from_millis(20));
    let awake = awake.elapsed();
    let passed = time_since_boot().saturating_sub(boot);
    assert!(awake <= passed, "{awake:?} {passed:?}");
}

#[test]
fn timer_kills_a_stopped_process_or_is_refused_with_the_reason() {
    if let Err(error) = KillTimer::new() {
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("fleet"), "{error}");
        return;
    }
    let is_alive_after_deadline = super::run_in_single_thread(|| {
        let mut timer = KillTimer::new().unwrap();
        timer.set_deadline(time_since_boot() + Duration::from_millis(30));
        // Nothing in this process runs until it is killed.
        let own = std::process::id().to_string();
        let _continued = Command::new("kill").args(["-STOP", &own]).status();
        std::thread::sleep(super::TIMEOUT);
        true
    });
    assert!(!is_alive_after_deadline);
}
