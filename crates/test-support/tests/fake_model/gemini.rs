//! The Gemini API: a request and its stream.

use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

use super::http::{Http, Response};

const STREAM: &str = "/a/test/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
const WHOLE: &str = "/a/test/v1beta/models/gemini-2.5-flash:generateContent";

fn request(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

fn send_request(model: &FakeModel, path: &str, body: &Value) -> Response {
    Http::connect(model.addr).call("POST", path, body)
}

fn shell() -> Value {
    let schema = json!({
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
    });
    let function = json!({"name": "run_shell_command", "parametersJsonSchema": schema});
    json!([{"functionDeclarations": [function]}])
}

/// All parts of a stream.
fn parts(response: &Response) -> Vec<Value> {
    let events = response.events();
    let parts = events.iter().map(|it| it["candidates"][0]["content"]["parts"].clone());
    parts.flat_map(|it| it.as_array().cloned().unwrap_or_default()).collect()
}

fn joined_deltas(response: &Response) -> String {
    let parts = parts(response);
    let texts = parts.iter().filter(|it| it["thought"] != true);
    texts.filter_map(|it| it["text"].as_str()).collect()
}

#[test]
fn greeting_has_exactly_these_bytes() {
    let model = FakeModel::start();
    let response = send_request(&model, STREAM, &request("ECHO one two"));
    let wanted = r#"data: {"candidates":[{"content":{"parts":[{"text":"one "}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-flash","responseId":"ID"}

data: {"candidates":[{"content":{"parts":[{"text":"two"}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-flash","responseId":"ID"}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0,"finishReason":"STOP"}],"modelVersion":"gemini-2.5-flash","responseId":"ID","usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":2,"totalTokenCount":122,"cachedContentTokenCount":20}}

"#;
    assert_eq!(response.bytes(&model), wanted);
    assert_eq!(model.log()[0]["model"], "gemini-2.5-flash");
}

#[test]
fn reasoning_is_marked_and_calls_come_complete_in_one_event() {
    let model = FakeModel::start();
    let mut body = request("THINK, then TWOTOOLS");
    body["tools"] = shell();
    let response = send_request(&model, STREAM, &body);
    let parts = parts(&response);
    assert_eq!(parts[0], json!({"text": "I should ", "thought": true}));
    let calls: Vec<&Value> = parts.iter().filter_map(|it| it.get("functionCall")).collect();
    let call = |command: &str| json!({"name": "run_shell_command", "args": {"command": command}});
    assert_eq!(calls, [&call("echo hello-from-tool"), &call("echo hello-again")]);

    let answer = json!({"name": "run_shell_command", "response": {"output": "a file"}});
    let turn = json!({"role": "user", "parts": [{"functionResponse": answer}]});
    body["contents"].as_array_mut().unwrap().push(turn);
    let answered = joined_deltas(&send_request(&model, STREAM, &body));
    assert_eq!(answered, r#"The tool answered: {"output":"a file"} - done."#);
}

#[test]
fn response_can_be_complete_a_list_and_json() {
    let model = FakeModel::start();
    let text = "/candidates/0/content/parts/0/text";
    let whole = send_request(&model, WHOLE, &request("hello")).json();
    assert_eq!(whole.pointer(text), Some(&json!("Hello from the fake model.")));
    let list =
        send_request(&model, STREAM.strip_suffix("?alt=sse").unwrap(), &request("hello")).json();
    assert_eq!(list[0].pointer(text), whole.pointer(text));

    let mut body = request("TOOL");
    body["tools"] = shell();
    let properties =
        json!({"next": {"type": "STRING", "enum": ["user", "model"]}, "n": {"type": "NUMBER"}});
    let schema = json!({"type": "OBJECT", "properties": properties, "required": ["next", "n"]});
    body["generationConfig"] =
        json!({"responseMimeType": "application/json", "responseSchema": schema});
    let wanted = r#"{"next":"user","n":1}"#;
    assert_eq!(send_request(&model, WHOLE, &body).json().pointer(text), Some(&json!(wanted)));
    assert_eq!(joined_deltas(&send_request(&model, STREAM, &body)), wanted);
    body["generationConfig"] = json!({"responseMimeType": "application/json"});
    assert_eq!(joined_deltas(&send_request(&model, STREAM, &body)), "{}");
}

#[test]
fn errors_counts_and_models_have_the_format_of_the_api() {
    let model = FakeModel::start();
    for (word, status) in [
        ("ERR401", "UNAUTHENTICATED"),
        ("ERR403", "PERMISSION_DENIED"),
        ("ERR429", "RESOURCE_EXHAUSTED"),
        ("ERR500", "INTERNAL"),
        ("ERR529", "UNAVAILABLE"),
    ] {
        let response = send_request(&model, STREAM, &request(word));
        assert_eq!(response.status.to_string(), word[3..]);
        assert!(!response.head.contains("retry-after"), "the delay is in the body");
        let error = response.json()["error"].clone();
        assert_eq!((&error["code"], &error["status"]), (&json!(response.status), &json!(status)));
        assert_eq!(error["details"][0]["retryDelay"] == "1s", word == "ERR429");
    }
    let path = WHOLE.replace("generateContent", "countTokens");
    let counted = send_request(&model, &path, &request("how long is this?")).json();
    assert!(10 < counted["totalTokens"].as_u64().unwrap(), "{counted}");
    let list = Http::connect(model.addr).call("GET", "/v1beta/models", &json!(null)).json();
    assert_eq!(list["models"][0]["name"], "models/fake-model");
}
