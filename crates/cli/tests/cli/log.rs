//! `jackfield log`: text, ACP messages, events and envelopes.

use crate::{
    fake_hub::{
        CLOSE_CONNECTION, FakeHub, attach_response, hub_event, message_chunk, response,
        session_update,
    },
    home::{TestHome, wait_for},
};
use serde_json::{Value, json};

/// A session with a completed turn, a canceled one, and one whose agent was killed.
pub(crate) fn history() -> Vec<String> {
    let tool = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit main.rs", "kind": "edit",
    });
    let asked = json!({ "ask": 1, "frame": { "params": { "toolCall": { "toolCallId": "t1" } } } });
    let chosen = json!({ "result": { "outcome": { "outcome": "selected", "optionId": "once" } } });
    let prompted = |turn: u64| json!({ "turn": turn, "by": "zed (c-1)", "frame": {} });
    let error = json!({ "code": -31000, "message": "agent `goose` ended: killed by signal 9" });
    vec![
        hub_event("session", 1, "opened", json!({ "agent": "goose", "cwd": "/project" })),
        hub_event("turn", 2, "prompted", prompted(1)),
        message_chunk(2, "user_message_chunk", "Fix the parser.\nPlease."),
        message_chunk(3, "agent_thought_chunk", "Hm."),
        message_chunk(4, "agent_message_chunk", "I will edit it."),
        session_update(5, &tool),
        hub_event("ask", 6, "asked", asked),
        hub_event("ask", 7, "answered", json!({ "ask": 1, "by": "zed (c-1)", "answer": chosen })),
        message_chunk(8, "agent_message_chunk", "Fixed."),
        hub_event(
            "turn",
            9,
            "ended",
            json!({ "turn": 1, "how": "stopped", "answer": { "stopReason": "end_turn" } }),
        ),
        hub_event("turn", 10, "prompted", prompted(2)),
        message_chunk(10, "user_message_chunk", "Now write a book."),
        message_chunk(11, "agent_message_chunk", "Chapter one"),
        hub_event("turn", 12, "cancelled", json!({ "turn": 2, "step": 1 })),
        hub_event(
            "turn",
            13,
            "ended",
            json!({ "turn": 2, "how": "stopped", "answer": { "stopReason": "cancelled" } }),
        ),
        hub_event("turn", 14, "prompted", prompted(3)),
        message_chunk(14, "user_message_chunk", "A poem then."),
        hub_event(
            "session",
            15,
            "gone",
            json!({ "status": "killed by signal 9", "stderr": "a\nout of memory\n" }),
        ),
        hub_event("turn", 16, "ended", json!({ "turn": 3, "how": "interrupted", "answer": error })),
        hub_event("session", 17, "bound", json!({ "restore": "reloaded", "setup": null })),
        hub_event("session", 18, "closed", json!({})),
    ]
}

fn with_head() -> Vec<String> {
    let head = response(&json!({ "sessionId": "s-7f3abcdefghi", "head": 18 }));
    [history(), vec![head]].concat()
}

#[test]
fn log_prints_the_conversation_as_text() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    insta::assert_snapshot!("log_text", home.run(&["log", "7f3"]).to_snapshot());
    let quiet = home.run(&["log", "7f3", "--format", "quiet"]);
    insta::assert_snapshot!("log_quiet", quiet.to_snapshot());
    let params = &received.with_method("_jackfield/attach")[0]["params"];
    assert_eq!(params, &json!({ "sessionId": "s-7f3abcdefghi", "after": 0, "observe": true }));
}

#[test]
fn log_starts_each_message_on_its_own_line_and_breaks_no_message() {
    let home = TestHome::new();
    let message = |seq: u64, id: &str, text: &str| {
        let content = json!({ "type": "text", "text": text });
        let kind = "agent_message_chunk";
        let update = json!({ "sessionUpdate": kind, "messageId": id, "content": content });
        session_update(seq, &update)
    };
    let usage = json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2 });
    let head = response(&json!({ "sessionId": "s-7f3abcdefghi", "head": 4 }));
    let lines = [
        message(1, "m1", "The first "),
        session_update(2, &usage),
        message(3, "m1", "message."),
        message(4, "m2", "The second."),
        head,
    ];
    FakeHub::new().on("_jackfield/attach", &lines).start(&home);
    for format in ["text", "quiet"] {
        let outcome = home.run(&["log", "7f3", "--format", format]);
        assert_eq!(outcome.stdout, "The first message.\nThe second.\n", "{format}");
    }
}

