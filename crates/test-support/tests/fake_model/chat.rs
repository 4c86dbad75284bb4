//! The Chat Completions API: a request and its stream.

use jackfield_test_support::fake_model::FakeModel;
use serde_json::json;

use super::http::{CHAT, Http, streamed, wait_until};

#[test]
fn plain_prompt_gets_a_greeting_in_five_chunks_then_usage() {
    let model = FakeModel::start();
    let response = Http::connect(model.addr).prompt("Hello?");
    assert_eq!(response.joined_deltas("content"), "Hello from the fake model.");
    let events = response.events();
    assert_eq!(events.len(), 1 + 5 + 1 + 1);
    assert_eq!(events[6]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[7]["usage"]["total_tokens"], 125);
    assert_eq!(model.log()[0]["testKey"], true);
    wait_until("the log has the end", || model.log()[0]["end"] == "done");
}

#[test]
fn response_can_be_complete_and_json() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let mut body = streamed(&[("user", "ECHO one two")]);
    body["stream"] = json!(false);
    let answer = http.call("POST", "/chat/completions", &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "one two");
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"schema": schema}});
    let answer = http.call("POST", "/chat/completions", &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"n":1}"#);
}

#[test]
fn offered_tool_is_called_and_its_result_is_repeated() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let parameters =
        json!({"properties": {"command": {"type": "string"}}, "required": ["command"]});
    let shell =
        json!({"type": "function", "function": {"name": "ns__shell", "parameters": parameters}});
    let parameters = json!({"properties": {"path": {}, "content": {}}});
    let write =
        json!({"type": "function", "function": {"name": "write", "parameters": parameters}});
    let mut body = streamed(&[("user", "TOUCH please")]);
    body["tools"] = json!([write, shell]);
    let response = http.call("POST", CHAT, &body);
    let events = response.events();
    let calls: Vec<_> =
        events.iter().map(|it| &it["choices"][0]["delta"]["tool_calls"][0]["function"]).collect();
    let name: String = calls.iter().filter_map(|it| it["name"].as_str()).collect();
    let arguments: String = calls.iter().filter_map(|it| it["arguments"].as_str()).collect();
    assert_eq!(name, "ns__shell");
    assert!(arguments.starts_with(r#"{"command":"touch "#), "{arguments}");
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");

    body["messages"][0]["content"] = json!("WRITE to /tmp/x.txt");
    http.call("POST", CHAT, &body);
    let call = json!([["write", {"path": "/tmp/x.txt", "content": "hello-from-tool\n"}]]);
    assert_eq!(model.log()[1]["calls"], call);

    body["messages"][0]["content"] = json!("TWOTOOLS");
    http.call("POST", CHAT, &body);
    assert_eq!(model.log()[2]["calls"].as_array().map(Vec::len), Some(2));

    let messages = streamed(&[("user", "TOOL"), ("assistant", ""), ("tool", "a\n  file")]);
    let response = http.call("POST", CHAT, &messages);
    assert_eq!(response.joined_deltas("content"), "The tool answered: a file - done.");
    assert_eq!(http.prompt("TOOL").joined_deltas("content"), "No tool I know was offered.");
}

#[test]
fn turns_are_counted_and_reasoning_comes_first() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let messages =
        [("user", "one"), ("assistant", "yes"), ("user", "<x>SLOW</x>"), ("user", "COUNT")];
    let response = http.call("POST", CHAT, &streamed(&messages));
    assert_eq!(response.joined_deltas("content"), "I see 2 user messages.");
    let response = http.prompt("THINK hard");
    assert_eq!(response.joined_deltas("reasoning_content"), "I should think about this first.");
    assert!(200_000 / 2 < http.prompt("LONG").joined_deltas("content").len());
}
