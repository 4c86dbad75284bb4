//! The `OpenAI` Responses API: a request and its stream.

use jackfield_test_support::fake_model::FakeModel;
use serde_json::{Value, json};

use super::http::{Http, Response};

const PATH: &str = "/a/test/v1/responses";

fn user(text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    json!({"type": "message", "role": "user", "content": content})
}

fn send_request(model: &FakeModel, input: &Value, tools: &Value) -> Response {
    let body = json!({"model": "fake-model", "stream": true, "input": input, "tools": tools});
    Http::connect(model.addr).call("POST", PATH, &body)
}

/// The `delta` of all events of one type, joined.
fn joined_deltas(response: &Response, kind: &str) -> String {
    let events = response.events();
    let deltas = events.iter().filter(|it| it["type"] == kind);
    deltas.filter_map(|it| it["delta"].as_str()).collect()
}

/// The output of the completed response.
fn output(response: &Response) -> Vec<Value> {
    let events = response.events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    last["response"]["output"].as_array().unwrap().clone()
}

#[test]
fn greeting_has_exactly_these_bytes() {
    let model = FakeModel::start();
    let response = send_request(&model, &json!([user("ECHO one")]), &json!([]));
    let begun = r#""id":"resp_ID","object":"response","created_at":1700000000,"status":"in_progress","model":"fake-model","output":[],"tools":[],"parallel_tool_calls":true,"tool_choice":"auto","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"usage":null"#;
    let item = r#"{"type":"message","id":"msg_ID","status":"completed","role":"assistant","content":[{"type":"output_text","text":"one","annotations":[]}]}"#;
    let usage = r#"{"input_tokens":120,"input_tokens_details":{"cached_tokens":20},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":121}"#;
    let done = begun.replace("in_progress", "completed");
    let done = done.replace(r#""output":[]"#, &format!(r#""output":[{item}]"#));
    let done = done.replace(r#""usage":null"#, &format!(r#""usage":{usage}"#));
    let place = r#""item_id":"msg_ID","output_index":0"#;
    let events = [
        ("response.created", format!(r#""response":{{{begun}}}"#)),
        ("response.in_progress", format!(r#""response":{{{begun}}}"#)),
        (
            "response.output_item.added",
            r#""output_index":0,"item":{"type":"message","id":"msg_ID","status":"in_progress","role":"assistant","content":[]}"#.into(),
        ),
        (
            "response.content_part.added",
            format!(r#"{place},"content_index":0,"part":{{"type":"output_text","text":"","annotations":[]}}"#),
        ),
        ("response.output_text.delta", format!(r#"{place},"content_index":0,"delta":"one""#)),
        ("response.output_text.done", format!(r#"{place},"content_index":0,"text":"one""#)),
        (
            "response.content_part.done",
            format!(r#"{place},"content_index":0,"part":{{"type":"output_text","text":"one","annotations":[]}}"#),
        ),
        ("response.output_item.done", format!(r#""output_index":0,"item":{item}"#)),
        ("response.completed", format!(r#""response":{{{done}}}"#)),
    ];
    let event = |(number, (name, rest)): (usize, &(&str, String))| {
        let head = format!(r#""type":"{name}","sequence_number":{number}"#);
        format!("event: {name}\ndata: {{{head},{rest}}}\n\n")
    };
    let wanted: String = events.iter().enumerate().map(event).collect();
    assert_eq!(response.bytes(&model), wanted);
}

#[test]
fn function_call_arguments_come_in_pieces_after_the_reasoning() {
    let model = FakeModel::start();
    let parameters = json!({"properties": {"cmd": {"type": "string"}}, "required": ["cmd"]});
    let shell = json!({"type": "function", "name": "exec_command", "parameters": parameters});
    let group = json!({"type": "namespace", "name": "unix", "tools": [shell]});
    let response = send_request(&model, &json!([user("THINK, TOOL")]), &json!([group]));
    let thoughts = joined_deltas(&response, "response.reasoning_summary_text.delta");
    assert_eq!(thoughts, "I should think about this first.");
    let arguments = joined_deltas(&response, "response.function_call_arguments.delta");
    assert_eq!(arguments, r#"{"cmd":"echo hello-from-tool"}"#);
    let output = output(&response);
    let kinds: Vec<_> = output.iter().map(|it| it["type"].clone()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(
        (&output[2]["name"], &output[2]["namespace"]),
        (&json!("exec_command"), &json!("unix"))
    );
    let call = json!({"type": "function_call", "call_id": output[2]["call_id"]});
    let answer = json!({"type": "function_call_output", "output": "a\nfile"});
    let response = send_request(&model, &json!([user("TOOL"), call, answer]), &json!([group]));
    let text = joined_deltas(&response, "response.output_text.delta");
    assert_eq!(text, "The tool answered: a file - done.");
}

#[test]
fn codex_gets_code_for_its_code_tool() {
    let model = FakeModel::start();
    let exec = json!({"type": "custom", "name": "exec", "description": "runs JavaScript"});
    let offer = json!({"type": "additional_tools", "tools": [exec]});
    let instructions = user("# AGENTS.md\nTOUCH nothing");
    let context = user("<environment_context>WRITE</environment_context>");
    let input = |text| json!([offer, instructions, context, user(text)]);
    let response = send_request(&model, &input("TOOL"), &json!(null));
    let code = r#"text((await tools.exec_command({"cmd":"echo hello-from-tool"})).output)"#;
    assert_eq!(joined_deltas(&response, "response.custom_tool_call_input.delta"), code);
    let output = output(&response);
    assert_eq!(
        (&output[1]["type"], &output[1]["input"]),
        (&json!("custom_tool_call"), &json!(code))
    );
    assert_eq!(model.log()[0]["userTurns"], 1);
    let response = send_request(&model, &input("WRITE /tmp/x.txt"), &json!(null));
    let code = joined_deltas(&response, "response.custom_tool_call_input.delta");
    assert!(
        code.contains("tools.apply_patch(\"*** Begin Patch\\n*** Add File: /tmp/x.txt"),
        "{code}"
    );
}

#[test]
fn complete_responses_json_and_errors_have_the_format_of_the_api() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let mut body = json!({"model": "fake-model", "input": "THINK"});
    let whole = http.call("POST", PATH, &body).json();
    assert_eq!(whole["output"][1]["content"][0]["text"], "Hello from the fake model.");
    assert_eq!(whole["output"][0]["summary"][0]["text"], "I should think about this first.");
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    body["text"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let whole = http.call("POST", PATH, &body).json();
    assert_eq!(whole["output"][0]["content"][0]["text"], r#"{"n":1}"#);

    for (word, kind, code) in [
        ("ERR401", "invalid_request_error", "invalid_api_key"),
        ("ERR403", "permission_error", "forbidden"),
        ("ERR429", "rate_limit_error", "rate_limit_exceeded"),
        ("ERR500", "api_error", "server_error"),
        ("ERR529", "overloaded_error", "overloaded"),
    ] {
        let response = http.call("POST", PATH, &json!({"input": word, "stream": true}));
        assert_eq!(response.status.to_string(), word[3..]);
        assert_eq!(response.head.contains("retry-after: 1\r\n"), word == "ERR429");
        let error = response.json()["error"].clone();
        assert_eq!((&error["type"], &error["code"]), (&json!(kind), &json!(code)));
    }
}
