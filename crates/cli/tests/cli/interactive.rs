//! `jackfield run --interactive` with a scripted hub.

use crate::{
    fake_hub::{
        CLOSE_CONNECTION, FakeHub, agent_text, hub_error, message_chunk, permission_request,
        prompt_response,
    },
    home::{TestHome, wait_for},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write as _;

const RUN: &[&str] = &["run", "-i", "--", "goose", "acp"];

fn with_json(args: &[&'static str]) -> Vec<&'static str> {
    [&["run", "-i", "--input", "json"], args, &["--", "goose", "acp"]].concat()
}

#[test]
fn every_line_is_a_prompt_of_the_same_session() {
    let home = TestHome::new();
    let lines = [
        message_chunk(1, "agent_thought_chunk", "Hm."),
        agent_text("Yes."),
        prompt_response("end_turn"),
    ];
    let received = FakeHub::new().on("session/prompt", &lines).start(&home);
    let outcome = home.run_with_input(RUN, "one\n\n  two  \nthree");
    insta::assert_snapshot!("interactive_text", outcome.to_snapshot());
    let prompts = received.with_method("session/prompt");
    let texts: Vec<&Value> = prompts.iter().map(|it| &it["params"]["prompt"][0]["text"]).collect();
    assert_eq!(texts, ["one", "  two", "three"]);
    assert!(prompts.iter().all(|it| it["params"]["sessionId"] == "s-new4lnliedxj"));
    assert_eq!(received.with_method("session/new").len(), 1);
    assert_eq!(received.with_method("session/close").len(), 1);
    let quiet = ["run", "-i", "--format", "quiet", "--", "goose", "acp"];
    insta::assert_snapshot!(
        "interactive_quiet",
        home.run_with_input(&quiet, "one\ntwo\n").to_snapshot()
    );
}

#[test]
fn prompt_of_the_command_line_comes_first() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    let outcome = home.run_with_input(&["run", "-i", "-s", "7f3", "--steer", "first"], "second\n");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let prompts = received.with_method("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"][0]["text"], "first");
    assert_eq!(prompts[0]["params"]["_meta"]["jackfield"]["steer"], true);
    assert_eq!(prompts[1]["params"]["prompt"][0]["text"], "second");
    assert_eq!(prompts[1]["params"].get("_meta"), None);
    assert!(received.with_method("session/close").is_empty(), "the session was running before");
}

#[test]
fn json_lines_carry_any_blocks_and_invalid_ones_are_exit_code_2() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Hi."), prompt_response("end_turn")])
        .start(&home);
    let blocks = json!([{ "type": "text", "text": "a" }, { "type": "new", "x": 1 }]);
    let input = format!("{}\nnonsense\n{{\"prompt\":\"b\"}}\n", json!({ "prompt": blocks }));
    let outcome = home.run_with_input(&with_json(&["--format", "json"]), &input);
    insta::assert_snapshot!("interactive_json", outcome.to_snapshot());
    assert_eq!(outcome.code, 2);
    let prompts = received.with_method("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"], blocks);
    assert_eq!(prompts[1]["params"]["prompt"][0]["text"], "b");
    assert!(outcome.stdout.lines().all(|it| it.starts_with("{\"jsonrpc\":\"2.0\"")));
}

#[test]
fn cancel_applies_to_all_earlier_prompts_only() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Working")])
        .on("session/cancel", &[prompt_response("cancelled")])
        .start(&home);
    let (running, mut stdin) = home.start_with_stdin(&with_json(&[]));
    stdin.write_all(b"{\"type\":\"cancel\"}\n{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n").unwrap();
    stdin.write_all(b"{\"type\":\"cancel\"}\n").unwrap();
    wait_for("the cancel", || received.with_method("session/cancel").len() == 1);
    stdin.write_all(b"{\"prompt\":\"c\"}\n").unwrap();
    wait_for("the next prompt", || received.with_method("session/prompt").len() == 2);
    stdin.write_all(b"{\"type\":\"cancel\"}\n").unwrap();
    drop(stdin);
    let outcome = running.finish();
    insta::assert_snapshot!("interactive_cancelled", outcome.to_snapshot());
    assert_eq!(outcome.code, 130);
    assert_eq!(received.with_method("session/prompt")[1]["params"]["prompt"][0]["text"], "c");
    assert_eq!(received.with_method("session/cancel").len(), 2);
    assert_eq!(received.methods().last().unwrap(), "session/close");
}

