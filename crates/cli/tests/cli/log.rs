//! `jackfield log`: the past as text and as it was sent.

use crate::{
    fake_hub::{FakeHub, HANG_UP, chunk, fact, log_of, result, update},
    home::{Home, wait_for},
};
use serde_json::{Value, json};

/// A session with a good turn, a cancelled one, and one that died with its agent.
pub(crate) fn history() -> Vec<String> {
    let tool = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit main.rs", "kind": "edit",
    });
    let asked = json!({ "ask": 1, "frame": { "params": { "toolCall": { "toolCallId": "t1" } } } });
    let chosen = json!({ "result": { "outcome": { "outcome": "selected", "optionId": "once" } } });
    let prompted = |turn: u64| json!({ "turn": turn, "by": "zed (c-1)", "frame": {} });
    let error = json!({ "code": -31000, "message": "agent `goose` ended: killed by signal 9" });
    vec![
        fact("session", 1, "opened", json!({ "agent": "goose", "cwd": "/project" })),
        fact("turn", 2, "prompted", prompted(1)),
        chunk(2, "user_message_chunk", "Fix the parser.\nPlease."),
        chunk(3, "agent_thought_chunk", "Hm."),
        chunk(4, "agent_message_chunk", "I will edit it."),
        update(5, &tool),
        fact("ask", 6, "asked", asked),
        fact("ask", 7, "answered", json!({ "ask": 1, "by": "zed (c-1)", "answer": chosen })),
        chunk(8, "agent_message_chunk", "Fixed."),
        fact(
            "turn",
            9,
            "ended",
            json!({ "turn": 1, "how": "stopped", "answer": { "stopReason": "end_turn" } }),
        ),
        fact("turn", 10, "prompted", prompted(2)),
        chunk(10, "user_message_chunk", "Now write a book."),
        chunk(11, "agent_message_chunk", "Chapter one"),
        fact("turn", 12, "cancelled", json!({ "turn": 2, "step": 1 })),
        fact(
            "turn",
            13,
            "ended",
            json!({ "turn": 2, "how": "stopped", "answer": { "stopReason": "cancelled" } }),
        ),
        fact("turn", 14, "prompted", prompted(3)),
        chunk(14, "user_message_chunk", "A poem then."),
        fact(
            "session",
            15,
            "gone",
            json!({ "status": "killed by signal 9", "stderr": "a\nout of memory\n" }),
        ),
        fact("turn", 16, "ended", json!({ "turn": 3, "how": "interrupted", "answer": error })),
        fact("session", 17, "bound", json!({ "rung": "reloaded", "setup": null })),
        fact("session", 18, "closed", json!({})),
    ]
}

fn with_head() -> Vec<String> {
    let head = result(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }));
    [history(), vec![head]].concat()
}

#[test]
fn the_past_is_told_in_words() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    insta::assert_snapshot!("log_text", home.run(&["log", "7f3"]).told());
    let quiet = home.run(&["log", "7f3", "--format", "quiet"]);
    insta::assert_snapshot!("log_quiet", quiet.told());
    let params = &heard.all("_jackfield/attach")[0]["params"];
    assert_eq!(params, &json!({ "sessionId": "s-7f3abcdefghi", "after": 0, "observe": true }));
}

#[test]
fn the_acp_view_is_what_the_hub_sent() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    let sent = format!("{}\n", history().join("\n"));
    let args: [&[&str]; 2] =
        [&["log", "7f3", "--view", "acp", "--after", "5"], &["log", "7f3", "--format", "json"]];
    for args in args {
        let did = home.run(args);
        assert_eq!((did.stdout.as_str(), did.code), (sent.as_str(), 0));
    }
    assert_eq!(heard.all("_jackfield/attach")[0]["params"]["after"], 5);
}

/// A log in which a key is said in two pieces.
fn facts() -> Vec<String> {
    let said = |update: Value| {
        let params = json!({ "sessionId": "s-7f3abcdefghi", "update": update });
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        json!({ "is": "said", "turn": 1, "frame": frame })
    };
    let words = |kind: &str, text: &str| {
        said(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
    };
    let prompt = json!([{ "type": "text", "text": "Fix it." }]);
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls", "kind": "execute",
        "status": "completed", "rawInput": { "command": "ls" }, "rawOutput": "a.txt",
    });
    log_of(
        "s-7f3abcdefghi",
        &[
            &json!({ "is": "opened", "agent": "goose", "cwd": "/project", "setup": {} }),
            &json!({ "is": "prompted", "turn": 1, "by": "zed (c-1)",
                     "frame": { "method": "session/prompt", "params": { "prompt": prompt } } }),
            &words("agent_thought_chunk", "Hm."),
            &words("agent_message_chunk", "It is ghp_01234"),
            &words("agent_message_chunk", "56789abcdefghij, no?"),
            &said(call),
            &json!({ "is": "ended", "turn": 1, "how": "stopped",
                     "answer": { "stopReason": "end_turn" } }),
        ],
    )
}

#[test]
fn the_past_is_retold_as_events_and_as_envelopes_without_secrets() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &facts()).start(&home);
    for view in ["events", "envelopes"] {
        let did = home.run(&["log", "7f3", "--view", view]);
        insta::assert_snapshot!(format!("log_{view}"), did.told());
        assert_eq!(home.run(&["log", "7f3", "--view", view]).stdout, did.stdout);
    }
    let facts =
        json!({ "sessionId": "s-7f3abcdefghi", "after": 0, "observe": true, "facts": true });
    assert_eq!(heard.all("_jackfield/attach")[0]["params"], facts);
}

#[test]
fn a_part_of_the_past_is_retold_and_what_comes_next() {
    let home = Home::new();
    let mut log = facts();
    let answer = log.pop().unwrap();
    let behind: Vec<String> = [&log[5..6], &[answer], &log[6..], &[HANG_UP.to_owned()]].concat();
    FakeHub::new().on("_jackfield/attach", &behind).start(&home);
    let did = home.run(&["log", "7f3", "--view", "events", "--after", "5", "-f"]);
    // The hub says that there are seven, and has said six.
    assert!(did.stderr.contains("event 7 of s-7f3abcdefghi did not come"), "{}", did.stderr);
    let whole: Vec<String> =
        [&log[5..], &[result(&json!({ "head": 7 })), HANG_UP.to_owned()]].concat();
    let home = Home::new();
    FakeHub::new().on("_jackfield/attach", &whole).start(&home);
    let did = home.run(&["log", "7f3", "--view", "events", "--after", "5", "-f"]);
    assert_eq!(did.code, 6);
    let types: Vec<Value> = did
        .stdout
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["type"].clone())
        .collect();
    assert_eq!(types, ["tool_use", "tool_result", "usage"]);
}

#[test]
fn following_goes_on_until_the_daemon_does() {
    let home = Home::new();
    let later = [with_head(), vec![chunk(19, "agent_message_chunk", "Still here.")]].concat();
    let lines = [later, vec![HANG_UP.to_owned()]].concat();
    FakeHub::new().on("_jackfield/attach", &lines).start(&home);
    let did = home.run(&["log", "7f3", "-f"]);
    assert!(did.stdout.ends_with("-- session closed\nStill here.\n"), "{}", did.stdout);
    assert_eq!(did.code, 6);
}

#[test]
fn following_can_be_interrupted() {
    let home = Home::new();
    let heard = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    let running = home.start(&["log", "7f3", "-f"], None);
    wait_for("the attach", || !heard.all("_jackfield/attach").is_empty());
    running.signal(rustix::process::Signal::INT);
    // Killed by the signal: the shell makes 130 of it.
    assert_eq!(running.finish().code, -1);
}
