//! `jackfield attach` with lines from a pipe; `terminal.rs` uses a terminal.

use crate::{
    fake_hub::{
        CLOSE_CONNECTION, FakeHub, agent_text, hub_error, hub_event, message_chunk,
        permission_request, prompt_response, response, session_row,
    },
    home::{TestHome, wait_for},
    log::history,
};
use rustix::process::Signal;
use serde_json::json;
use std::{io::Write as _, process::Stdio};

fn head() -> String {
    response(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }))
}

fn attached() -> Vec<String> {
    [history(), vec![head()]].concat()
}

fn turn(seq: u64, what: &str, members: serde_json::Value) -> String {
    hub_event("turn", seq, what, members)
}

#[test]
fn attach_starts_with_the_last_turn_and_exits_at_the_end_of_stdin() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &attached()).start(&home);
    let outcome = home.run(&["attach", "7f3"]);
    insta::assert_snapshot!("attach", outcome.to_snapshot());
    assert_eq!(outcome.code, 0);
    let attached = received.with_method("_jackfield/attach");
    assert_eq!(attached[0]["params"]["observe"], true, "the first one is an observer");
    assert_eq!(attached[1]["params"], json!({ "sessionId": "s-7f3abcdefghi", "after": 13 }));
}

#[test]
fn attach_starts_at_the_given_event() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &attached()).start(&home);
    home.run(&["attach", "--all"]);
    home.run(&["attach", "--after", "9"]);
    let attached = received.with_method("_jackfield/attach");
    assert_eq!(attached.len(), 2);
    assert_eq!(attached[0]["params"]["after"], 0);
    assert_eq!(attached[1]["params"]["after"], 9);
}

#[test]
fn typed_line_is_a_prompt_and_attach_waits_for_its_turn() {
    let home = TestHome::new();
    let prompted = turn(19, "prompted", json!({ "turn": 4, "by": "us", "frame": {} }));
    let end = json!({ "turn": 4, "how": "stopped", "answer": { "stopReason": "end_turn" } });
    let ended = turn(21, "ended", end);
    let received = FakeHub::new()
        .on("_jackfield/attach", &[head()])
        .on(
            "session/prompt",
            &[prompted, agent_text("Gladly."), ended, prompt_response("end_turn")],
        )
        .start(&home);
    let outcome = home.run_with_input(&["attach", "7f3"], "\nGo on\n");
    insta::assert_snapshot!("attach_prompt", outcome.to_snapshot());
    home.run_with_input(&["attach", "7f3"], "/compact\n");
    let prompts = received.with_method("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"][0]["text"], "Go on");
    assert_eq!(
        prompts[1]["params"]["prompt"][0]["text"], "/compact",
        "commands of the agent are passed on"
    );
    assert!(received.with_method("session/close").is_empty(), "the session stays open");
}

#[test]
fn typed_line_answers_a_request() {
    let home = TestHome::new();
    let asked = hub_event("ask", 19, "asked", json!({ "ask": 1, "frame": {} }));
    let chosen =
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "always" } } });
    let answer = json!({ "ask": 1, "by": "us (c-2)", "answer": chosen });
    let answered = hub_event("ask", 20, "answered", answer);
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "asks", "fix the parser")])
        .on("_jackfield/attach", &[asked, permission_request(3, "execute"), head()])
        .on("answer", &[answered, CLOSE_CONNECTION.to_owned()])
        .start(&home);
    let mut child = home.command(&["attach", "--all"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"what?\na\n").unwrap();
    let output = child.wait_with_output().unwrap();
    insta::assert_snapshot!("attach_asks", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(6), "the hub closed the connection");
    assert_eq!(received.with_method("answer")[0]["result"]["outcome"]["optionId"], "always");
}

#[test]
fn cancel_command_cancels_the_turn() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &[head()]).start(&home);
    assert_eq!(home.run_with_input(&["attach"], "/cancel\n/quit\n").code, 0);
    wait_for("the cancel", || received.with_method("session/cancel").len() == 1);
}

#[test]
fn ctrl_c_cancels_a_running_turn_before_it_exits() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "working", "fix the parser")])
        .on("_jackfield/attach", &[message_chunk(18, "agent_message_chunk", "Working"), head()])
        .start(&home);
    // Stdin stays open without input.
    let mut command = home.command(&["attach", "--all"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    wait_for("the attach", || !received.with_method("_jackfield/attach").is_empty());
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    wait_for("the cancel", || received.with_method("session/cancel").len() == 1);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "detaching is not an error");
}

