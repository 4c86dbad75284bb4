//! Permission requests of `jackfield run` without a terminal.

use crate::{
    fake_hub::{FakeHub, ReceivedMessages, agent_text, permission_request, prompt_response},
    home::{CommandOutcome, TestHome, wait_for},
};
use serde_json::{Value, json};

fn run(kind: &str, flags: &[&str]) -> (CommandOutcome, ReceivedMessages) {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[permission_request(1, kind)])
        .on("answer", &[agent_text("Done."), prompt_response("end_turn")])
        .on("session/cancel", &[prompt_response("cancelled")])
        .start(&home);
    let args = [&["run"], flags, &["hello", "--", "goose", "acp"]].concat();
    (home.run(&args), received)
}

fn chosen(received: &ReceivedMessages) -> Value {
    received.with_method("answer")[0]["result"]["outcome"]["optionId"].clone()
}

#[test]
fn request_is_denied_by_default_with_exit_code_5() {
    let (outcome, received) = run("edit", &[]);
    insta::assert_snapshot!("ask_denied", outcome.to_snapshot());
    assert_eq!((outcome.code, chosen(&received)), (5, json!("no")));
}

#[test]
fn approve_all_allows_each_request_once() {
    let (outcome, received) = run("execute", &["--approve", "all"]);
    insta::assert_snapshot!("ask_allowed", outcome.to_snapshot());
    assert_eq!((outcome.code, chosen(&received)), (0, json!("once")));
}

#[test]
fn request_that_approve_all_cannot_allow_fails_the_turn_with_exit_code_5() {
    let home = TestHome::new();
    let request = permission_request(1, "edit").replace("allow_", "reject_");
    let why = "no option allows it; the agent offers `Reject` (reject_once)";
    let error = json!({
        "code": -31024, "message": "permission request `Run cargo test` was not approved",
        "data": { "jackfield": { "code": "not_approved", "request": "Run cargo test", "why": why } },
    });
    let response = json!({ "jsonrpc": "2.0", "id": "$prompt", "error": error }).to_string();
    let received =
        FakeHub::new().on("session/prompt", &[request]).on("answer", &[response]).start(&home);
    let outcome = home.run(&["run", "--approve", "all", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("ask_not_approved", outcome.to_snapshot());
    assert_eq!(outcome.code, 5);
    let answer = &received.with_method("answer")[0]["result"];
    assert_eq!(answer["outcome"]["outcome"], "cancelled");
    assert!(answer["_meta"]["jackfield"]["failTurn"].is_string(), "{answer}");
    let opened = &received.with_method("session/new")[0]["params"];
    assert_eq!(opened["_meta"]["jackfield"]["approve"], "all");
}

#[test]
fn approve_reads_allows_reads_and_denies_writes() {
    let (outcome, received) = run("read", &["--approve", "reads"]);
    assert_eq!((outcome.code, chosen(&received)), (0, json!("once")));
    let (outcome, received) = run("edit", &["--approve", "reads"]);
    assert_eq!((outcome.code, chosen(&received)), (5, json!("no")));
}

#[test]
fn on_ask_fail_cancels_the_turn() {
    let (outcome, received) = run("edit", &["--on-ask", "fail"]);
    insta::assert_snapshot!("ask_failed", outcome.to_snapshot());
    assert_eq!((outcome.code, chosen(&received)), (5, json!("no")));
    assert_eq!(received.with_method("session/cancel").len(), 1);
}

#[test]
fn on_ask_wait_waits_for_another_client() {
    let home = TestHome::new();
    let settled = json!({
        "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 },
    });
    let received = FakeHub::new()
        .on(
            "session/prompt",
            &[
                permission_request(1, "edit"),
                settled.to_string(),
                agent_text("Done."),
                prompt_response("end_turn"),
            ],
        )
        .start(&home);
    let outcome = home.run(&["run", "--on-ask", "wait", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("ask_waits", outcome.to_snapshot());
    assert_eq!(outcome.code, 0);
    assert!(received.with_method("answer").is_empty());
}

#[test]
fn run_that_waits_for_an_answer_can_be_interrupted() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[permission_request(1, "edit")])
        .on("session/cancel", &[prompt_response("cancelled")])
        .start(&home);
    let running = home.start(&["run", "--on-ask", "wait", "hello", "--", "goose", "acp"], None);
    wait_for("the prompt", || !received.with_method("session/prompt").is_empty());
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().code, 130);
}
