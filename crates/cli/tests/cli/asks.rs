//! Permission requests when nobody sits at the terminal.

use crate::{
    fake_hub::{FakeHub, Heard, ask, say, stop},
    home::{Did, Home, wait_for},
};
use serde_json::{Value, json};

fn run(kind: &str, flags: &[&str]) -> (Did, Heard) {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[ask(1, kind)])
        .on("answer", &[say("Done."), stop("end_turn")])
        .on("session/cancel", &[stop("cancelled")])
        .start(&home);
    let args = [&["run"], flags, &["hello", "--", "goose", "acp"]].concat();
    (home.run(&args), heard)
}

fn chosen(heard: &Heard) -> Value {
    heard.all("answer")[0]["result"]["outcome"]["optionId"].clone()
}

#[test]
fn by_default_an_ask_is_denied_and_the_exit_code_says_so() {
    let (did, heard) = run("edit", &[]);
    insta::assert_snapshot!("ask_denied", did.told());
    assert_eq!((did.code, chosen(&heard)), (5, json!("no")));
}

#[test]
fn everything_may_be_allowed_each_time_for_once() {
    let (did, heard) = run("execute", &["--approve", "all"]);
    insta::assert_snapshot!("ask_allowed", did.told());
    assert_eq!((did.code, chosen(&heard)), (0, json!("once")));
}

#[test]
fn reads_may_be_allowed_and_writes_not() {
    let (did, heard) = run("read", &["--approve", "reads"]);
    assert_eq!((did.code, chosen(&heard)), (0, json!("once")));
    let (did, heard) = run("edit", &["--approve", "reads"]);
    assert_eq!((did.code, chosen(&heard)), (5, json!("no")));
}

#[test]
fn an_ask_may_fail_the_run() {
    let (did, heard) = run("edit", &["--on-ask", "fail"]);
    insta::assert_snapshot!("ask_failed", did.told());
    assert_eq!((did.code, chosen(&heard)), (5, json!("no")));
    assert_eq!(heard.all("session/cancel").len(), 1);
}

#[test]
fn an_ask_may_wait_for_another_client() {
    let home = Home::new();
    let settled = json!({
        "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 },
    });
    let heard = FakeHub::new()
        .on(
            "session/prompt",
            &[ask(1, "edit"), settled.to_string(), say("Done."), stop("end_turn")],
        )
        .start(&home);
    let did = home.run(&["run", "--on-ask", "wait", "hello", "--", "goose", "acp"]);
    insta::assert_snapshot!("ask_waits", did.told());
    assert_eq!(did.code, 0);
    assert!(heard.all("answer").is_empty());
}

#[test]
fn a_run_that_waits_can_be_interrupted() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[ask(1, "edit")])
        .on("session/cancel", &[stop("cancelled")])
        .start(&home);
    let running = home.start(&["run", "--on-ask", "wait", "hello", "--", "goose", "acp"], None);
    wait_for("the prompt", || !heard.all("session/prompt").is_empty());
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().code, 130);
}
