//! `jackfield asks` and `jackfield answer`: what waits for somebody, and an answer from outside.

use crate::{
    fake_hub::{FakeHub, HANG_UP, Heard, chunk, fact, fault, result, row, update},
    home::{Did, Home},
};
use serde_json::{Value, json};
use std::process::Stdio;

const SESSION: &str = "s-7f3abcdefghi";

fn permission(session: &str, number: u64, what: &Value, options: &Value) -> Value {
    json!({
        "sessionId": session, "ask": number, "agent": "goose", "since": "2026-11-15T08:30:00.123Z",
        "method": "session/request_permission", "what": what, "kind": "execute",
        "toolCallId": "t1", "options": options,
    })
}

fn options() -> Value {
    json!([
        { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "always", "name": "Always\n allow", "kind": "allow_always" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ])
}

fn asks() -> Value {
    let ever = json!([{ "optionId": "allow", "name": "For ever", "kind": "allow_always" }]);
    let form = json!({
        "sessionId": "s-7f4abcdefghi", "ask": 2, "agent": "codex",
        "since": "2026-11-15T08:31:00.000Z", "method": "elicitation/create",
        "what": "Which branch?", "mode": "form", "requestedSchema": { "type": "object" },
    });
    json!([
        permission(SESSION, 3, &json!("Run `cargo test`"), &options()),
        permission(SESSION, 4, &json!("Push\nit"), &options()),
        form,
        permission("s-b20abcdefghi", 1, &json!("Format the disk"), &ever),
    ])
}

fn rows() -> Vec<Value> {
    vec![
        row(SESSION, "goose", "asks", "fix the parser"),
        row("s-7f4abcdefghi", "codex", "asks", "release: 2"),
        row("s-b20abcdefghi", "goose", "asks", ""),
        row("s-c00abcdefghi", "goose", "idle", "nothing to do"),
    ]
}

fn hub(asks: &Value) -> FakeHub {
    FakeHub::new()
        .rows(&rows())
        .on("_jackfield/asks", &[result(&json!({ "asks": asks }))])
        .on("_jackfield/answer", &[result(&json!({}))])
}

fn start(home: &Home) -> Heard {
    hub(&asks()).start(home)
}

/// What was sent as the answer: the ask, and what the agent shall hear.
fn sent(heard: &Heard) -> (Value, Value, Value) {
    let params = heard.all("_jackfield/answer").pop().unwrap()["params"].take();
    (params["sessionId"].clone(), params["ask"].clone(), params["result"].clone())
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn failed(name: &str, code: i32, did: &Did) {
    insta::assert_snapshot!(format!("error_{name}"), did.told());
    assert_eq!(did.code, code, "{name}");
    assert_eq!(did.stdout, "", "an error is no data");
}

#[test]
fn asks_of_every_session_are_listed_with_their_options() {
    let home = Home::new();
    start(&home);
    insta::assert_snapshot!("asks", home.run(&["asks"]).told());
    insta::assert_snapshot!("asks_quiet", home.run(&["asks", "--format", "quiet"]).told());
    insta::assert_snapshot!("asks_json", home.run(&["asks", "--format", "json"]).told());
}

#[test]
fn nothing_asked_is_no_error_and_starts_no_daemon() {
    let home = Home::new();
    insta::assert_snapshot!("asks_without_daemon", home.run(&["asks"]).told());
    assert!(!home.socket().exists());
    hub(&json!([])).start(&home);
    insta::assert_snapshot!("asks_none", home.run(&["asks"]).told());
    let json = home.run(&["asks", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, json!({ "version": 1, "asks": [] }));
}

#[test]
fn an_ask_that_names_only_its_tool_call_is_looked_up() {
    let home = Home::new();
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit a.rs" });
    let other = json!({ "sessionUpdate": "tool_call", "toolCallId": "t2", "title": "no" });
    let end = result(&json!({ "sessionId": SESSION, "head": 3 }));
    let heard = hub(&json!([permission(SESSION, 1, &Value::Null, &options())]))
        .on("_jackfield/attach", &[update(1, &call), update(2, &other), end])
        .start(&home);
    insta::assert_snapshot!("asks_looked_up", home.run(&["asks"]).told());
    insta::assert_snapshot!("answer_looked_up", home.run(&["answer", "7f3", "y"]).told());
    let looked = &heard.all("_jackfield/attach")[0]["params"];
    assert_eq!(looked["observe"], true, "it only looks");
}

#[test]
fn an_option_is_chosen_by_key_by_id_or_by_a_word_for_this_once() {
    let home = Home::new();
    let heard = start(&home);
    insta::assert_snapshot!("answer", home.run(&["answer", "7f3", "y"]).told());
    assert_eq!(sent(&heard), (json!(SESSION), json!(3), selected("once")));
    for (typed, option) in
        [("a", "always"), ("always", "always"), ("N", "no"), ("allow", "once"), ("deny", "no")]
    {
        assert_eq!(home.run(&["answer", "s-7f3:4", typed]).code, 0, "{typed}");
        assert_eq!(sent(&heard), (json!(SESSION), json!(4), selected(option)), "{typed}");
    }
    insta::assert_snapshot!("answer_ended", home.run(&["answer", "b20", "deny"]).told());
    assert_eq!(sent(&heard).2, json!({ "outcome": { "outcome": "cancelled" } }));
    let started = heard.methods();
    assert!(!started.contains(&"_jackfield/attach".to_owned()), "nobody attached: {started:?}");
}

#[test]
fn a_form_is_answered_with_json() {
    let home = Home::new();
    let heard = start(&home);
    let accept = r#"{"action":"accept","content":{"branch":"main"}}"#;
    let did = home.run(&["answer", "7f4", "--json", accept]);
    insta::assert_snapshot!("answer_form", did.told());
    let wanted: Value = serde_json::from_str(accept).unwrap();
    assert_eq!(sent(&heard), (json!("s-7f4abcdefghi"), json!(2), wanted));
    failed("answer_form_option", 2, &home.run(&["answer", "7f4", "y"]));
    failed("answer_form_nothing", 2, &home.run(&["answer", "7f4"]));
    failed("answer_bad_json", 2, &home.run(&["answer", "7f4", "--json", "{action}"]));
    assert_eq!(heard.all("_jackfield/answer").len(), 1);
}

#[test]
fn a_title_may_end_like_the_number_of_an_ask() {
    let home = Home::new();
    let mut rows = rows();
    rows[1]["title"] = json!("step:2");
    let heard = hub(&asks()).rows(&rows).start(&home);
    let decline = r#"{"action":"decline"}"#;
    for named in ["step:2", "step:2:2", "7f4:2"] {
        assert_eq!(home.run(&["answer", named, "--json", decline]).code, 0, "{named}");
        assert_eq!(sent(&heard).1, 2);
    }
}

#[test]
fn an_unknown_option_is_2_and_the_known_ones_are_listed() {
    let home = Home::new();
    let heard = start(&home);
    failed("answer_unknown_option", 2, &home.run(&["answer", "7f3", "maybe"]));
    failed("answer_no_option", 2, &home.run(&["answer", "7f3"]));
    assert!(heard.all("_jackfield/answer").is_empty());
}

#[test]
fn no_such_ask_is_4() {
    let home = Home::new();
    let ours = json!({ "code": "ask_not_found", "session": SESSION, "ask": "9" });
    let message = format!("no ask 9 in session `{SESSION}`");
    hub(&asks()).on("_jackfield/answer", &[fault(-31008, &message, &ours)]).start(&home);
    failed("answer_no_ask", 4, &home.run(&["answer", "7f3:9", "y"]));
    failed("answer_nothing_asked", 4, &home.run(&["answer", "c00", "y"]));
    failed("answer_no_session", 4, &home.run(&["answer", "s-q:1", "y"]));
}

#[test]
fn an_ask_that_is_settled_is_1_and_says_by_whom() {
    let home = Home::new();
    let how = "answered by zed (c-2)";
    let ours = json!({ "code": "ask_settled", "session": SESSION, "ask": "1", "how": how });
    hub(&asks()).on("_jackfield/answer", &[fault(-31009, "x", &ours)]).start(&home);
    failed("answer_settled", 1, &home.run(&["answer", "7f3:1", "y"]));
    failed("answer_settled_first", 1, &home.run(&["answer", "7f3:3", "y"]));
}

#[test]
fn who_is_attached_sees_who_answered_and_what() {
    let home = Home::new();
    let frame = json!({
        "method": "session/request_permission",
        "params": { "toolCall": { "toolCallId": "t1", "title": "Push" }, "options": options() },
    });
    let asked = fact("ask", 19, "asked", json!({ "ask": 1, "frame": frame }));
    let answer = json!({ "result": selected("once") });
    let by = "jackfield-answer (c-4)";
    let answer = json!({ "ask": 1, "by": by, "answer": answer });
    let answered = fact("ask", 20, "answered", answer);
    let settled = json!({
        "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 3 },
    });
    let head = result(&json!({ "sessionId": SESSION, "head": 18 }));
    let live = [asked, crate::fake_hub::ask(3, "execute"), answered, settled.to_string()];
    let said = [chunk(21, "agent_message_chunk", "Pushed."), HANG_UP.to_owned()];
    let lines = [vec![head], live.to_vec(), said.to_vec()].concat();
    FakeHub::new().on("_jackfield/attach", &lines).start(&home);
    let mut child = home.command(&["attach", "--all"]).stdin(Stdio::piped()).spawn().unwrap();
    // Somebody who types nothing.
    let keyboard = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(keyboard);
    insta::assert_snapshot!("attach_answered", String::from_utf8(output.stderr).unwrap());
}
