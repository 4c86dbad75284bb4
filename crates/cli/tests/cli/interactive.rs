//! `jackfield run --interactive`: prompts from stdin, turn after turn, against a scripted hub.

use crate::{
    fake_hub::{FakeHub, HANG_UP, ask, chunk, fault, say, stop},
    home::{Home, wait_for},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write as _;

const TALK: &[&str] = &["run", "-i", "--", "goose", "acp"];

fn with_json(args: &[&'static str]) -> Vec<&'static str> {
    [&["run", "-i", "--input", "json"], args, &["--", "goose", "acp"]].concat()
}

#[test]
fn every_line_is_a_prompt_of_one_session() {
    let home = Home::new();
    let lines = [chunk(1, "agent_thought_chunk", "Hm."), say("Yes."), stop("end_turn")];
    let heard = FakeHub::new().on("session/prompt", &lines).start(&home);
    let did = home.run_with_input(TALK, "one\n\n  two  \nthree");
    insta::assert_snapshot!("interactive_text", did.told());
    let prompts = heard.all("session/prompt");
    let texts: Vec<&Value> = prompts.iter().map(|it| &it["params"]["prompt"][0]["text"]).collect();
    assert_eq!(texts, ["one", "  two", "three"]);
    assert!(prompts.iter().all(|it| it["params"]["sessionId"] == "s-new4lnliedxj"));
    assert_eq!(heard.all("session/new").len(), 1);
    assert_eq!(heard.all("session/close").len(), 1);
    let quiet = ["run", "-i", "--format", "quiet", "--", "goose", "acp"];
    insta::assert_snapshot!("interactive_quiet", home.run_with_input(&quiet, "one\ntwo\n").told());
}

#[test]
fn the_prompt_of_the_command_line_comes_first() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[stop("end_turn")]).start(&home);
    let did = home.run_with_input(&["run", "-i", "-s", "7f3", "--steer", "first"], "second\n");
    assert_eq!(did.code, 0, "{}", did.stderr);
    let prompts = heard.all("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"][0]["text"], "first");
    assert_eq!(prompts[0]["params"]["_meta"]["jackfield"]["steer"], true);
    assert_eq!(prompts[1]["params"]["prompt"][0]["text"], "second");
    assert_eq!(prompts[1]["params"].get("_meta"), None);
    assert!(heard.all("session/close").is_empty(), "it was running before");
}

#[test]
fn lines_of_json_are_prompts_with_any_blocks_and_bad_ones_are_2() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[say("Hi."), stop("end_turn")]).start(&home);
    let blocks = json!([{ "type": "text", "text": "a" }, { "type": "new", "x": 1 }]);
    let input = format!("{}\nnonsense\n{{\"prompt\":\"b\"}}\n", json!({ "prompt": blocks }));
    let did = home.run_with_input(&with_json(&["--format", "json"]), &input);
    insta::assert_snapshot!("interactive_json", did.told());
    assert_eq!(did.code, 2);
    let prompts = heard.all("session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"], blocks);
    assert_eq!(prompts[1]["params"]["prompt"][0]["text"], "b");
    assert!(did.stdout.lines().all(|it| it.starts_with("{\"jsonrpc\":\"2.0\"")));
}

#[test]
fn a_cancel_is_about_everything_before_it_and_the_rest_goes_on() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[say("Working")])
        .on("session/cancel", &[stop("cancelled")])
        .start(&home);
    let (running, mut stdin) = home.start_typing(&with_json(&[]));
    stdin.write_all(b"{\"type\":\"cancel\"}\n{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n").unwrap();
    stdin.write_all(b"{\"type\":\"cancel\"}\n").unwrap();
    wait_for("the cancel", || heard.all("session/cancel").len() == 1);
    stdin.write_all(b"{\"prompt\":\"c\"}\n").unwrap();
    wait_for("the next prompt", || heard.all("session/prompt").len() == 2);
    stdin.write_all(b"{\"type\":\"cancel\"}\n").unwrap();
    drop(stdin);
    let did = running.finish();
    insta::assert_snapshot!("interactive_cancelled", did.told());
    assert_eq!(did.code, 130);
    assert_eq!(heard.all("session/prompt")[1]["params"]["prompt"][0]["text"], "c");
    assert_eq!(heard.all("session/cancel").len(), 2);
    assert_eq!(heard.methods().last().unwrap(), "session/close");
}

