//! Chat Completions: a request in, the stream out.

use jackfield_test_support::fake_model::FakeModel;
use serde_json::json;

use super::http::{CHAT, Http, streamed, wait_until};

#[test]
fn a_plain_prompt_gets_a_greeting_in_five_chunks_and_then_usage() {
    let model = FakeModel::start();
    let response = Http::connect(model.addr).prompt("Hello?");
    assert_eq!(response.said("content"), "Hello from the fake model.");
    let events = response.events();
    assert_eq!(events.len(), 1 + 5 + 1 + 1);
    assert_eq!(events[6]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[7]["usage"]["total_tokens"], 125);
    assert_eq!(model.log()[0]["testKey"], true);
    wait_until("the log says it is done", || model.log()[0]["end"] == "done");
}

#[test]
fn an_answer_can_come_in_one_piece_and_as_json() {
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
fn a_tool_of_the_request_is_called_and_its_answer_is_said() {
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

    let talk = streamed(&[("user", "TOOL"), ("assistant", ""), ("tool", "a\n  file")]);
    let response = http.call("POST", CHAT, &talk);
    assert_eq!(response.said("content"), "The tool answered: a file - done.");
    assert_eq!(http.prompt("TOOL").said("content"), "No tool I know was offered.");
}

#[test]
fn turns_are_counted_thoughts_come_first_and_long_answers_are_long() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let talk = [("user", "one"), ("assistant", "yes"), ("user", "<x>SLOW</x>"), ("user", "COUNT")];
    let response = http.call("POST", CHAT, &streamed(&talk));
    assert_eq!(response.said("content"), "I see 2 user messages.");
    let response = http.prompt("THINK hard");
    assert_eq!(response.said("reasoning_content"), "I should think about this first.");
    assert!(200_000 / 2 < http.prompt("LONG").said("content").len());
}
