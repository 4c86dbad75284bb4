//! The errors of the command: message, hint and exit code.

use crate::{
    fake_hub::{
        CLOSE_CONNECTION, FakeHub, daemon_status, error_response, hub_error, prompt_response,
        session_row,
    },
    home::{CommandOutcome, TestHome},
};
use serde_json::json;

const RUN: &[&str] = &["run", "hello", "--", "goose", "acp"];

fn assert_failed(name: &str, code: i32, outcome: &CommandOutcome) {
    insta::assert_snapshot!(format!("error_{name}"), outcome.to_snapshot());
    assert_eq!(outcome.code, code, "{name}");
    assert_eq!(outcome.stdout, "", "errors are not printed on stdout");
}

/// Asserts the error of `run` when the hub answers a method with this line.
fn assert_run_fails(name: &str, code: i32, method: &str, line: &str) {
    let home = TestHome::new();
    FakeHub::new().on(method, &[line.to_owned()]).start(&home);
    assert_failed(name, code, &home.run(RUN));
}

#[test]
fn invalid_usage_is_exit_code_2() {
    let home = TestHome::new();
    assert_failed("unknown_command", 2, &home.run(&["fly"]));
    assert_failed("unknown_flag", 2, &home.run(&["ps", "--fast"]));
    assert_failed("bad_value", 2, &home.run(&["run", "--approve", "some", "hello"]));
    assert_failed("bad_socket", 2, &home.run(&["ps", "--socket", "127.0.0.1:7"]));
    assert_failed("bad_idle_after", 2, &home.run(&["serve", "--idle-after", "soon"]));
    assert_failed("no_prompt", 2, &home.run(&["run", "--", "goose", "acp"]));
    assert_failed("empty_prompt", 2, &home.run(&["run", " ", "--", "goose", "acp"]));
    assert_failed("empty_stdin", 2, &home.run(&["run", "-", "--", "goose", "acp"]));
    assert_failed(
        "no_directory",
        2,
        &home.run(&["run", "--cwd", "nowhere", "hello", "--", "goose"]),
    );
    assert_failed("isolated_session", 2, &home.run(&["run", "--isolated", "-s", "s-1", "hello"]));
    assert_failed("no_session_named", 2, &home.run(&["log"]));
}

#[test]
fn missing_fleet_address_is_exit_code_2_and_names_flag_and_variable() {
    let home = TestHome::new();
    assert_failed("fleet_not_named", 2, &home.run(&["fleet", "status"]));
    for args in [&["fleet", "hosts"][..], &["fleet", "audit"], &["host", "drain", "one"]] {
        let outcome = home.run(args);
        assert_eq!(outcome.code, 2, "{args:?}");
        let printed = outcome.to_snapshot();
        assert!(
            printed.contains("--fleet") && printed.contains("JACKFIELD_FLEET"),
            "{args:?}: {printed}"
        );
    }
}

#[test]
fn invalid_configuration_is_exit_code_2_and_names_the_line() {
    let home = TestHome::new();
    home.write_config("idle_after = 5\nagnets = 1\n");
    assert_failed("bad_config", 2, &home.run(&["serve"]));
}

#[test]
fn unknown_session_is_exit_code_4_and_ambiguous_ones_are_listed() {
    let home = TestHome::new();
    let rows = [
        session_row("s-7f3abcdefghi", "goose", "idle", "fix the parser"),
        session_row("s-7f4abcdefghi", "codex", "asks", "write tests"),
        session_row("s-zzzabcdefghi", "goose", "asleep", "fix the parser"),
    ];
    FakeHub::new().with_sessions(&rows).start(&home);
    assert_failed("no_session", 4, &home.run(&["log", "s-q"]));
    assert_failed("ambiguous_prefix", 4, &home.run(&["cancel", "s-7f"]));
    assert_failed("ambiguous_title", 4, &home.run(&["sessions", "show", "fix the parser"]));
    assert_failed("no_session_for_run", 4, &home.run(&["run", "-s", "nope", "hello"]));
}

#[test]
fn attach_without_live_session_is_exit_code_4() {
    let home = TestHome::new();
    FakeHub::new().with_sessions(&[session_row("s-1", "goose", "asleep", "x")]).start(&home);
    assert_failed("nothing_live", 4, &home.run(&["attach"]));
}

