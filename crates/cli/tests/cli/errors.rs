//! Every way to fail, with its words and its exit code, one by one.

use crate::{
    fake_hub::{FakeHub, HANG_UP, error, fault, row, status, stop},
    home::{Did, Home},
};
use serde_json::json;

const RUN: &[&str] = &["run", "hello", "--", "goose", "acp"];

fn failed(name: &str, code: i32, did: &Did) {
    insta::assert_snapshot!(format!("error_{name}"), did.told());
    assert_eq!(did.code, code, "{name}");
    assert_eq!(did.stdout, "", "an error is no data");
}

/// What `run` says when the hub answers a method with this line.
fn answered(name: &str, code: i32, method: &str, line: &str) {
    let home = Home::new();
    FakeHub::new().on(method, &[line.to_owned()]).start(&home);
    failed(name, code, &home.run(RUN));
}

#[test]
fn wrong_usage_is_2() {
    let home = Home::new();
    failed("unknown_command", 2, &home.run(&["fly"]));
    failed("unknown_flag", 2, &home.run(&["ps", "--fast"]));
    failed("bad_value", 2, &home.run(&["run", "--approve", "some", "hello"]));
    failed("bad_socket", 2, &home.run(&["ps", "--socket", "127.0.0.1:7"]));
    failed("bad_idle_after", 2, &home.run(&["serve", "--idle-after", "soon"]));
    failed("no_prompt", 2, &home.run(&["run", "--", "goose", "acp"]));
    failed("empty_prompt", 2, &home.run(&["run", " ", "--", "goose", "acp"]));
    failed("empty_stdin", 2, &home.run(&["run", "-", "--", "goose", "acp"]));
    failed("no_directory", 2, &home.run(&["run", "--cwd", "nowhere", "hello", "--", "goose"]));
    failed("isolated_session", 2, &home.run(&["run", "--isolated", "-s", "s-1", "hello"]));
    failed("no_session_named", 2, &home.run(&["log"]));
}

#[test]
fn command_for_a_fleet_that_is_not_named_is_2_and_names_flag_and_variable() {
    let home = Home::new();
    failed("fleet_not_named", 2, &home.run(&["fleet", "status"]));
    for args in [&["fleet", "hosts"][..], &["fleet", "audit"], &["host", "drain", "one"]] {
        let did = home.run(args);
        assert_eq!(did.code, 2, "{args:?}");
        let told = did.told();
        assert!(told.contains("--fleet") && told.contains("JACKFIELD_FLEET"), "{args:?}: {told}");
    }
}

#[test]
fn a_bad_configuration_is_2_and_says_where() {
    let home = Home::new();
    home.config("idle_after = 5\nagnets = 1\n");
    failed("bad_config", 2, &home.run(&["serve"]));
}

#[test]
fn no_such_session_is_4_and_ambiguous_ones_are_listed() {
    let home = Home::new();
    let rows = [
        row("s-7f3abcdefghi", "goose", "idle", "fix the parser"),
        row("s-7f4abcdefghi", "codex", "asks", "write tests"),
        row("s-zzzabcdefghi", "goose", "asleep", "fix the parser"),
    ];
    FakeHub::new().rows(&rows).start(&home);
    failed("no_session", 4, &home.run(&["log", "s-q"]));
    failed("ambiguous_prefix", 4, &home.run(&["cancel", "s-7f"]));
    failed("ambiguous_title", 4, &home.run(&["sessions", "show", "fix the parser"]));
    failed("no_session_for_run", 4, &home.run(&["run", "-s", "nope", "hello"]));
}

#[test]
fn nothing_to_attach_to_is_4() {
    let home = Home::new();
    FakeHub::new().rows(&[row("s-1", "goose", "asleep", "x")]).start(&home);
    failed("nothing_live", 4, &home.run(&["attach"]));
}

#[test]
fn no_such_agent_is_4() {
    let home = Home::new();
    failed("no_program", 4, &home.run(&["run", "hello", "--", "no-such-agent", "acp"]));
    failed("no_program_for_acp", 4, &home.run(&["acp", "--", "./agent"]));
    let ours = json!({ "code": "no_agent", "why": "no agent is called `goose`" });
    let line = fault(-31004, "no agent to use: no agent is called `goose`", &ours);
    answered("no_agent", 4, "_jackfield/connect", &line);
}

#[test]
fn an_unreachable_daemon_is_6() {
    let home = Home::new();
    let socket = format!("unix://{}/other.sock", home.path().display());
    failed("no_daemon_there", 6, &home.run(&["ps", "--socket", &socket]));
    failed("no_daemon_for_acp", 6, &home.run(&["acp", "--socket", &socket, "--", "goose"]));
    failed("no_token", 6, &home.run(&["ps", "--socket", "tcp://127.0.0.1:9"]));
    failed("not_loopback", 2, &home.run(&["ps", "--socket", "tcp://192.168.0.1:9"]));
    failed("nothing_to_cancel", 6, &home.run(&["cancel", "s-1"]));
    failed("nothing_to_answer", 6, &home.run(&["answer", "s-1", "y"]));
    failed("no_status", 6, &home.run(&["daemon", "status"]));
}

#[test]
fn a_daemon_that_goes_away_is_6() {
    let home = Home::new();
    FakeHub::new().on("session/prompt", &[HANG_UP.to_owned()]).start(&home);
    failed("hub_gone", 6, &home.run(RUN));
    let ours = json!({ "code": "stopping" });
    answered("stopping", 6, "session/new", &fault(-31007, "the hub is stopping", &ours));
}

#[test]
fn a_daemon_that_cannot_start_is_6_and_its_words_are_shown() {
    let home = Home::new();
    home.config("agnets = 1\n");
    failed("not_started", 6, &home.run(&["daemon", "start"]));
}

