//! The socket file is removed or replaced under a running daemon.

use super::{BOUND, assert_locked_out, listening_pid, said, stop_by_force};
use jackfield_e2e::{Home, client::PATIENCE, home::finish, wait_for};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::Path,
    process::Command,
};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// What `daemon status` says.
fn status(command: Command) -> Value {
    let output = finish(command, BOUND);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

const STATUS: [&str; 4] = ["daemon", "status", "--format", "json"];

#[test]
fn socket_that_was_removed_or_replaced_is_created_again_and_commands_wait_for_it() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let removals: [fn(&Home); 3] = [
        |home| fs::remove_dir_all(home.path().join("run")).unwrap(),
        |home| fs::remove_file(home.socket()).unwrap(),
        |home| {
            // A socket on which no process listens.
            fs::remove_file(home.socket()).unwrap();
            drop(UnixListener::bind(home.socket()).unwrap());
        },
    ];
    for remove in removals {
        remove(&home);
        // Without a wait: the commands themselves have to wait.
        let output = home.run(&["ps"], BOUND);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(status(home.command(&STATUS))["pid"], daemon.pid());
        assert_eq!((mode(&home.path().join("run")), mode(&home.socket())), (0o700, 0o600));
    }
    assert!(home.said().contains("created the socket file again"), "{}", home.said());
    let answer = client.ask("_jackfield/status", &json!({}));
    assert!(answer["result"].is_object(), "a connection stays: {answer}");
    let output = home.run(&["daemon", "stop"], BOUND);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!home.socket().exists(), "the new file is removed, too");
}

#[test]
fn socket_on_which_another_process_listens_is_not_taken() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    fs::remove_file(home.socket()).unwrap();
    let other = UnixListener::bind(home.socket()).unwrap();
    let inode = |path: &Path| fs::symlink_metadata(path).unwrap().ino();
    let theirs = inode(&home.socket());
    wait_for("the daemon to try", PATIENCE, || {
        home.said()
            .contains("failed to create the removed or replaced socket file again")
            .then_some(())
    });
    assert!(home.said().contains("a daemon answers on"), "{}", home.said());
    assert_eq!(inode(&home.socket()), theirs);
    drop(other);
    wait_for("the daemon to listen", PATIENCE, || {
        (listening_pid(&home) == Some(daemon.pid())).then_some(())
    });
}

#[test]
fn daemon_with_another_runtime_directory_is_found_by_its_lock() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let elsewhere = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("JACKFIELD_RUNTIME_DIR", home.path().join("elsewhere"));
        command
    };
    let status = status(elsewhere(&STATUS));
    assert_eq!(status["pid"], daemon.pid());
    assert_eq!(status["address"], format!("unix://{}", home.socket().display()));
    let output = finish(elsewhere(&["sessions", "list"]), BOUND);
    assert!(output.status.success(), "{}", said(&output));
    let output = finish(elsewhere(&["daemon", "stop"]), BOUND);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("the daemon stopped"), "{}", said(&output));
    assert!(listening_pid(&home).is_none());
    drop(daemon);
}

#[test]
fn daemon_whose_socket_does_not_come_back_is_reported_and_ended_by_force() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    fs::remove_file(home.socket()).unwrap();
    // It is not ours to remove.
    fs::create_dir(home.socket()).unwrap();
    let commands: [&[&str]; 6] = [
        &[],
        &["ps"],
        &["daemon", "status"],
        &["daemon", "stop"],
        &["sessions", "list"],
        &["run", "hello", "--", "/bin/cat"],
    ];
    for said in assert_locked_out(&home, daemon.pid(), &commands) {
        assert!(said.contains("its socket did not appear within 5 s"), "{said}");
    }
    let said = stop_by_force(&home, daemon);
    assert!(said.contains("acknowledged events are in the journal"), "{said}");
    assert!(home.socket().is_dir());
}