#[test]
fn unknown_agent_is_exit_code_4() {
    let home = TestHome::new();
    assert_failed("no_program", 4, &home.run(&["run", "hello", "--", "no-such-agent", "acp"]));
    assert_failed("no_program_for_acp", 4, &home.run(&["acp", "--", "./agent"]));
    let hub_data =
        json!({ "code": "no_agent", "why": "unknown agent `gose`; did you mean `goose`?" });
    let line = hub_error(-31004, "no agent to use: unknown agent `gose`", &hub_data);
    assert_run_fails("no_agent", 4, "_jackfield/connect", &line);
}

#[test]
fn unreachable_daemon_is_exit_code_6() {
    let home = TestHome::new();
    let socket = format!("unix://{}/other.sock", home.path().display());
    assert_failed("no_daemon_there", 6, &home.run(&["ps", "--socket", &socket]));
    assert_failed("no_daemon_for_acp", 6, &home.run(&["acp", "--socket", &socket, "--", "goose"]));
    assert_failed("no_token", 6, &home.run(&["ps", "--socket", "tcp://127.0.0.1:9"]));
    assert_failed("not_loopback", 2, &home.run(&["ps", "--socket", "tcp://192.168.0.1:9"]));
    assert_failed("nothing_to_cancel", 6, &home.run(&["cancel", "s-1"]));
    assert_failed("nothing_to_answer", 6, &home.run(&["answer", "s-1", "y"]));
    assert_failed("no_status", 6, &home.run(&["daemon", "status"]));
}

#[test]
fn daemon_that_closes_the_connection_is_exit_code_6() {
    let home = TestHome::new();
    FakeHub::new().on("session/prompt", &[CLOSE_CONNECTION.to_owned()]).start(&home);
    assert_failed("hub_gone", 6, &home.run(RUN));
    let hub_data = json!({ "code": "stopping" });
    assert_run_fails(
        "stopping",
        6,
        "session/new",
        &hub_error(-31007, "the hub is stopping", &hub_data),
    );
}

#[test]
fn daemon_that_cannot_start_is_exit_code_6_and_its_log_is_shown() {
    let home = TestHome::new();
    home.write_config("agnets = 1\n");
    assert_failed("not_started", 6, &home.run(&["daemon", "start"]));
}

#[test]
fn failed_agent_is_exit_code_1_with_status_and_stderr() {
    let hub_data = json!({
        "code": "agent_not_started", "agent": "goose", "why": "exit status 3",
        "stderr": "loading\nno provider is configured\n",
    });
    let line = hub_error(-31001, "agent `goose` could not be started: exit status 3", &hub_data);
    assert_run_fails("agent_not_started", 1, "initialize", &line);
    let hub_data = json!({
        "code": "agent_not_started", "agent": "goose", "stderr": "",
        "why": "`goose` was not found on PATH: No such file or directory (os error 2)",
    });
    assert_run_fails("agent_not_found", 1, "initialize", &hub_error(-31001, "x", &hub_data));
    let hub_data = json!({
        "code": "agent_gone", "agent": "goose", "status": "killed by signal 9",
        "stderr": "\u{1b}[31mout of memory\u{1b}[0m",
    });
    assert_run_fails("agent_gone", 1, "session/prompt", &hub_error(-31000, "x", &hub_data));
    let hub_data = json!({ "code": "interrupted", "why": "the daemon ended during the turn" });
    assert_run_fails("interrupted_turn", 1, "session/prompt", &hub_error(-31006, "x", &hub_data));
    let hub_data = json!({ "code": "overloaded", "what": "too many prompts wait in this session" });
    let message = "too much at once: too many prompts wait in this session";
    assert_run_fails("overloaded", 1, "session/prompt", &hub_error(-31002, message, &hub_data));
}

#[test]
fn session_that_cannot_be_resumed_is_exit_code_1() {
    let home = TestHome::new();
    let hub_data = json!({
        "code": "cannot_resume", "session": "s-7f3abcdefghi",
        "why": "the agent can neither resume nor load sessions",
    });
    FakeHub::new().on("session/prompt", &[hub_error(-31003, "x", &hub_data)]).start(&home);
    assert_failed("cannot_resume", 1, &home.run(&["run", "-s", "7f3", "hello"]));
}

