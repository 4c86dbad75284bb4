//! `jackfield queue`, `run --steer`, `/steer` and `sessions fork`: prompts that wait, and other ways
//! to go on.

use crate::{
    fake_hub::{FakeHub, Heard, fault, result, row, stop},
    home::{Did, Home, wait_for},
};
use serde_json::{Value, json};

fn prompts() -> Value {
    let prompt = |number: u64, text: &str, held: bool| {
        json!({
            "prompt": number, "by": "zed (c-3)", "text": text, "held": held,
            "since": "2026-11-15T08:30:00.123Z",
        })
    };
    json!({ "prompts": [prompt(4, "then run the\ttests", false), prompt(2, "and commit", true)] })
}

fn queue(args: &[&str]) -> (Did, Heard) {
    let home = Home::new();
    let ours = json!({ "code": "prompt_not_waiting", "session": "s-7f3abcdefghi", "prompt": "9" });
    let gone = "no prompt 9 waits in session `s-7f3abcdefghi`";
    let withdraw =
        if args.contains(&"9") { fault(-31010, gone, &ours) } else { result(&json!({})) };
    let heard = FakeHub::new()
        .on("_jackfield/queue", &[result(&prompts())])
        .on("_jackfield/withdraw", &[withdraw])
        .on("_jackfield/release", &[result(&json!({ "released": [2] }))])
        .start(&home);
    (home.run(&[&["queue", "7f3"], args].concat()), heard)
}

#[test]
fn what_waits_is_listed() {
    insta::assert_snapshot!("queue", queue(&[]).0.told());
    insta::assert_snapshot!("queue_quiet", queue(&["--format", "quiet"]).0.told());
    let json: Value = serde_json::from_str(&queue(&["--format", "json"]).0.stdout).unwrap();
    assert_eq!(json["prompts"], prompts()["prompts"]);
}

#[test]
fn an_empty_queue_is_no_error() {
    let home = Home::new();
    FakeHub::new().on("_jackfield/queue", &[result(&json!({ "prompts": [] }))]).start(&home);
    insta::assert_snapshot!("queue_empty", home.run(&["queue", "7f3"]).told());
    let json = home.run(&["queue", "7f3", "--format", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["prompts"], json!([]));
}

#[test]
fn a_prompt_is_withdrawn_by_its_number() {
    let (did, heard) = queue(&["--withdraw", "4"]);
    insta::assert_snapshot!("queue_withdraw", did.told());
    let said = &heard.all("_jackfield/withdraw")[0]["params"];
    assert_eq!(*said, json!({ "sessionId": "s-7f3abcdefghi", "prompt": 4 }));
}

#[test]
fn what_does_not_wait_cannot_be_withdrawn() {
    let (did, _) = queue(&["--withdraw", "9"]);
    insta::assert_snapshot!("queue_withdraw_unknown", did.told());
    assert_ne!(did.code, 0);
}

#[test]
fn what_is_held_is_run_when_told_to() {
    let (did, heard) = queue(&["--run"]);
    insta::assert_snapshot!("queue_run", did.told());
    assert_eq!(heard.all("_jackfield/release").len(), 1);
    assert!(!heard.all("_jackfield/connect").is_empty(), "the agent starts as the caller would");
    let (did, _) = queue(&["--run", "--withdraw", "4"]);
    assert_eq!(did.code, 2, "one or the other");
}

#[test]
fn ps_lists_a_session_that_sleeps_while_prompts_wait_in_it() {
    let home = Home::new();
    let mut asleep = row("s-7f3abcdefghi", "goose", "asleep", "fix the parser");
    asleep["queued"] = json!(2);
    FakeHub::new().rows(&[asleep]).start(&home);
    insta::assert_snapshot!("ps_queued", home.run(&["ps"]).told());
}

#[test]
fn a_run_steers_when_told_to() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    assert_eq!(home.run(&["run", "-s", "7f3", "--steer", "No, this"]).code, 0);
    let said = &heard.all("session/prompt")[0]["params"];
    assert_eq!(said["_meta"], json!({ "jackfield": { "steer": true } }));
    let alone = home.run(&["run", "--steer", "No, this", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_steer_without_session", alone.told());
}

#[test]
fn a_typed_line_steers_when_it_says_so() {
    let home = Home::new();
    let attached = result(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }));
    let heard = FakeHub::new()
        .rows(&[row("s-7f3abcdefghi", "goose", "working", "fix the parser")])
        .on("_jackfield/attach", &[attached])
        .on("session/prompt", &[stop("end_turn")])
        .start(&home);
    let did = home.run_with_input(&["attach", "--all"], "/steer\n/steer  No, this\n");
    insta::assert_snapshot!("attach_steer", did.told());
    wait_for("the prompt", || heard.all("session/prompt").len() == 1);
    let said = &heard.all("session/prompt")[0]["params"];
    assert_eq!(said["prompt"][0]["text"], "No, this");
    assert_eq!(said["_meta"], json!({ "jackfield": { "steer": true } }));
}

#[test]
fn a_fork_prints_the_new_id() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/fork", &[result(&json!({ "sessionId": "s-q2mabcdefghi", "modes": {} }))])
        .start(&home);
    insta::assert_snapshot!("fork", home.run(&["sessions", "fork", "7f3"]).told());
    let json = home.run(&["sessions", "fork", "7f3", "--at", "3", "--format", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["sessionId"], "s-q2mabcdefghi");
    let said = heard.all("session/fork");
    assert_eq!(said[0]["params"], json!({ "sessionId": "s-7f3abcdefghi", "cwd": "/project" }));
    assert_eq!(said[1]["params"]["_meta"], json!({ "jackfield": { "seq": 3 } }));
    insta::assert_snapshot!(
        "fork_too_far",
        home.run(&["sessions", "fork", "7f3", "--at", "8"]).told()
    );
}