#[test]
fn refused_prompt_is_reported_with_its_exit_code() {
    let home = TestHome::new();
    let hub_data = json!({ "code": "overloaded", "what": "x" });
    FakeHub::new()
        .on("_jackfield/attach", &[head()])
        .on("session/prompt", &[hub_error(-31002, "too much at once: x", &hub_data)])
        .start(&home);
    let outcome = home.run_with_input(&["attach", "7f3"], "Go on\n");
    insta::assert_snapshot!("attach_refused", outcome.to_snapshot());
    assert_eq!(outcome.code, 1);
}

#[test]
fn exit_code_of_a_piped_prompt_is_that_of_its_failure() {
    let hub_data = json!({ "code": "agent_gone", "agent": "goose", "status": "exit status 1" });
    let error = hub_error(-31000, "agent `goose` ended: exit status 1", &hub_data);
    let failed = json!({ "turn": 4, "how": "interrupted", "answer": { "message": "it ended" } });
    let cases = [
        ("failed", vec![turn(19, "ended", failed), error.clone()], 1),
        ("refused", vec![prompt_response("refusal")], 1),
        ("canceled", vec![prompt_response("cancelled")], 0),
    ];
    for (name, answer, code) in cases {
        for format in ["text", "quiet"] {
            let home = TestHome::new();
            FakeHub::new()
                .with_sessions(&[session_row("s-new4lnliedxj", "goose", "idle", "")])
                .on("session/prompt", &answer)
                .start(&home);
            let args = ["attach", "--new", "-a", "goose", "--format", format];
            let outcome = home.run_with_input(&args, "hello\n");
            assert_eq!(outcome.code, code, "{name} {format}: {}", outcome.stderr);
        }
    }
    let home = TestHome::new();
    FakeHub::new().on("session/new", &[error]).start(&home);
    assert_eq!(home.run_with_input(&["attach", "--new", "-a", "goose"], "hello\n").code, 1);
}

#[test]
fn new_session_stays_open_after_attach_exits() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-new4lnliedxj", "goose", "idle", "")])
        .on("session/prompt", &[agent_text("Hi."), prompt_response("end_turn")])
        .start(&home);
    let by_name = home.run_with_input(&["attach", "--new", "-a", "goose"], "hello\n");
    insta::assert_snapshot!("attach_new", by_name.to_snapshot());
    let by_command = home.run_with_input(&["attach", "--cwd", "..", "--", "goose", "acp"], "");
    assert_eq!(by_command.code, 0, "{}", by_command.stderr);
    let mut agents = received.with_method("_jackfield/connect");
    agents.retain(|it| !it["params"]["agent"].is_null());
    assert_eq!(agents[0]["params"]["agent"], "goose");
    assert_eq!(agents[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    let opened = received.with_method("session/new");
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[1]["params"]["cwd"], json!(home.path().canonicalize().unwrap()));
    assert!(received.with_method("session/close").is_empty(), "the sessions stay open");
}

#[test]
fn agent_name_selects_among_running_sessions() {
    let home = TestHome::new();
    let mut older = session_row("s-abcdefghi111", "claude", "idle", "older");
    older["updatedAt"] = json!("2026-11-15T08:00:00.000Z");
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "idle", "fix the parser"), older])
        .on("_jackfield/attach", &[head()])
        .start(&home);
    assert_eq!(home.run(&["attach", "--all", "-a", "claude"]).code, 0);
    assert_eq!(
        received.with_method("_jackfield/attach")[0]["params"]["sessionId"],
        "s-abcdefghi111"
    );
    insta::assert_snapshot!("attach_none", home.run(&["attach", "-a", "codex"]).to_snapshot());
}

#[test]
fn attach_prints_json_events_envelopes_or_the_final_message() {
    let home = TestHome::new();
    let prompted = turn(19, "prompted", json!({ "turn": 4, "by": "us", "frame": {} }));
    let text = json!({ "type": "text", "text": "Gladly." });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": text });
    let meta = json!({ "jackfield": { "seq": 20, "at": 1_794_731_400_200_u64, "turn": 4 } });
    let params = json!({ "sessionId": "s-7f3abcdefghi", "update": update, "_meta": meta });
    let said = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    let end = json!({ "turn": 4, "how": "stopped", "answer": { "stopReason": "end_turn" } });
    let ended = turn(21, "ended", end);
    FakeHub::new()
        .on("_jackfield/attach", &[head()])
        .on("session/prompt", &[prompted, said.to_string(), ended, prompt_response("end_turn")])
        .start(&home);
    for format in ["json", "events", "envelopes", "quiet"] {
        let outcome = home.run_with_input(&["attach", "7f3", "--format", format], "Go on\n");
        insta::assert_snapshot!(format!("attach_{format}"), outcome.to_snapshot());
    }
}