#[test]
fn error_of_the_agent_is_shown_unchanged() {
    let line = error_response(&json!({ "code": -32000, "message": "Authentication required" }));
    assert_run_fails("auth_required", 1, "session/new", &line);
    let data = json!({ "details": "model `x` is not available" });
    let line =
        error_response(&json!({ "code": -32603, "message": "Internal error", "data": data }));
    assert_run_fails("agent_error", 1, "session/prompt", &line);
    assert_run_fails(
        "empty_error",
        1,
        "session/prompt",
        &error_response(&json!({ "code": -32603 })),
    );
}

#[test]
fn removed_session_is_exit_code_4_and_withdrawn_prompt_130() {
    let hub_data = json!({ "code": "session_not_found", "session": "s-new4lnliedxj" });
    let line = hub_error(-32002, "no session `s-new4lnliedxj`", &hub_data);
    assert_run_fails("session_removed", 4, "session/prompt", &line);
    let hub_data = json!({ "code": "cancelled" });
    assert_run_fails(
        "prompt_withdrawn",
        130,
        "session/prompt",
        &hub_error(-32800, "request cancelled", &hub_data),
    );
}

#[test]
fn daemon_that_does_not_answer_is_exit_code_6() {
    let home = TestHome::new();
    FakeHub::new().on("_jackfield/status", &[]).start(&home);
    let mut outcome = home.run(&["sessions", "list"]);
    // The fake hub is a thread of this process.
    outcome.stderr =
        outcome.stderr.replace(&format!("(pid {})", std::process::id()), "(pid [PID])");
    assert_failed("silent", 6, &outcome);
}

#[test]
fn full_disk_is_exit_code_1() {
    let home = TestHome::new();
    FakeHub::new().start(&home);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = home.command(&["ps"]).stdout(full).output().unwrap();
    insta::assert_snapshot!("error_full_disk", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn stopped_turn_is_exit_code_1_and_canceled_turn_130() {
    for reason in ["refusal", "max_tokens", "max_turn_requests", "something_new"] {
        assert_run_fails(
            &format!("stopped_{reason}"),
            1,
            "session/prompt",
            &prompt_response(reason),
        );
    }
    assert_run_fails("cancelled", 130, "session/prompt", &prompt_response("cancelled"));
}

#[test]
fn timeout_is_exit_code_3_and_cancels_the_turn() {
    let home = TestHome::new();
    let received =
        FakeHub::new().on("session/cancel", &[prompt_response("cancelled")]).start(&home);
    let outcome = home.run(&["run", "--timeout", "1", "hello", "--", "goose", "acp"]);
    assert_failed("timed_out", 3, &outcome);
    assert_eq!(received.with_method("session/cancel").len(), 1);
    assert_eq!(received.methods().last().unwrap(), "session/close");
}

#[test]
fn timeout_includes_the_start_of_the_agent() {
    let home = TestHome::new();
    FakeHub::new().on("session/new", &[]).start(&home);
    let outcome = home.run(&["run", "--timeout", "1", "hello", "--", "goose", "acp"]);
    assert_failed("timed_out_while_starting", 3, &outcome);
    let outcome = home.run(&["run", "--timeout", "2", "hello", "--", "goose", "acp"]);
    assert!(
        outcome.stderr.starts_with("waiting for goose to open a session…\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn removal_requires_confirmation() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    assert_failed("rm_without_yes", 2, &home.run(&["sessions", "rm", "7f3"]));
    assert!(received.with_method("session/delete").is_empty());
}

#[test]
fn failed_check_of_doctor_is_exit_code_1() {
    let home = TestHome::new();
    FakeHub::new()
        .on("_jackfield/status", &[crate::fake_hub::response(&daemon_status("0.0.0"))])
        .start(&home);
    let outcome = home.run(&["doctor", "daemon", "--format", "quiet"]);
    insta::assert_snapshot!("error_unhealthy", without_pid(&outcome.to_snapshot()));
    assert_eq!(outcome.code, 1);
}

/// The fake hub runs in the process of the test.
fn without_pid(printed: &str) -> String {
    printed.replace(&format!("pid {}", std::process::id()), "pid [PID]")
}
