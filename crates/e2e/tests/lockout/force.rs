//! `daemon stop --force` where no force is needed, and where it must not be used.

use super::{BOUND, freeze, hanging_turn, listening_pid, said, stop_by_force};
use jackfield_e2e::{Home, client::PATIENCE, home::finish, wait_for};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

#[test]
fn healthy_daemon_is_stopped_by_a_request_also_with_force() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    assert_eq!(stop_by_force(&home, daemon), "the daemon stopped\n");
    let output = home.run(&["daemon", "stop", "--force"], BOUND);
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), "no daemon is running\n"));
}

#[test]
fn process_that_only_has_the_pid_of_the_lock_file_is_not_ended() {
    let home = Home::new();
    let mut bystander = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    fs::create_dir_all(home.path().join("state")).unwrap();
    let path = home.path().join("state/lock");
    fs::write(&path, format!("{}\n{}\n", bystander.id(), home.socket().display())).unwrap();
    let lock = File::open(&path).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let output = home.run(&["daemon", "stop", "--force"], BOUND);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains(&format!("the file names process {}", bystander.id())), "{said}");
    assert!(bystander.try_wait().unwrap().is_none(), "an unrelated process was signalled");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn force_is_refused_below_an_agent_and_for_a_named_socket() {
    let home = Home::new();
    let socket = format!("unix://{}", home.socket().display());
    let output = home.run(&["--socket", &socket, "daemon", "stop", "--force"], BOUND);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    fs::create_dir_all(home.path().join("state")).unwrap();
    let path = home.path().join("state/lock");
    fs::write(&path, format!("{}\n", std::process::id())).unwrap();
    let lock = File::open(&path).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut command = home.command(&["daemon", "stop", "--force"]);
    command.env("JACKFIELD_AGENT_MARK", "mark");
    let output = finish(command, BOUND);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("is for the operator"), "{}", said(&output));
}

#[test]
fn restart_starts_a_daemon_where_none_runs_and_replaces_one_that_runs_or_hangs() {
    let home = Home::new();
    let restart = |args: &[&str]| {
        let output = home.run(&[&["daemon", "restart"], args].concat(), BOUND);
        assert!(output.status.success(), "{}", said(&output));
        (listening_pid(&home).unwrap(), said(&output))
    };
    let (first, told) = restart(&[]);
    assert_eq!(told, format!("no daemon is running\nthe daemon started, pid {first}\n"));
    let (second, told) = restart(&[]);
    assert_eq!(told, format!("the daemon stopped\nthe daemon started, pid {second}\n"));
    assert_ne!(first, second);
    assert!(home.run(&["daemon", "stop"], BOUND).status.success());

    let mut daemon = home.serve(&[]);
    let (_client, session) = hanging_turn(&home);
    freeze(&daemon);
    let (third, told) = restart(&["--force"]);
    wait_for("the end of the daemon", PATIENCE, || daemon.ended());
    assert!(told.contains("does not answer and is killed") && third != daemon.pid(), "{told}");
    let list = home.run(&["sessions", "list", "--format", "quiet"], BOUND);
    assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), session);
    assert!(home.run(&["daemon", "stop"], BOUND).status.success());
}
