//! `jackfield queue`, `run --steer`, `/steer` and `sessions fork`.

use crate::{
    fake_hub::{FakeHub, ReceivedMessages, hub_error, prompt_response, response, session_row},
    home::{CommandOutcome, TestHome, wait_for},
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

fn run_queue(args: &[&str]) -> (CommandOutcome, ReceivedMessages) {
    let home = TestHome::new();
    let hub_data =
        json!({ "code": "prompt_not_waiting", "session": "s-7f3abcdefghi", "prompt": "9" });
    let message = "no prompt 9 waits in session `s-7f3abcdefghi`";
    let withdraw = if args.contains(&"9") {
        hub_error(-31010, message, &hub_data)
    } else {
        response(&json!({}))
    };
    let received = FakeHub::new()
        .on("_jackfield/queue", &[response(&prompts())])
        .on("_jackfield/withdraw", &[withdraw])
        .on("_jackfield/move", &[response(&json!({}))])
        .on("_jackfield/release", &[response(&json!({ "released": [2] }))])
        .start(&home);
    (home.run(&[&["queue", "7f3"], args].concat()), received)
}

#[test]
fn queued_prompts_are_listed() {
    insta::assert_snapshot!("queue", run_queue(&[]).0.to_snapshot());
    insta::assert_snapshot!("queue_quiet", run_queue(&["--format", "quiet"]).0.to_snapshot());
    let json: Value = serde_json::from_str(&run_queue(&["--format", "json"]).0.stdout).unwrap();
    assert_eq!(json["prompts"], prompts()["prompts"]);
}

#[test]
fn empty_queue_succeeds() {
    let home = TestHome::new();
    FakeHub::new().on("_jackfield/queue", &[response(&json!({ "prompts": [] }))]).start(&home);
    insta::assert_snapshot!("queue_empty", home.run(&["queue", "7f3"]).to_snapshot());
    let json = home.run(&["queue", "7f3", "--format", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["prompts"], json!([]));
}

#[test]
fn every_action_prints_a_json_document() {
    for (args, name, expected) in
        [(&["--withdraw", "4"][..], "withdrawn", json!(4)), (&["--run"], "released", json!([2]))]
    {
        let (outcome, _) = run_queue(&[args, &["--format", "json"]].concat());
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((outcome.code, &document[name]), (0, &expected));
    }
}

#[test]
fn prompt_is_withdrawn_by_its_number() {
    let (outcome, received) = run_queue(&["--withdraw", "4"]);
    insta::assert_snapshot!("queue_withdraw", outcome.to_snapshot());
    let params = &received.with_method("_jackfield/withdraw")[0]["params"];
    assert_eq!(*params, json!({ "sessionId": "s-7f3abcdefghi", "prompt": 4 }));
}

#[test]
fn prompt_is_moved_before_another_or_to_the_end() {
    let (outcome, received) = run_queue(&["--move", "4", "--before", "2"]);
    insta::assert_snapshot!("queue_move", outcome.to_snapshot());
    let params = &received.with_method("_jackfield/move")[0]["params"];
    assert_eq!(*params, json!({ "sessionId": "s-7f3abcdefghi", "prompt": 4, "before": 2 }));
    let (outcome, received) = run_queue(&["--move", "4", "--format", "json"]);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&document["moved"], &document["before"]), (&json!(4), &Value::Null));
    assert_eq!(received.with_method("_jackfield/move")[0]["params"]["before"], Value::Null);
    assert_eq!(run_queue(&["--before", "2"]).0.code, 2, "without a prompt to move");
}

#[test]
fn unknown_prompt_cannot_be_withdrawn() {
    let (outcome, _) = run_queue(&["--withdraw", "9"]);
    insta::assert_snapshot!("queue_withdraw_unknown", outcome.to_snapshot());
    assert_ne!(outcome.code, 0);
}

#[test]
fn queue_run_runs_held_prompts() {
    let (outcome, received) = run_queue(&["--run"]);
    insta::assert_snapshot!("queue_run", outcome.to_snapshot());
    assert_eq!(received.with_method("_jackfield/release").len(), 1);
    assert!(
        !received.with_method("_jackfield/connect").is_empty(),
        "the agent gets the caller's environment"
    );
    let (outcome, _) = run_queue(&["--run", "--withdraw", "4"]);
    assert_eq!(outcome.code, 2, "the flags are exclusive");
}

#[test]
fn ps_lists_a_sleeping_session_with_queued_prompts() {
    let home = TestHome::new();
    let mut asleep = session_row("s-7f3abcdefghi", "goose", "asleep", "fix the parser");
    asleep["queued"] = json!(2);
    FakeHub::new().with_sessions(&[asleep]).start(&home);
    insta::assert_snapshot!("ps_queued", home.run(&["ps"]).to_snapshot());
}

#[test]
fn run_steer_sets_the_steer_flag() {
    let home = TestHome::new();
    let received = FakeHub::new().on("session/prompt", &[prompt_response("end_turn")]).start(&home);
    assert_eq!(home.run(&["run", "-s", "7f3", "--steer", "No, this"]).code, 0);
    let params = &received.with_method("session/prompt")[0]["params"];
    assert_eq!(params["_meta"]["jackfield"]["steer"], true);
    let alone = home.run(&["run", "--steer", "No, this", "--", "goose", "acp"]);
    insta::assert_snapshot!("run_steer_without_session", alone.to_snapshot());
}

#[test]
fn typed_steer_command_sets_the_steer_flag() {
    let home = TestHome::new();
    let attached = response(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }));
    let received = FakeHub::new()
        .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "working", "fix the parser")])
        .on("_jackfield/attach", &[attached])
        .on("session/prompt", &[prompt_response("end_turn")])
        .start(&home);
    let outcome = home.run_with_input(&["attach", "--all"], "/steer\n/steer  No, this\n");
    insta::assert_snapshot!("attach_steer", outcome.to_snapshot());
    wait_for("the prompt", || received.with_method("session/prompt").len() == 1);
    let params = &received.with_method("session/prompt")[0]["params"];
    assert_eq!(params["prompt"][0]["text"], "No, this");
    assert_eq!(params["_meta"]["jackfield"]["steer"], true);
}

#[test]
fn fork_prints_the_new_id() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/fork", &[response(&json!({ "sessionId": "s-q2mabcdefghi", "modes": {} }))])
        .start(&home);
    insta::assert_snapshot!("fork", home.run(&["sessions", "fork", "7f3"]).to_snapshot());
    let json = home.run(&["sessions", "fork", "7f3", "--at", "3", "--format", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["sessionId"], "s-q2mabcdefghi");
    let forks = received.with_method("session/fork");
    assert_eq!(forks[0]["params"], json!({ "sessionId": "s-7f3abcdefghi", "cwd": "/project" }));
    assert_eq!(forks[1]["params"]["_meta"], json!({ "jackfield": { "seq": 3 } }));
    insta::assert_snapshot!(
        "fork_too_far",
        home.run(&["sessions", "fork", "7f3", "--at", "8"]).to_snapshot()
    );
}
