//! `jackfield asks` and `jackfield answer`: open requests, and answers without attaching.

use crate::{
    fake_hub::{
        CLOSE_CONNECTION, FakeHub, ReceivedMessages, hub_error, hub_event, message_chunk, response,
        session_row, session_update,
    },
    home::{CommandOutcome, TestHome},
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
        session_row(SESSION, "goose", "asks", "fix the parser"),
        session_row("s-7f4abcdefghi", "codex", "asks", "release: 2"),
        session_row("s-b20abcdefghi", "goose", "asks", ""),
        session_row("s-c00abcdefghi", "goose", "idle", "nothing to do"),
    ]
}

fn hub(asks: &Value) -> FakeHub {
    FakeHub::new()
        .with_sessions(&rows())
        .on("_jackfield/asks", &[response(&json!({ "asks": asks }))])
        .on("_jackfield/answer", &[response(&json!({}))])
}

fn start(home: &TestHome) -> ReceivedMessages {
    hub(&asks()).start(home)
}

/// The session, the request number and the result of the last `_jackfield/answer`.
fn last_answer(received: &ReceivedMessages) -> (Value, Value, Value) {
    let params = received.with_method("_jackfield/answer").pop().unwrap()["params"].take();
    (params["sessionId"].clone(), params["ask"].clone(), params["result"].clone())
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn assert_failed(name: &str, code: i32, outcome: &CommandOutcome) {
    insta::assert_snapshot!(format!("error_{name}"), outcome.to_snapshot());
    assert_eq!(outcome.code, code, "{name}");
    assert_eq!(outcome.stdout, "", "errors are not printed on stdout");
}

#[test]
fn asks_lists_the_requests_of_all_sessions_with_their_options() {
    let home = TestHome::new();
    start(&home);
    insta::assert_snapshot!("asks", home.run(&["asks"]).to_snapshot());
    insta::assert_snapshot!("asks_quiet", home.run(&["asks", "--format", "quiet"]).to_snapshot());
    insta::assert_snapshot!("asks_json", home.run(&["asks", "--format", "json"]).to_snapshot());
}

#[test]
fn asks_without_requests_succeeds_and_starts_no_daemon() {
    let home = TestHome::new();
    insta::assert_snapshot!("asks_without_daemon", home.run(&["asks"]).to_snapshot());
    assert!(!home.socket().exists());
    hub(&json!([])).start(&home);
    insta::assert_snapshot!("asks_none", home.run(&["asks"]).to_snapshot());
    let json = home.run(&["asks", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, json!({ "version": 1, "asks": [] }));
}

#[test]
fn title_of_a_request_is_read_from_its_tool_call() {
    let home = TestHome::new();
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit a.rs" });
    let other = json!({ "sessionUpdate": "tool_call", "toolCallId": "t2", "title": "no" });
    let end = response(&json!({ "sessionId": SESSION, "head": 3 }));
    let received = hub(&json!([permission(SESSION, 1, &Value::Null, &options())]))
        .on("_jackfield/attach", &[session_update(1, &call), session_update(2, &other), end])
        .start(&home);
    insta::assert_snapshot!("asks_looked_up", home.run(&["asks"]).to_snapshot());
    insta::assert_snapshot!("answer_looked_up", home.run(&["answer", "7f3", "y"]).to_snapshot());
    let looked = &received.with_method("_jackfield/attach")[0]["params"];
    assert_eq!(looked["observe"], true, "the command is an observer");
}

#[test]
fn option_is_chosen_by_key_by_id_or_by_allow_and_deny() {
    let home = TestHome::new();
    let received = start(&home);
    insta::assert_snapshot!("answer", home.run(&["answer", "7f3", "y"]).to_snapshot());
    assert_eq!(last_answer(&received), (json!(SESSION), json!(3), selected("once")));
    for (typed, option) in
        [("a", "always"), ("always", "always"), ("N", "no"), ("allow", "once"), ("deny", "no")]
    {
        assert_eq!(home.run(&["answer", "s-7f3:4", typed]).code, 0, "{typed}");
        assert_eq!(last_answer(&received), (json!(SESSION), json!(4), selected(option)), "{typed}");
    }
    insta::assert_snapshot!("answer_ended", home.run(&["answer", "b20", "deny"]).to_snapshot());
    assert_eq!(last_answer(&received).2, json!({ "outcome": { "outcome": "cancelled" } }));
    let methods = received.methods();
    assert!(
        !methods.contains(&"_jackfield/attach".to_owned()),
        "the command does not attach: {methods:?}"
    );
}

#[test]
fn form_is_answered_with_json() {
    let home = TestHome::new();
    let received = start(&home);
    let accept = r#"{"action":"accept","content":{"branch":"main"}}"#;
    let outcome = home.run(&["answer", "7f4", "--json", accept]);
    insta::assert_snapshot!("answer_form", outcome.to_snapshot());
    let wanted: Value = serde_json::from_str(accept).unwrap();
    assert_eq!(last_answer(&received), (json!("s-7f4abcdefghi"), json!(2), wanted));
    assert_failed("answer_form_option", 2, &home.run(&["answer", "7f4", "y"]));
    assert_failed("answer_form_nothing", 2, &home.run(&["answer", "7f4"]));
    assert_failed("answer_bad_json", 2, &home.run(&["answer", "7f4", "--json", "{action}"]));
    assert_eq!(received.with_method("_jackfield/answer").len(), 1);
}

#[test]
fn title_may_end_like_a_request_number() {
    let home = TestHome::new();
    let mut rows = rows();
    rows[1]["title"] = json!("step:2");
    let received = hub(&asks()).with_sessions(&rows).start(&home);
    let decline = r#"{"action":"decline"}"#;
    for named in ["step:2", "step:2:2", "7f4:2"] {
        assert_eq!(home.run(&["answer", named, "--json", decline]).code, 0, "{named}");
        assert_eq!(last_answer(&received).1, 2);
    }
}

#[test]
fn unknown_option_is_exit_code_2_and_options_are_listed() {
    let home = TestHome::new();
    let received = start(&home);
    assert_failed("answer_unknown_option", 2, &home.run(&["answer", "7f3", "maybe"]));
    assert_failed("answer_no_option", 2, &home.run(&["answer", "7f3"]));
    assert!(received.with_method("_jackfield/answer").is_empty());
}

#[test]
fn unknown_request_is_exit_code_4() {
    let home = TestHome::new();
    let hub_data = json!({ "code": "ask_not_found", "session": SESSION, "ask": "9" });
    let message = format!("no ask 9 in session `{SESSION}`");
    hub(&asks()).on("_jackfield/answer", &[hub_error(-31008, &message, &hub_data)]).start(&home);
    assert_failed("answer_no_ask", 4, &home.run(&["answer", "7f3:9", "y"]));
    assert_failed("answer_nothing_asked", 4, &home.run(&["answer", "c00", "y"]));
    assert_failed("answer_no_session", 4, &home.run(&["answer", "s-q:1", "y"]));
}

#[test]
fn settled_request_is_exit_code_1_and_names_the_client() {
    let home = TestHome::new();
    let how = "answered by zed (c-2)";
    let hub_data = json!({ "code": "ask_settled", "session": SESSION, "ask": "1", "how": how });
    hub(&asks()).on("_jackfield/answer", &[hub_error(-31009, "x", &hub_data)]).start(&home);
    assert_failed("answer_settled", 1, &home.run(&["answer", "7f3:1", "y"]));
    assert_failed("answer_settled_first", 1, &home.run(&["answer", "7f3:3", "y"]));
}

#[test]
fn attached_client_sees_who_answered_a_request() {
    let home = TestHome::new();
    let frame = json!({
        "method": "session/request_permission",
        "params": { "toolCall": { "toolCallId": "t1", "title": "Push" }, "options": options() },
    });
    let asked = hub_event("ask", 19, "asked", json!({ "ask": 1, "frame": frame }));
    let answer = json!({ "result": selected("once") });
    let by = "jackfield-answer (c-4)";
    let answer = json!({ "ask": 1, "by": by, "answer": answer });
    let answered = hub_event("ask", 20, "answered", answer);
    let settled = json!({
        "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 3 },
    });
    let head = response(&json!({ "sessionId": SESSION, "head": 18 }));
    let live =
        [asked, crate::fake_hub::permission_request(3, "execute"), answered, settled.to_string()];
    let said = [message_chunk(21, "agent_message_chunk", "Pushed."), CLOSE_CONNECTION.to_owned()];
    let lines = [vec![head], live.to_vec(), said.to_vec()].concat();
    FakeHub::new().on("_jackfield/attach", &lines).start(&home);
    let mut child = home.command(&["attach", "--all"]).stdin(Stdio::piped()).spawn().unwrap();
    // Stdin stays open without input.
    let keyboard = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(keyboard);
    insta::assert_snapshot!("attach_answered", String::from_utf8(output.stderr).unwrap());
}