#[test]
fn acp_view_prints_the_hubs_messages_unchanged() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    let sent = format!("{}\n", history().join("\n"));
    let args: [&[&str]; 2] =
        [&["log", "7f3", "--view", "acp", "--after", "5"], &["log", "7f3", "--format", "json"]];
    for args in args {
        let outcome = home.run(args);
        assert_eq!((outcome.stdout.as_str(), outcome.code), (sent.as_str(), 0));
    }
    assert_eq!(received.with_method("_jackfield/attach")[0]["params"]["after"], 5);
}

/// A log in which a secret is split over two messages.
fn log_events() -> Vec<String> {
    let said = |update: Value| {
        let params = json!({ "sessionId": "s-7f3abcdefghi", "update": update });
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        json!({ "is": "said", "turn": 1, "frame": frame })
    };
    let message = |kind: &str, text: &str| {
        said(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
    };
    let prompt = json!([{ "type": "text", "text": "Fix it." }]);
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls", "kind": "execute",
        "status": "completed", "rawInput": { "command": "ls" }, "rawOutput": "a.txt",
    });
    attach_response(
        "s-7f3abcdefghi",
        &[
            &json!({ "is": "opened", "agent": "goose", "cwd": "/project", "setup": {} }),
            &json!({ "is": "prompted", "turn": 1, "by": "zed (c-1)",
                     "frame": { "method": "session/prompt", "params": { "prompt": prompt } } }),
            &message("agent_thought_chunk", "Hm."),
            &message("agent_message_chunk", "It is ghp_01234"),
            &message("agent_message_chunk", "56789abcdefghij, no?"),
            &said(call),
            &json!({ "is": "ended", "turn": 1, "how": "stopped",
                     "answer": { "stopReason": "end_turn" } }),
        ],
    )
}

#[test]
fn log_prints_events_and_envelopes_without_secrets() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &log_events()).start(&home);
    for view in ["events", "envelopes"] {
        let outcome = home.run(&["log", "7f3", "--view", view]);
        insta::assert_snapshot!(format!("log_{view}"), outcome.to_snapshot());
        assert_eq!(home.run(&["log", "7f3", "--view", view]).stdout, outcome.stdout);
    }
    let params =
        json!({ "sessionId": "s-7f3abcdefghi", "after": 0, "observe": true, "facts": true });
    assert_eq!(received.with_method("_jackfield/attach")[0]["params"], params);
}

#[test]
fn log_starts_after_an_event_and_follows_new_ones() {
    let home = TestHome::new();
    let mut log = log_events();
    let answer = log.pop().unwrap();
    let behind: Vec<String> =
        [&log[5..6], &[answer], &log[6..], &[CLOSE_CONNECTION.to_owned()]].concat();
    FakeHub::new().on("_jackfield/attach", &behind).start(&home);
    let outcome = home.run(&["log", "7f3", "--view", "events", "--after", "5", "-f"]);
    // The hub reports seven events and has sent six.
    assert!(outcome.stderr.contains("event 7 of s-7f3abcdefghi is missing"), "{}", outcome.stderr);
    let whole: Vec<String> =
        [&log[5..], &[response(&json!({ "head": 7 })), CLOSE_CONNECTION.to_owned()]].concat();
    let home = TestHome::new();
    FakeHub::new().on("_jackfield/attach", &whole).start(&home);
    let outcome = home.run(&["log", "7f3", "--view", "events", "--after", "5", "-f"]);
    assert_eq!(outcome.code, 6);
    let types: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["type"].clone())
        .collect();
    assert_eq!(types, ["tool_use", "tool_result", "usage"]);
}

#[test]
fn follow_ends_when_the_daemon_closes_the_connection() {
    let home = TestHome::new();
    let later =
        [with_head(), vec![message_chunk(19, "agent_message_chunk", "Still here.")]].concat();
    let lines = [later, vec![CLOSE_CONNECTION.to_owned()]].concat();
    FakeHub::new().on("_jackfield/attach", &lines).start(&home);
    let outcome = home.run(&["log", "7f3", "-f"]);
    assert!(outcome.stdout.ends_with("-- session closed\nStill here.\n"), "{}", outcome.stdout);
    assert_eq!(outcome.code, 6);
}

#[test]
fn follow_can_be_interrupted() {
    let home = TestHome::new();
    let received = FakeHub::new().on("_jackfield/attach", &with_head()).start(&home);
    let running = home.start(&["log", "7f3", "-f"], None);
    wait_for("the attach", || !received.with_method("_jackfield/attach").is_empty());
    running.signal(rustix::process::Signal::INT);
    // Killed by the signal, which a shell reports as 130.
    assert_eq!(running.finish().code, -1);
}
