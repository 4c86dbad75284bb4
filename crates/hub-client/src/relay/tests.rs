//! Tests of the relay: what the hub and the client get when a connection is lost.

use super::{ClientRelay, RelayOutput};
use bytes::Bytes;
use serde_json::{Value, json};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[]}}"#;

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn values(lines: &[Bytes]) -> Vec<Value> {
    lines.iter().map(|it| serde_json::from_slice(it).unwrap()).collect()
}

fn methods(output: &RelayOutput) -> Vec<String> {
    let method = |it: Value| it["method"].as_str().unwrap_or("response").to_owned();
    values(&output.to_hub).into_iter().map(method).collect()
}

fn update(seq: u64, text: &str) -> Bytes {
    let update = json!({ "sessionUpdate": text });
    let meta = json!({ "jackfield": { "seq": seq, "at": 1, "turn": 1 } });
    let params = json!({ "_meta": meta, "sessionId": "s-1", "update": update });
    line(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}

/// A relay whose client has initialized and opened `s-1`.
fn relay() -> ClientRelay {
    let mut relay = ClientRelay::new(7, &[json!({ "agent": "echo" })]);
    let sent = relay.on_client_line(INITIALIZE.into());
    assert_eq!(methods(&sent), ["_jackfield/relay", "initialize"]);
    assert_eq!(sent.to_hub[1], INITIALIZE, "no byte is changed");
    relay.on_hub_line(line(&json!({ "jsonrpc": "2.0", "id": 0, "result": {} })));
    let new =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/x" } });
    let sent = relay.on_client_line(line(&new));
    assert!(values(&sent.to_hub)[0]["params"]["_meta"]["jackfield"]["key"].is_string());
    let opened = json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s-1" } });
    assert_eq!(relay.on_hub_line(line(&opened)), [line(&opened)]);
    relay
}

/// The connection is lost and opened again.
fn reconnect(relay: &mut ClientRelay) -> RelayOutput {
    relay.on_hub_lost();
    relay.on_hub_connected()
}

#[test]
fn pending_prompt_is_repeated_with_its_key_after_handshake_and_attach() {
    let mut relay = relay();
    let prompt = relay.on_client_line(PROMPT.into());
    assert!(relay.has_running_turns());
    assert_eq!(relay.on_hub_line(update(3, "a")).len(), 1);
    for _ in 0..2 {
        let sent = reconnect(&mut relay);
        let expected = [
            "_jackfield/relay",
            "_jackfield/connect",
            "initialize",
            "_jackfield/attach",
            "session/prompt",
        ];
        assert_eq!(methods(&sent), expected);
        assert!(sent.to_client.is_empty());
        let frames = values(&sent.to_hub);
        assert_eq!(frames[1]["params"], json!({ "agent": "echo" }));
        assert_eq!(frames[3]["params"], json!({ "sessionId": "s-1", "after": 2 }));
        assert_eq!(sent.to_hub[4], prompt.to_hub[0], "the same key: it cannot run twice");
        for id in [&frames[2]["id"], &frames[3]["id"]] {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "head": 2 } });
            assert!(relay.on_hub_line(line(&answer)).is_empty(), "the client has not asked");
        }
    }
    let error =
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -31006, "message": "interrupted" } });
    assert_eq!(relay.on_hub_line(line(&error)), [line(&error)]);
    assert!(relay.on_hub_line(line(&error)).is_empty(), "one answer");
    assert!(!relay.has_pending_requests());
}

#[test]
fn events_are_delivered_once_and_without_the_numbers_of_the_hub() {
    let mut relay = relay();
    let plain = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"a"}}}"#;
    assert_eq!(relay.on_hub_line(update(3, "a")), [plain]);
    reconnect(&mut relay);
    assert!(relay.on_hub_line(update(3, "a")).is_empty());
    assert_eq!(relay.on_hub_line(update(4, "b")).len(), 1);
}

#[test]
fn own_prompt_in_a_replay_is_not_shown_to_its_client() {
    let mut relay = relay();
    let prompt = values(&relay.on_client_line(PROMPT.into()).to_hub).remove(0);
    reconnect(&mut relay);
    let chunk = |key: &Value| {
        let meta = json!({ "jackfield": { "seq": 2, "at": 1, "turn": 1, "key": key } });
        let update = json!({ "sessionUpdate": "user_message_chunk" });
        let params = json!({ "_meta": meta, "sessionId": "s-1", "update": update });
        line(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    };
    assert!(relay.on_hub_line(chunk(&prompt["params"]["_meta"]["jackfield"]["key"])).is_empty());
    assert_eq!(relay.on_hub_line(chunk(&json!("of another client"))).len(), 1);
}

#[test]
fn requests_of_an_ended_hub_are_withdrawn_and_their_late_answers_dropped() {
    let mut relay = relay();
    let ask = |id: u64| {
        line(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
                      "params": { "sessionId": "s-1" } }))
    };
    let answer = |id: u64| line(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    assert_eq!(relay.on_hub_line(ask(1)), [ask(1)]);
    let withdrawn = values(&relay.on_hub_lost());
    assert_eq!(withdrawn[0]["method"], "$/cancel_request");
    assert_eq!(withdrawn[0]["params"]["requestId"], 1);
    relay.on_hub_connected();
    // The next hub counts from the beginning.
    assert_eq!(relay.on_hub_line(ask(1)), [ask(2)]);
    assert_eq!(relay.on_client_line(answer(1)), RelayOutput::default());
    assert_eq!(relay.on_client_line(answer(2)).to_hub, [answer(1)]);
}

#[test]
fn request_that_must_not_run_twice_is_answered_with_an_error() {
    let mut relay = relay();
    let login = json!({ "jsonrpc": "2.0", "id": 5, "method": "authenticate", "params": {} });
    relay.on_client_line(line(&login));
    let sent = reconnect(&mut relay);
    assert!(!methods(&sent).contains(&"authenticate".to_owned()));
    let answer = &values(&sent.to_client)[0];
    assert_eq!(
        (&answer["id"], &answer["error"]["data"]["jackfield"]["code"]),
        (&json!(5), &json!("interrupted"))
    );
    relay.on_client_line(PROMPT.into());
    let refused = values(&relay.refuse_requests("the daemon cannot be started"));
    assert_eq!(refused[0]["id"], 2);
    assert!(!relay.has_pending_requests());
}

#[test]
fn load_is_repeated_without_delivering_frames_twice() {
    let mut relay = relay();
    let load = json!({ "jsonrpc": "2.0", "id": 3, "method": "session/load", "params": { "sessionId": "s-1" } });
    relay.on_client_line(line(&load));
    assert_eq!(relay.on_hub_line(update(1, "a")).len(), 1);
    let sent = reconnect(&mut relay);
    assert_eq!(methods(&sent).last().unwrap(), "session/load");
    assert!(!methods(&sent).contains(&"_jackfield/attach".to_owned()));
    let delivered = [1, 2, 3].map(|it| relay.on_hub_line(update(it, "a")).len());
    assert_eq!(delivered, [0, 1, 1]);
}