#[test]
fn ctrl_c_cancels_the_turn_and_the_next_prompt_runs() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Working")])
        .on("session/cancel", &[prompt_response("cancelled")])
        .start(&home);
    let (running, mut stdin) = home.start_with_stdin(RUN);
    for turn in 1..=2 {
        stdin.write_all(b"go\n").unwrap();
        wait_for("the prompt", || received.with_method("session/prompt").len() == turn);
        running.signal(Signal::INT);
        wait_for("the cancel", || received.with_method("session/cancel").len() == turn);
    }
    drop(stdin);
    let outcome = running.finish();
    insta::assert_snapshot!("interactive_interrupted", outcome.to_snapshot());
    assert_eq!(outcome.code, 130);
    assert_eq!(received.methods().last().unwrap(), "session/close");
}

#[test]
fn second_ctrl_c_exits_at_once() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    let (running, mut stdin) = home.start_with_stdin(RUN);
    stdin.write_all(b"go\n").unwrap();
    wait_for("the prompt", || !received.with_method("session/prompt").is_empty());
    running.signal(Signal::INT);
    wait_for("the cancel", || !received.with_method("session/cancel").is_empty());
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    assert!(received.with_method("session/close").is_empty(), "the hub is still stopping the turn");
}

#[test]
fn failed_turn_is_reported_and_the_next_one_runs() {
    let home = TestHome::new();
    let gone =
        hub_error(-31001, "the agent is gone", &json!({ "code": "agent_gone", "agent": "goose" }));
    let received = FakeHub::new().on("session/prompt", &[agent_text("Oh"), gone]).start(&home);
    let outcome = home.run_with_input(RUN, "one\ntwo\n");
    insta::assert_snapshot!("interactive_failed", outcome.to_snapshot());
    assert_eq!(outcome.code, 1);
    assert_eq!(received.with_method("session/prompt").len(), 2);
}

#[test]
fn requests_follow_the_flags_and_a_denial_is_exit_code_5() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[permission_request(3, "edit")])
        .on("answer", &[agent_text("Done."), prompt_response("end_turn")])
        .start(&home);
    let allowed = home.run_with_input(&["run", "-i", "--approve", "all"], "one\ntwo\n");
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    assert_eq!(received.with_method("answer")[1]["result"]["outcome"]["optionId"], "once");
    let denied = home.run_with_input(RUN, "one\ntwo\n");
    insta::assert_snapshot!("interactive_denied", denied.to_snapshot());
    assert_eq!(denied.code, 5);
}

#[test]
fn oversized_prompt_is_exit_code_2_and_the_next_one_runs() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Hi."), prompt_response("end_turn")])
        .start(&home);
    let (long, longer) = ("a".repeat((16 << 20) - 8), "b".repeat(17 << 20));
    let outcome = home.run_with_input(RUN, &format!("{long}\n{longer}\nhello\n"));
    insta::assert_snapshot!("interactive_too_long", outcome.to_snapshot());
    assert_eq!(outcome.code, 2);
    assert_eq!(received.with_method("session/prompt")[0]["params"]["prompt"][0]["text"], "hello");
    assert_eq!(home.run_with_input(&["run", "-", "--", "goose", "acp"], &longer).code, 2);
    assert_eq!(received.with_method("session/prompt").len(), 1);
}

#[test]
fn connection_closed_between_turns_is_exit_code_6() {
    let home = TestHome::new();
    let lines = [prompt_response("end_turn"), CLOSE_CONNECTION.to_owned()];
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let (running, mut stdin) = home.start_with_stdin(RUN);
    stdin.write_all(b"one\n").unwrap();
    let outcome = running.finish();
    insta::assert_snapshot!("interactive_hub_gone", outcome.to_snapshot());
    assert_eq!(outcome.code, 6);
}

#[test]
fn conflicting_flags_are_exit_code_2() {
    let home = TestHome::new();
    insta::assert_snapshot!(
        "interactive_no_wait",
        home.run(&["run", "-i", "--no-wait", "x"]).to_snapshot()
    );
    insta::assert_snapshot!("interactive_dash", home.run(&["run", "-i", "-"]).to_snapshot());
}
