//! `jackfield attach` with typed lines from a pipe; a real terminal is in `terminal`.

use crate::{
    fake_hub::{FakeHub, HANG_UP, ask, chunk, fact, fault, result, row, say, stop},
    home::{Home, wait_for},
    log::history,
};
use rustix::process::Signal;
use serde_json::json;
use std::{io::Write as _, process::Stdio};

fn head() -> String {
    result(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }))
}

fn attached() -> Vec<String> {
    [history(), vec![head()]].concat()
}

fn turn(seq: u64, what: &str, members: serde_json::Value) -> String {
    fact("turn", seq, what, members)
}

#[test]
fn it_begins_with_the_last_turn_and_leaves_when_nothing_is_typed() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &attached()).start(&home);
    let did = home.run(&["attach", "7f3"]);
    insta::assert_snapshot!("attach", did.told());
    assert_eq!(did.code, 0);
    let attached = heard.all("_jackfield/attach");
    assert_eq!(attached[0]["params"]["observe"], true, "the first one only looks");
    assert_eq!(attached[1]["params"], json!({ "sessionId": "s-7f3abcdefghi", "after": 13 }));
}

#[test]
fn it_begins_where_it_is_told_to() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &attached()).start(&home);
    home.run(&["attach", "--all"]);
    home.run(&["attach", "--after", "9"]);
    let attached = heard.all("_jackfield/attach");
    assert_eq!(attached.len(), 2);
    assert_eq!(attached[0]["params"]["after"], 0);
    assert_eq!(attached[1]["params"]["after"], 9);
}

#[test]
fn a_typed_line_is_a_prompt_and_its_turn_is_waited_for() {
    let home = Home::new();
    let prompted = turn(19, "prompted", json!({ "turn": 4, "by": "us", "frame": {} }));
    let end = json!({ "turn": 4, "how": "stopped", "answer": { "stopReason": "end_turn" } });
    let ended = turn(21, "ended", end);
    let heard = FakeHub::new()
        .on("_jackfield/attach", &[head()])
        .on("session/prompt", &[prompted, say("Gladly."), ended, stop("end_turn")])
        .start(&home);
    let did = home.run_with_input(&["attach", "7f3"], "\nGo on\n");
    insta::assert_snapshot!("attach_prompt", did.told());
    home.run_with_input(&["attach", "7f3"], "/compact\n");
    let prompts = heard.all("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"][0]["text"], "Go on");
    assert_eq!(prompts[1]["params"]["prompt"][0]["text"], "/compact", "the agent's own commands");
    assert!(heard.all("session/close").is_empty(), "the session goes on without us");
}

#[test]
fn asks_are_answered_inline() {
    let home = Home::new();
    let asked = fact("ask", 19, "asked", json!({ "ask": 1, "frame": {} }));
    let chosen =
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "always" } } });
    let answer = json!({ "ask": 1, "by": "us (c-2)", "answer": chosen });
    let answered = fact("ask", 20, "answered", answer);
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "asks", "fix the parser")])
        .on("_jackfield/attach", &[asked, ask(3, "execute"), head()])
        .on("answer", &[answered, HANG_UP.to_owned()])
        .start(&home);
    let mut child = home.command(&["attach", "--all"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"what?\na\n").unwrap();
    let output = child.wait_with_output().unwrap();
    insta::assert_snapshot!("attach_asks", String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(6), "the hub hung up");
    assert_eq!(heard.all("answer")[0]["result"]["outcome"]["optionId"], "always");
}

#[test]
fn cancel_is_a_word() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &[head()]).start(&home);
    assert_eq!(home.run_with_input(&["attach"], "/cancel\n/quit\n").code, 0);
    wait_for("the cancel", || heard.all("session/cancel").len() == 1);
}

#[test]
fn ctrl_c_cancels_a_running_turn_first() {
    let home = Home::new();
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "working", "fix the parser")])
        .on("_jackfield/attach", &[chunk(18, "agent_message_chunk", "Working"), head()])
        .start(&home);
    // A pipe that stays open: somebody who types nothing.
    let mut command = home.command(&["attach", "--all"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    wait_for("the attach", || !heard.all("_jackfield/attach").is_empty());
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    wait_for("the cancel", || heard.all("session/cancel").len() == 1);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "leaving is what was wanted");
}

#[test]
fn a_prompt_that_is_refused_is_reported_and_one_can_go_on() {
    let home = Home::new();
    let ours = json!({ "code": "overloaded", "what": "x" });
    FakeHub::new()
        .on("_jackfield/attach", &[head()])
        .on("session/prompt", &[fault(-31002, "too much at once: x", &ours)])
        .start(&home);
    let did = home.run_with_input(&["attach", "7f3"], "Go on\n");
    insta::assert_snapshot!("attach_refused", did.told());
    assert_eq!(did.code, 0);
}

#[test]
fn a_new_session_is_opened_and_stays() {
    let home = Home::new();
    let heard = FakeHub::new()
        .rows(&[row("s-new4lnliedxj", "goose", "idle", "")])
        .on("session/prompt", &[say("Hi."), stop("end_turn")])
        .start(&home);
    let by_name = home.run_with_input(&["attach", "--new", "-a", "goose"], "hello\n");
    insta::assert_snapshot!("attach_new", by_name.told());
    let by_command = home.run_with_input(&["attach", "--cwd", "..", "--", "goose", "acp"], "");
    assert_eq!(by_command.code, 0, "{}", by_command.stderr);
    let agents = heard.all("_jackfield/connect");
    assert_eq!(agents[0]["params"]["agent"], "goose");
    assert_eq!(agents[1]["params"]["agent"]["argv"], json!(["goose", "acp"]));
    let opened = heard.all("session/new");
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[1]["params"]["cwd"], json!(home.path().canonicalize().unwrap()));
    assert!(heard.all("session/close").is_empty(), "they go on without us");
}

#[test]
fn a_name_chooses_among_the_sessions_that_run() {
    let home = Home::new();
    let mut older = row("s-abcdefghi111", "claude", "idle", "older");
    older["updatedAt"] = json!("2026-11-15T08:00:00.000Z");
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "idle", "fix the parser"), older])
        .on("_jackfield/attach", &[head()])
        .start(&home);
    assert_eq!(home.run(&["attach", "--all", "-a", "claude"]).code, 0);
    assert_eq!(heard.all("_jackfield/attach")[0]["params"]["sessionId"], "s-abcdefghi111");
    insta::assert_snapshot!("attach_none", home.run(&["attach", "-a", "codex"]).told());
}

#[test]
fn programs_hear_a_session_as_json_events_envelopes_or_final_words() {
    let home = Home::new();
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
        .on("session/prompt", &[prompted, said.to_string(), ended, stop("end_turn")])
        .start(&home);
    for format in ["json", "events", "envelopes", "quiet"] {
        let did = home.run_with_input(&["attach", "7f3", "--format", format], "Go on\n");
        insta::assert_snapshot!(format!("attach_{format}"), did.told());
    }
}
