//! The runtime directory where no variable names one: nothing that another user puts into the temporary
//! directory keeps the daemon or a command from working.

use jackfield_e2e::{Home, home::finish};
use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);
/// Any user but ours: `nobody` on most systems.
const ANOTHER_UID: u32 = 65534;

/// A command that has to choose its runtime directory; `TMPDIR` is the home.
fn command(home: &Home, state: &Path, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env_remove("JACKFIELD_RUNTIME_DIR").env("JACKFIELD_STATE_DIR", state);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn in_temp(home: &Home) -> PathBuf {
    home.path().join(format!("jackfield-{}", rustix::process::getuid().as_raw()))
}

/// Puts a link in place of our directory, as another user could.
fn plant_link(home: &Home) {
    symlink(home.path(), in_temp(home)).unwrap();
}

/// Starts, finds and stops a daemon, and returns where it listened.
fn listened_at(home: &Home) -> String {
    let state = home.path().join("state");
    let run = |args: &[&str]| {
        let output = finish(command(home, &state, args), BOUND);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        output.stdout
    };
    run(&["daemon", "start"]);
    let status = run(&["daemon", "status", "--format", "json"]);
    run(&["daemon", "stop"]);
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    status["address"].as_str().unwrap().trim_start_matches("unix://").to_owned()
}

#[test]
fn link_in_the_temporary_directory_does_not_block_the_daemon() {
    let home = Home::new();
    plant_link(&home);
    let socket = home.path().join("state/run/hub.sock");
    assert_eq!(Path::new(&listened_at(&home)), socket);
    fs::remove_file(in_temp(&home)).unwrap();
    assert_eq!(Path::new(&listened_at(&home)), socket, "it stays where it is");
}

#[test]
fn directory_of_another_user_in_the_temporary_directory_does_not_block_the_daemon() {
    let home = Home::new();
    assert_eq!(Path::new(&listened_at(&home)), in_temp(&home).join("hub.sock"));
    if chown(in_temp(&home), Some(ANOTHER_UID), None).is_err() {
        // Only root can make a directory of another user.
        assert!(!rustix::process::geteuid().is_root());
        return;
    }
    assert_eq!(Path::new(&listened_at(&home)), home.path().join("state/run/hub.sock"));
}

#[test]
fn socket_path_that_is_too_long_is_named_with_the_limit_and_a_way_out() {
    let home = Home::new();
    plant_link(&home);
    let state = home.path().join("s".repeat(100));
    for args in [&["daemon", "status"][..], &["daemon", "start"], &["serve"]] {
        let output = finish(command(&home, &state, args), BOUND);
        let said = said(&output);
        assert!(!output.status.success(), "{args:?}");
        assert!(
            said.contains("the limit is 107") && said.contains("JACKFIELD_RUNTIME_DIR"),
            "{said}"
        );
    }
}
