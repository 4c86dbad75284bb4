//! A daemon that accepts connections and answers nothing.

use super::{BOUND, assert_locked_out, freeze, hanging_turn, said, stop_by_force};
use jackfield_e2e::{Home, client::PATIENCE, wait_for};
use rustix::process::Signal;
use std::{fs, process::Command};

#[test]
fn daemon_that_is_stopped_by_a_signal_is_reported_and_ended_by_force() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (_client, session) = hanging_turn(&home);
    freeze(&daemon);
    let commands: [&[&str]; 7] = [
        &[],
        &["ps"],
        &["daemon", "status"],
        &["daemon", "stop"],
        &["sessions", "list"],
        &["attach", &session],
        &["run", "hello", "--", "/bin/cat"],
    ];
    for said in assert_locked_out(&home, daemon.pid(), &commands) {
        assert!(said.contains("waited 10 s for "), "{said}");
    }
    let said = stop_by_force(&home, daemon);
    assert!(said.contains("running turns are interrupted"), "{said}");
    assert!(!said.contains("SIGKILL"), "it ended when it continued: {said}");
    let list = home.run(&["sessions", "list", "--format", "quiet"], BOUND);
    assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), session);
    let stopped = home.run(&["daemon", "stop"], BOUND);
    assert!(stopped.status.success());
}

#[test]
fn doctor_reports_a_daemon_that_hangs_and_does_not_open_its_journal() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    freeze(&daemon);
    let output = home.run(&["doctor", "daemon", "journal"], BOUND);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}{}", said(&output));
    assert!(
        told.contains(&format!("problem daemon    the daemon (pid {})", daemon.pid())),
        "{told}"
    );
    assert!(told.contains("jackfield daemon stop --force"), "{told}");
    assert!(told.contains("journal.db is in use by a daemon and was not checked"), "{told}");
    daemon.signal(Signal::CONT);
}

/// The loop of the daemon waits in the kernel, as for a network file system that does not answer: SIGTERM
/// is not handled.
#[test]
fn daemon_whose_loop_is_stuck_is_killed_and_nothing_is_left_of_it() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (client, session) = hanging_turn(&home);
    let policy = home.path().join("config/policy.toml");
    fs::create_dir_all(policy.parent().unwrap()).unwrap();
    // The rules are read when a client connects, and opening a FIFO waits for a writer.
    assert!(Command::new("mkfifo").arg(&policy).status().unwrap().success());
    let said = stop_by_force(&home, daemon);
    assert!(said.contains("the daemon did not exit within 5 s; sending SIGKILL"), "{said}");
    assert!(!home.socket().exists(), "its socket is removed");
    let ledger = fs::read_dir(home.path().join("state/ledger")).unwrap();
    assert_eq!(ledger.count(), 0, "its agents are accounted for");
    drop(client);
    fs::remove_file(policy).unwrap();
    let daemon = home.serve(&[]);
    let list = home.run(&["sessions", "list", "--format", "quiet"], BOUND);
    assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), session);
    daemon.signal(Signal::TERM);
    wait_for("the end", PATIENCE, || home.alive(&[]).is_empty().then_some(()));
}