#[test]
fn ctrl_c_cancels_the_turn_and_the_next_prompt_runs() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[say("Working")])
        .on("session/cancel", &[stop("cancelled")])
        .start(&home);
    let (running, mut stdin) = home.start_typing(TALK);
    for turn in 1..=2 {
        stdin.write_all(b"go\n").unwrap();
        wait_for("the prompt", || heard.all("session/prompt").len() == turn);
        running.signal(Signal::INT);
        wait_for("the cancel", || heard.all("session/cancel").len() == turn);
    }
    drop(stdin);
    let did = running.finish();
    insta::assert_snapshot!("interactive_interrupted", did.told());
    assert_eq!(did.code, 130);
    assert_eq!(heard.methods().last().unwrap(), "session/close");
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let home = Home::new();
    let heard = FakeHub::new().start(&home);
    let (running, mut stdin) = home.start_typing(TALK);
    stdin.write_all(b"go\n").unwrap();
    wait_for("the prompt", || !heard.all("session/prompt").is_empty());
    running.signal(Signal::INT);
    wait_for("the cancel", || !heard.all("session/cancel").is_empty());
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    assert!(heard.all("session/close").is_empty(), "the hub is still stopping the turn");
}

#[test]
fn a_turn_that_fails_is_told_and_the_next_one_runs() {
    let home = Home::new();
    let gone =
        fault(-31001, "the agent is gone", &json!({ "code": "agent_gone", "agent": "goose" }));
    let heard = FakeHub::new().on("session/prompt", &[say("Oh"), gone]).start(&home);
    let did = home.run_with_input(TALK, "one\ntwo\n");
    insta::assert_snapshot!("interactive_failed", did.told());
    assert_eq!(did.code, 1);
    assert_eq!(heard.all("session/prompt").len(), 2);
}

#[test]
fn asks_are_answered_by_the_rules_and_a_refusal_is_5() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[ask(3, "edit")])
        .on("answer", &[say("Done."), stop("end_turn")])
        .start(&home);
    let allowed = home.run_with_input(&["run", "-i", "--approve", "all"], "one\ntwo\n");
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    assert_eq!(heard.all("answer")[1]["result"]["outcome"]["optionId"], "once");
    let denied = home.run_with_input(TALK, "one\ntwo\n");
    insta::assert_snapshot!("interactive_denied", denied.told());
    assert_eq!(denied.code, 5);
}

#[test]
fn what_no_message_can_hold_is_2_and_the_next_prompt_runs() {
    let home = Home::new();
    let heard = FakeHub::new().on("session/prompt", &[say("Hi."), stop("end_turn")]).start(&home);
    let (long, longer) = ("a".repeat((16 << 20) - 8), "b".repeat(17 << 20));
    let did = home.run_with_input(TALK, &format!("{long}\n{longer}\nhello\n"));
    insta::assert_snapshot!("interactive_too_long", did.told());
    assert_eq!(did.code, 2);
    assert_eq!(heard.all("session/prompt")[0]["params"]["prompt"][0]["text"], "hello");
    assert_eq!(home.run_with_input(&["run", "-", "--", "goose", "acp"], &longer).code, 2);
    assert_eq!(heard.all("session/prompt").len(), 1);
}

#[test]
fn a_hub_that_goes_away_between_turns_is_6() {
    let home = Home::new();
    let lines = [stop("end_turn"), HANG_UP.to_owned()];
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let (running, mut stdin) = home.start_typing(TALK);
    stdin.write_all(b"one\n").unwrap();
    let did = running.finish();
    insta::assert_snapshot!("interactive_hub_gone", did.told());
    assert_eq!(did.code, 6);
}

#[test]
fn what_cannot_be_meant_together_is_2() {
    let home = Home::new();
    insta::assert_snapshot!(
        "interactive_no_wait",
        home.run(&["run", "-i", "--no-wait", "x"]).told()
    );
    insta::assert_snapshot!("interactive_dash", home.run(&["run", "-i", "-"]).told());
}
