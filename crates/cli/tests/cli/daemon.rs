//! The real daemon: started on demand, looked at, stopped; and the hub inside a command.

use crate::{
    fake_hub::{FakeHub, HANG_UP, fault},
    home::{Home, wait_for},
};
use serde_json::{Value, json};

/// An agent of a few lines of shell: it greets, opens a session, and repeats what it is told.
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

fn status(home: &Home) -> Value {
    let did = home.run(&["daemon", "status", "--format", "json"]);
    assert_eq!(did.code, 0, "{}", did.stderr);
    serde_json::from_str(&did.stdout).unwrap()
}

#[test]
fn it_is_started_once_and_stopped() {
    let home = Home::new();
    let started = home.run(&["daemon", "start"]);
    assert_eq!(started.code, 0, "{}", started.stderr);
    let pid = status(&home)["pid"].as_u64().unwrap();
    assert_eq!(started.stderr, format!("the daemon started, pid {pid}\n"));
    let again = home.run(&["daemon", "start"]);
    assert_eq!(again.stderr, format!("the daemon already runs, pid {pid}\n"));
    assert_eq!(status(&home)["version"], "[VERSION]", "ours, and redacted");
    // Clients that have just left may still be counted.
    let told = home.run(&["daemon", "status"]).told().replace(&pid.to_string(), "[PID]");
    let told: Vec<&str> = told.lines().filter(|it| !it.starts_with("clients")).collect();
    insta::assert_snapshot!("daemon_status", told.join("\n"));
    let twice = home.run(&["serve"]).told().replace(&pid.to_string(), "[PID]");
    insta::assert_snapshot!("daemon_serve_twice", twice);
    insta::assert_snapshot!("daemon_stop", home.run(&["daemon", "stop"]).told());
    // It gives up its socket first and ends then.
    wait_for("the end of the daemon", || is_gone(pid));
    insta::assert_snapshot!("daemon_stop_again", home.run(&["daemon", "stop"]).told());
}

#[test]
fn the_token_is_printed_once_there_is_one() {
    let home = Home::new();
    let none = home.run(&["token"]);
    assert_eq!(none.code, 6, "{}", none.stderr);
    assert!(none.stderr.contains("jackfield daemon start"), "{}", none.stderr);
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    let kept = std::fs::read_to_string(home.path().join("state/jackfield/token")).unwrap();
    let did = home.run(&["token"]);
    assert_eq!((did.code, did.stdout.trim_end()), (0, kept.trim_end()));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

/// A process that has ended stays a zombie until its parent asks for its status.
fn is_gone(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn commands_that_need_one_start_it() {
    let home = Home::new();
    let did = home.run(&["sessions", "list"]);
    assert_eq!((did.code, did.stderr.as_str()), (0, "there are no sessions yet\n"));
    assert!(home.socket().exists());
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn right_after_a_stop_the_next_command_works() {
    let home = Home::new();
    for _ in 0..3 {
        let did = home.run(&["sessions", "list"]);
        assert_eq!(did.code, 0, "{}", did.stderr);
        assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    }
}

#[test]
fn a_daemon_on_its_way_out_is_waited_for_and_the_next_one_started() {
    let home = Home::new();
    let ours = json!({ "code": "stopping" });
    let stopping = fault(-31007, "the hub is stopping", &ours);
    // Its door closes with the last connection.
    let lines = [stopping, HANG_UP.to_owned()];
    FakeHub::new().on("_jackfield/status", &lines).start(&home);
    let did = home.run(&["sessions", "list"]);
    assert_eq!((did.code, did.stderr.as_str()), (0, "there are no sessions yet\n"));
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn many_commands_at_once_start_one_daemon() {
    let home = Home::new();
    let all: Vec<_> = (0..6).map(|_| home.start(&["sessions", "list"], None)).collect();
    for running in all {
        let did = running.finish();
        assert_eq!(did.code, 0, "{}", did.stderr);
    }
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_new_home_and_a_running_daemon() {
    let home = Home::new();
    insta::assert_snapshot!("doctor_new", home.run(&["doctor"]).told());
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    let pid = status(&home)["pid"].to_string();
    let told = home.run(&["doctor"]).told().replace(&pid, "[PID]");
    insta::assert_snapshot!("doctor_running", told);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    insta::assert_snapshot!("doctor_stopped", home.run(&["doctor"]).told());
    let json = home.run(&["doctor", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["checks"].as_array().unwrap().iter().all(|it| it["ok"] == true));
}

#[test]
fn the_doctor_says_what_is_wrong_and_how_to_fix_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.config("[agents.x]\ncommand = [\"no-such-agent\"]\n");
    let state = home.path().join("state/jackfield");
    std::fs::create_dir_all(state.join("ledger")).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(state.join("ledger/x.json"), "{}").unwrap();
    std::fs::write(state.join("journal.db"), "this is no database, and long enough to see it")
        .unwrap();
    std::fs::write(home.path().join("run/jackfield"), "").unwrap();
    let did = home.run(&["doctor"]);
    insta::assert_snapshot!("doctor_sick", did.told());
    assert_eq!(did.code, 1);
    home.config("agnets = 1\n");
    let told = home.run(&["doctor", "--format", "quiet"]).told();
    assert!(told.contains("unknown field `agnets`"), "{told}");
}

#[test]
fn serve_runs_in_the_foreground_until_it_is_told_to_stop() {
    let home = Home::new();
    let log = home.path().join("daemon.log");
    let running = home.start(&["serve", "--log", log.to_str().unwrap()], None);
    wait_for("the socket", || home.run(&["daemon", "status"]).code == 0);
    running.signal(rustix::process::Signal::TERM);
    let did = running.finish();
    insta::assert_snapshot!("serve", did.told());
    assert_eq!(did.code, 0);
    assert!(std::fs::read_to_string(log).unwrap().contains("daemon started"));
}

#[test]
fn a_prompt_works_through_the_daemon_and_without_one() {
    let home = Home::new();
    home.program("echo-agent", AGENT);
    let through = home.run(&["-q", "run", "hello", "--", "echo-agent"]);
    insta::assert_snapshot!("real_run", through.told());
    let listed = home.run(&["sessions", "list"]).stdout;
    assert!(listed.contains("echo-agent  closed"), "{listed}");
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    let without = home.run(&["run", "--isolated", "hello", "--", "echo-agent"]);
    assert_eq!((without.code, without.stdout.as_str()), (0, "I hear you.\n"));
    assert!(!home.socket().exists(), "no daemon was started");
}
