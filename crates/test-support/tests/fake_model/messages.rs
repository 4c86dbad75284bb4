//! The Anthropic Messages API: a request and its stream.

use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

use super::http::{Http, Response};

const PATH: &str = "/a/test/v1/messages";

fn request(content: &Value) -> Value {
    let message = json!({"role": "user", "content": content});
    json!({"model": "fake-model", "max_tokens": 9, "stream": true, "messages": [message]})
}

fn send_request(model: &FakeModel, body: &Value) -> Response {
    Http::connect(model.addr).call("POST", PATH, body)
}

fn bash() -> Value {
    let schema = json!({
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
    });
    json!({"name": "Bash", "description": "runs", "input_schema": schema})
}

/// A member of all deltas of one kind, joined.
fn joined_deltas(response: &Response, kind: &str, field: &str) -> String {
    let events = response.events();
    let deltas = events.iter().map(|it| &it["delta"]).filter(|it| it["type"] == kind);
    deltas.filter_map(|it| it[field].as_str()).collect()
}

#[test]
fn greeting_has_exactly_these_bytes() {
    let model = FakeModel::start();
    let response = send_request(&model, &request(&json!("ECHO one two")));
    let wanted = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_ID","type":"message","role":"assistant","model":"fake-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"#;
    assert_eq!(response.bytes(&model), wanted);
}

#[test]
fn reasoning_is_a_signed_block_and_each_tool_call_has_one() {
    let model = FakeModel::start();
    let mut body = request(&json!([{"type": "text", "text": "THINK, then TWOTOOLS"}]));
    body["tools"] = json!([bash()]);
    let response = send_request(&model, &body);
    let thoughts = joined_deltas(&response, "thinking_delta", "thinking");
    assert_eq!(thoughts, "I should think about this first.");
    assert_eq!(joined_deltas(&response, "signature_delta", "signature"), "ZmFrZQ==");
    let input = joined_deltas(&response, "input_json_delta", "partial_json");
    assert_eq!(input, r#"{"command":"echo hello-from-tool"}{"command":"echo hello-again"}"#);
    let events = response.events();
    let blocks = events.iter().filter(|it| it["type"] == "content_block_start");
    let kinds: Vec<_> = blocks.map(|it| it["content_block"]["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");

    body["stream"] = json!(false);
    let whole = send_request(&model, &body).json();
    assert_eq!(whole["content"][2]["input"]["command"], "echo hello-from-tool");
    assert_eq!(whole["stop_reason"], "tool_use");
}

#[test]
fn tool_result_is_repeated_unless_a_user_message_follows() {
    let model = FakeModel::start();
    let answer = json!({"type": "tool_result", "tool_use_id": "t", "content": "a file"});
    let reminder = json!({"type": "text", "text": "<system-reminder>COUNT</system-reminder>"});
    let response = send_request(&model, &request(&json!([answer, reminder])));
    assert_eq!(joined_deltas(&response, "text_delta", "text"), "The tool answered: a file - done.");
    let cancelled = json!({"type": "text", "text": "[Request interrupted by user for tool use]"});
    let next = json!({"type": "text", "text": "COUNT"});
    let response = send_request(&model, &request(&json!([answer, cancelled, next])));
    assert_eq!(joined_deltas(&response, "text_delta", "text"), "I see 1 user messages.");
}

#[test]
fn json_errors_counts_and_models_have_the_format_of_the_api() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let mut body = request(&json!("give me JSON"));
    let schema = json!({"type": "object", "properties": {"t": {}}, "required": ["t"]});
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let response = http.call("POST", PATH, &body);
    assert_eq!(joined_deltas(&response, "text_delta", "text"), r#"{"t":"fake"}"#);

    for (word, kind, waits) in [
        ("ERR401", "authentication_error", false),
        ("ERR403", "permission_error", false),
        ("ERR429", "rate_limit_error", true),
        ("ERR500", "api_error", false),
        ("ERR529", "overloaded_error", true),
    ] {
        let response = http.call("POST", PATH, &request(&json!(word)));
        assert_eq!(response.status.to_string(), word[3..]);
        assert_eq!(response.head.contains("retry-after: 1\r\n"), waits, "{word}");
        let error = response.json();
        assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!(kind)));
    }
    let counted = http.call("POST", &format!("{PATH}/count_tokens"), &body).json();
    assert!(10 < counted["input_tokens"].as_u64().unwrap(), "{counted}");
    http.send_with("GET", "/v1/models", "anthropic-version: 2023-06-01", "");
    let list = http.response().json();
    assert_eq!((&list["first_id"], &list["has_more"]), (&json!("fake-model"), &json!(false)));
}
