//! One process, as opposed to a later one with the same pid: alive, exited, pinned, signaled.

use super::{TestProcess, shell_with_descendant, wait_for};
use crate::os::{ProcessIdentity, ProcessPin, ProcessTable, Signal, signal_if};
use std::process::Command;
use std::time::Duration;

#[test]
fn this_process_is_in_the_table() {
    let row = ProcessTable::system().row(std::process::id()).unwrap();
    assert!(!row.zombie);
    assert_eq!(row.parent, std::os::unix::process::parent_id());
    let group = rustix::process::getpgrp().as_raw_nonzero().get().unsigned_abs();
    assert_eq!(row.group, group);
    assert!(ProcessTable::system().pids().contains(&std::process::id()));
    assert_eq!(ProcessTable::system().row(u32::MAX), None);
}

/// The parents of a client are followed up to the first process of the system.
#[test]
fn processes_of_other_users_have_rows() {
    let row = ProcessTable::system().row(1).unwrap();
    assert_eq!((row.process.pid, row.parent, row.zombie), (1, 0, false));
}

#[test]
fn executable_of_a_process_is_found() {
    let found = ProcessTable::system().executable(std::process::id()).unwrap();
    let own = std::env::current_exe().unwrap().canonicalize().unwrap();
    assert_eq!(found.canonicalize().unwrap(), own);
}

#[test]
fn process_with_another_start_time_is_never_signaled() {
    let mut child = TestProcess::sleeper();
    let real = child.identity();
    let recycled = ProcessIdentity { start: real.start + 1, ..real };
    assert!(!recycled.is_alive());
    assert!(!recycled.signal(Signal::KILL));
    assert!(real.is_alive());
    assert!(real.signal(Signal::KILL));
    child.child.wait().unwrap();
    assert!(!real.is_alive());
    assert!(!real.signal(Signal::KILL));
}

#[test]
fn zombie_has_a_row_and_is_not_alive() {
    let child = TestProcess::spawn(&mut Command::new("true"));
    wait_for("the exit", || ProcessIdentity::find(child.pid()).is_none().then_some(()));
    let row = ProcessTable::system().row(child.pid()).unwrap();
    assert!(row.zombie);
    assert!(!row.process.is_alive());
}

#[test]
fn init_and_this_process_are_never_signaled() {
    assert!(!signal_if(1, Signal::KILL, || true));
    assert!(!signal_if(0, Signal::KILL, || true));
    assert!(!signal_if(std::process::id(), Signal::KILL, || true));
}

#[test]
fn signal_needs_a_proof() {
    let child = TestProcess::sleeper();
    assert!(!signal_if(child.pid(), Signal::KILL, || false));
    assert!(child.identity().is_alive());
    assert!(signal_if(child.pid(), Signal::KILL, || true));
}

#[test]
fn exit_of_a_process_that_is_not_a_child_is_noticed() {
    let (_shell, grandchild) = shell_with_descendant("sleep 60 & echo $!; wait", None);
    let pin = ProcessPin::open(grandchild.process.pid).unwrap();
    assert!(pin.is_certain());
    assert!(!pin.has_exited());
    assert!(!pin.wait_for_exit(Duration::from_millis(20)));
    assert!(pin.signal(Signal::KILL));
    assert!(pin.wait_for_exit(super::TIMEOUT));
    wait_for("the reaping", || {
        ProcessTable::system().row(grandchild.process.pid).is_none().then_some(())
    });
    assert!(pin.has_exited());
    assert!(!pin.signal(Signal::KILL), "the pid is free for another process");
    assert!(ProcessPin::open(u32::MAX).is_none());
}
