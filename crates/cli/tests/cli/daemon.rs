//! The real daemon: started on demand, inspected, stopped; and the hub inside a command.

use crate::{
    fake_hub::{CLOSE_CONNECTION, FakeHub, hub_error},
    home::{TestHome, wait_for},
};
use serde_json::{Value, json};

/// A minimal agent as a shell script.
pub(crate) const AGENT: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1}}" ;;
    *'"session/new"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"one\"}}" ;;
    *'"session/prompt"'*)
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I hear you."}}}}'
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}}" ;;
  esac
done"#;

pub(crate) fn read_status(home: &TestHome) -> Value {
    let outcome = home.run(&["daemon", "status", "--format", "json"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn daemon_starts_once_and_stops() {
    let home = TestHome::new();
    let started = home.run(&["daemon", "start"]);
    assert_eq!(started.code, 0, "{}", started.stderr);
    let pid = read_status(&home)["pid"].as_u64().unwrap();
    assert_eq!(started.stderr, format!("the daemon started, pid {pid}\n"));
    let again = home.run(&["daemon", "start"]);
    assert_eq!(again.stderr, format!("the daemon is already running, pid {pid}\n"));
    assert_eq!(read_status(&home)["version"], "[VERSION]", "the version of this build, redacted");
    // Clients that have just disconnected may still be counted.
    let printed = home.run(&["daemon", "status"]).to_snapshot().replace(&pid.to_string(), "[PID]");
    let printed: Vec<&str> = printed.lines().filter(|it| !it.starts_with("clients")).collect();
    insta::assert_snapshot!("daemon_status", printed.join("\n"));
    let twice = home.run(&["serve"]).to_snapshot().replace(&pid.to_string(), "[PID]");
    insta::assert_snapshot!("daemon_serve_twice", twice);
    insta::assert_snapshot!("daemon_stop", home.run(&["daemon", "stop"]).to_snapshot());
    // The daemon removes its socket before it exits.
    wait_for("the daemon to exit", || has_exited(pid));
    insta::assert_snapshot!("daemon_stop_again", home.run(&["daemon", "stop"]).to_snapshot());
}

#[test]
fn token_is_printed_after_the_daemon_has_created_it() {
    let home = TestHome::new();
    let none = home.run(&["token"]);
    assert_eq!(none.code, 6, "{}", none.stderr);
    assert!(none.stderr.contains("jackfield daemon start"), "{}", none.stderr);
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    let stored = std::fs::read_to_string(home.path().join("state/jackfield/token")).unwrap();
    let outcome = home.run(&["token"]);
    assert_eq!((outcome.code, outcome.stdout.trim_end()), (0, stored.trim_end()));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

/// A process that has exited stays a zombie until its parent reaps it.
fn has_exited(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn command_that_needs_a_daemon_starts_it() {
    let home = TestHome::new();
    let outcome = home.run(&["sessions", "list"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, "there are no sessions yet\n"));
    assert!(home.socket().exists());
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn command_right_after_a_stop_starts_a_new_daemon() {
    let home = TestHome::new();
    for _ in 0..3 {
        let outcome = home.run(&["sessions", "list"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    }
}

#[test]
fn stopping_daemon_is_waited_for_and_a_new_one_is_started() {
    let home = TestHome::new();
    let hub_data = json!({ "code": "stopping" });
    let stopping = hub_error(-31007, "the hub is stopping", &hub_data);
    // The fake hub removes its socket when it closes the connection.
    let lines = [stopping, CLOSE_CONNECTION.to_owned()];
    FakeHub::new().on("_jackfield/status", &lines).start(&home);
    let outcome = home.run(&["sessions", "list"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, "there are no sessions yet\n"));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn concurrent_commands_start_one_daemon() {
    let home = TestHome::new();
    let all: Vec<_> = (0..6).map(|_| home.start(&["sessions", "list"], None)).collect();
    for running in all {
        let outcome = running.finish();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn removed_current_directory_is_named() {
    let home = TestHome::new();
    let dir = home.path().join("project/gone");
    std::fs::create_dir(&dir).unwrap();
    let script = r#"rmdir "$PWD" && exec "$0" run hi -- goose"#;
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_jackfield")])
        .current_dir(&dir)
        .env("HOME", home.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("project/gone`: No such file or directory"), "{stderr}");
}

#[test]
fn serve_runs_in_the_foreground_until_sigterm() {
    let home = TestHome::new();
    let log = home.path().join("daemon.log");
    let running = home.start(&["serve", "--log", log.to_str().unwrap()], None);
    wait_for("the socket", || home.run(&["daemon", "status"]).code == 0);
    running.signal(rustix::process::Signal::TERM);
    let outcome = running.finish();
    insta::assert_snapshot!("serve", outcome.to_snapshot());
    assert_eq!(outcome.code, 0);
    assert!(std::fs::read_to_string(log).unwrap().contains("daemon started"));
}

#[test]
fn prompt_works_with_and_without_a_daemon() {
    let home = TestHome::new();
    home.write_program("echo-agent", AGENT);
    let through = home.run(&["-q", "run", "hello", "--", "echo-agent"]);
    insta::assert_snapshot!("real_run", through.to_snapshot());
    let listed = home.run(&["sessions", "list"]).stdout;
    assert!(listed.contains("echo-agent  closed"), "{listed}");
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    let without = home.run(&["run", "--isolated", "hello", "--", "echo-agent"]);
    assert_eq!((without.code, without.stdout.as_str()), (0, "I hear you.\n"));
    assert!(!home.socket().exists(), "no daemon was started");
}

/// The command as cron, sudo or a container runs it, without `XDG_RUNTIME_DIR`.
fn command_without_runtime_dir(home: &TestHome, args: &[&str]) -> std::process::Command {
    let mut command = home.command(args);
    command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", home.path());
    command
}

fn stdout_of(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn daemon_is_found_with_and_without_the_runtime_dir_variable() {
    type MakeCommand = fn(&TestHome, &[&str]) -> std::process::Command;
    let directions: [(MakeCommand, MakeCommand); 2] = [
        (TestHome::command, command_without_runtime_dir),
        (command_without_runtime_dir, TestHome::command),
    ];
    for (command_of_daemon, command) in directions {
        let home = TestHome::new();
        home.write_program("echo-agent", AGENT);
        let run = ["run", "--keep", "--format", "quiet", "hello", "--", "echo-agent"];
        stdout_of(&mut command_of_daemon(&home, &run));
        let status = |command: &mut std::process::Command| {
            serde_json::from_str::<Value>(&stdout_of(command)).unwrap()
        };
        let args = ["daemon", "status", "--format", "json"];
        let started = status(&mut command_of_daemon(&home, &args));
        let found = status(&mut command(&home, &args));
        assert_eq!((&found["pid"], &found["address"]), (&started["pid"], &started["address"]));
        let ps = stdout_of(&mut command(&home, &["ps", "--format", "quiet"]));
        assert!(ps.starts_with("s-"), "{ps}");
        let doctor = stdout_of(&mut command(&home, &["doctor", "daemon"]));
        assert!(doctor.contains(started["address"].as_str().unwrap()), "{doctor}");
        // Another daemon listens on the socket of this environment.
        let other = home.path().join("other-state");
        stdout_of(command(&home, &["daemon", "start"]).env("XDG_STATE_HOME", &other));
        let found = status(&mut command(&home, &args));
        assert_eq!(found["pid"], started["pid"], "the daemon of the state directory is used");
        stdout_of(command(&home, &["daemon", "stop"]).env("XDG_STATE_HOME", &other));
        stdout_of(&mut command(&home, &["daemon", "stop"]));
    }
}
