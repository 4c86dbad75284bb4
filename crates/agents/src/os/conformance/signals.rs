//! Signals as readable events, and the exit statuses of children.

use super::{TIMEOUT, run_in_single_thread};
use crate::os::{SignalReader, reap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::process::{Command, Stdio};

fn is_readable_within(signals: &SignalReader, timeout: std::time::Duration) -> bool {
    let timeout = Timespec::try_from(timeout).unwrap();
    poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&timeout)) == Ok(1)
}

/// Starts a shell, which the test reaps. Returns its pid.
fn start(script: &str) -> u32 {
    Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap().id()
}

#[test]
fn signals_are_readable_events_and_are_read_once() {
    assert!(run_in_single_thread(|| {
        let signals = SignalReader::block().unwrap();
        assert!(!is_readable_within(&signals, std::time::Duration::ZERO));
        kill_process(getpid(), Signal::TERM).unwrap();
        assert!(is_readable_within(&signals, TIMEOUT));
        let caught = signals.read_caught();
        assert!(caught.term && !caught.child);
        assert!(!is_readable_within(&signals, std::time::Duration::ZERO));
        // Blocked and not handled: it neither ends the process nor is it reported.
        kill_process(getpid(), Signal::HUP).unwrap();
        let caught = signals.read_caught();
        !caught.term && !caught.child
    }));
}

#[test]
fn exit_of_a_child_is_an_event_and_its_status_is_reaped() {
    assert!(run_in_single_thread(|| {
        let signals = SignalReader::block().unwrap();
        let child = start("exit 7");
        assert!(is_readable_within(&signals, TIMEOUT));
        assert!(signals.read_caught().child);
        let reaped = reap();
        assert!(reaped.childless);
        assert_eq!(reaped.ended.len(), 1);
        let ended = reaped.ended[0];
        (ended.pid, ended.code, ended.signal) == (child, Some(7), None)
    }));
}

#[test]
fn status_of_a_killed_child_is_its_signal() {
    assert!(run_in_single_thread(|| {
        let signals = SignalReader::block().unwrap();
        let child = start("exec sleep 60");
        assert!(!reap().childless);
        kill_process(Pid::from_raw(child.cast_signed()).unwrap(), Signal::KILL).unwrap();
        assert!(is_readable_within(&signals, TIMEOUT));
        let reaped = reap();
        reaped.ended.len() == 1
            && (reaped.ended[0].code, reaped.ended[0].signal) == (None, Some(libc::SIGKILL))
    }));
}