#[test]
fn an_agent_that_fails_is_1_with_status_and_stderr() {
    let ours = json!({
        "code": "agent_not_started", "agent": "goose", "why": "exit status 3",
        "stderr": "loading\nno provider is configured\n",
    });
    let line = fault(-31001, "agent `goose` could not be started: exit status 3", &ours);
    answered("agent_not_started", 1, "initialize", &line);
    let ours = json!({
        "code": "agent_not_started", "agent": "goose", "stderr": "",
        "why": "`goose` was not found on PATH: No such file or directory (os error 2)",
    });
    answered("agent_not_found", 1, "initialize", &fault(-31001, "x", &ours));
    let ours = json!({
        "code": "agent_gone", "agent": "goose", "status": "killed by signal 9",
        "stderr": "\u{1b}[31mout of memory\u{1b}[0m",
    });
    answered("agent_gone", 1, "session/prompt", &fault(-31000, "x", &ours));
    let ours = json!({ "code": "interrupted", "why": "the daemon ended during the turn" });
    answered("interrupted_turn", 1, "session/prompt", &fault(-31006, "x", &ours));
    let ours = json!({ "code": "overloaded", "what": "too many prompts wait in this session" });
    let message = "too much at once: too many prompts wait in this session";
    answered("overloaded", 1, "session/prompt", &fault(-31002, message, &ours));
}

#[test]
fn a_session_that_cannot_be_resumed_is_1() {
    let home = Home::new();
    let ours = json!({
        "code": "cannot_resume", "session": "s-7f3abcdefghi",
        "why": "the agent can neither resume nor load sessions",
    });
    FakeHub::new().on("session/prompt", &[fault(-31003, "x", &ours)]).start(&home);
    failed("cannot_resume", 1, &home.run(&["run", "-s", "7f3", "hello"]));
}

#[test]
fn what_the_agent_itself_answers_is_shown_as_it_is() {
    let line = error(&json!({ "code": -32000, "message": "Authentication required" }));
    answered("auth_required", 1, "session/new", &line);
    let data = json!({ "details": "model `x` is not available" });
    let line = error(&json!({ "code": -32603, "message": "Internal error", "data": data }));
    answered("agent_error", 1, "session/prompt", &line);
    answered("empty_error", 1, "session/prompt", &error(&json!({ "code": -32603 })));
}

#[test]
fn a_session_that_is_removed_meanwhile_is_4_and_a_withdrawn_prompt_130() {
    let ours = json!({ "code": "session_not_found", "session": "s-new4lnliedxj" });
    let line = fault(-32002, "no session `s-new4lnliedxj`", &ours);
    answered("session_removed", 4, "session/prompt", &line);
    let ours = json!({ "code": "cancelled" });
    answered("prompt_withdrawn", 130, "session/prompt", &fault(-32800, "request cancelled", &ours));
}

#[test]
fn a_daemon_that_does_not_answer_is_6() {
    let home = Home::new();
    FakeHub::new().on("_jackfield/status", &[]).start(&home);
    let mut did = home.run(&["sessions", "list"]);
    // The hub of the test is a thread of this process.
    did.stderr = did.stderr.replace(&format!("(pid {})", std::process::id()), "(pid [PID])");
    failed("silent", 6, &did);
}

#[test]
fn a_full_disk_is_1() {
    let home = Home::new();
    FakeHub::new().start(&home);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = home.command(&["ps"]).stdout(full).output().unwrap();
    insta::assert_snapshot!("error_full_disk", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_turn_that_stops_early_is_1_and_a_cancelled_one_130() {
    for reason in ["refusal", "max_tokens", "max_turn_requests", "something_new"] {
        answered(&format!("stopped_{reason}"), 1, "session/prompt", &stop(reason));
    }
    answered("cancelled", 130, "session/prompt", &stop("cancelled"));
}

#[test]
fn a_deadline_that_passes_is_3_and_the_turn_is_cancelled() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/cancel", &[stop("cancelled")]).start(&home);
    let did = home.run(&["run", "--timeout", "1", "hello", "--", "goose", "acp"]);
    failed("timed_out", 3, &did);
    assert_eq!(heard.all("session/cancel").len(), 1);
    assert_eq!(heard.methods().last().unwrap(), "session/close");
}

#[test]
fn a_deadline_counts_while_the_agent_starts() {
    let home = Home::new();
    FakeHub::new().on("session/new", &[]).start(&home);
    let did = home.run(&["run", "--timeout", "1", "hello", "--", "goose", "acp"]);
    failed("timed_out_while_starting", 3, &did);
    let did = home.run(&["run", "--timeout", "2", "hello", "--", "goose", "acp"]);
    assert!(did.stderr.starts_with("waiting for goose to open a session…\n"), "{}", did.stderr);
}

#[test]
fn removing_needs_a_yes() {
    let home = Home::new();
    let heard = FakeHub::new().start(&home);
    failed("rm_without_yes", 2, &home.run(&["sessions", "rm", "7f3"]));
    assert!(heard.all("session/delete").is_empty());
}

#[test]
fn a_doctor_that_finds_something_is_1() {
    let home = Home::new();
    FakeHub::new()
        .on("_jackfield/status", &[crate::fake_hub::result(&status("0.0.0"))])
        .start(&home);
    let did = home.run(&["doctor", "--format", "quiet"]);
    insta::assert_snapshot!("error_unhealthy", without_pid(&did.told()));
    assert_eq!(did.code, 1);
}

/// The scripted hub runs in the test's own process.
fn without_pid(told: &str) -> String {
    told.replace(&format!("pid {}", std::process::id()), "pid [PID]")
}
