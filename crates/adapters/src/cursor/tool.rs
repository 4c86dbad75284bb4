//! Cursor's tool calls: the name of a key is the name of the tool, and another key is its outcome.

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::{AdapterTurn, ToolUpdate, known_tools};
use serde_json::{Map, Value};

pub(super) fn on_tool_call(calls: &mut ToolCallTracker, event: &Value, turn: &mut AdapterTurn) {
    // The second line is the provider's own id, which is not always present.
    let id = event["call_id"].as_str().and_then(|id| id.lines().next());
    let (Some(id), Some((name, body))) = (id, find_call(&event["tool_call"])) else {
        return turn.report_unmapped(event);
    };
    let (name, input) = unwrap_call(name, body);
    calls.begin_call(id, &name, &input, turn);
    if event["subtype"] == "completed" {
        on_result(calls, id, &input, &body["result"], turn);
    }
}

/// Finds the name and the body: `{"readToolCall": {…}}` is a call of `read`.
fn find_call(tool_call: &Value) -> Option<(&str, &Value)> {
    let fields = tool_call.as_object()?;
    let native = fields.iter().find(|(key, _)| key.ends_with("ToolCall"));
    let (key, body) = native.or_else(|| fields.get_key_value("function"))?;
    Some((key.strip_suffix("ToolCall").unwrap_or(key), body))
}

/// The name and the input of the tool. MCP tools and functions are wrapped once more.
fn unwrap_call(name: &str, body: &Value) -> (String, Value) {
    let args = &body["args"];
    match name {
        "mcp" => {
            let keys = ["toolName", "name"];
            (known_tools::first_text(args, &keys).unwrap_or(name).to_owned(), args["args"].clone())
        }
        "function" => {
            let arguments = &body["arguments"];
            let parsed = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
            let name = body["name"].as_str().unwrap_or(name).to_owned();
            (name, parsed.unwrap_or_else(|| arguments.clone()))
        }
        _ => (name.to_owned(), args.clone()),
    }
}

fn on_result(
    calls: &mut ToolCallTracker,
    id: &str,
    input: &Value,
    result: &Value,
    turn: &mut AdapterTurn,
) {
    let empty = Map::new();
    let outcomes = result.as_object().unwrap_or(&empty);
    let success = outcomes.get("success");
    // `error`, `failure`, `rejected`, `permissionDenied`, `timeout`: the first with a body.
    let other = outcomes.values().find(|it| it.is_object());
    let outcome = success.or(other).unwrap_or(&Value::Null);
    let has_bad_exit = outcome["exitCode"].as_i64().is_some_and(|code| code != 0);
    let failed = has_bad_exit || (success.is_none() && !result.is_null());
    let diff = file_diff(calls.cwd(), input, outcome).filter(|_| !failed);
    let result = CallResult { failed, text: &output_text(outcome), output: result };
    calls.end_call_with(id, result, diff.unwrap_or_default(), turn);
}

fn output_text(outcome: &Value) -> String {
    let printed: Vec<&str> =
        ["stdout", "stderr"].iter().filter_map(|name| outcome[*name].as_str()).collect();
    if printed.iter().any(|it| !it.is_empty()) {
        return printed.concat();
    }
    let names = ["content", "output", "message", "errorMessage", "error", "reason"];
    known_tools::first_text(outcome, &names).unwrap_or_default().to_owned()
}

/// The diff of an edit. The program reports the old and the new content only at the end of the
/// call.
fn file_diff(cwd: &str, input: &Value, outcome: &Value) -> Option<ToolUpdate> {
    let new = outcome["afterFullFileContent"].as_str()?;
    let path = known_tools::first_text(outcome, &["path"])
        .or_else(|| known_tools::first_text(input, &["path"]))?;
    let path = known_tools::to_absolute(cwd, path);
    Some(ToolUpdate::new().with_diff(&path, outcome["beforeFullFileContent"].as_str(), new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_effect::TurnEffect;
    use serde_json::json;

    fn first_and_last_update(tool_call: &Value) -> (Value, Value) {
        let (mut calls, mut turn) = (ToolCallTracker::new("/w"), AdapterTurn::default());
        turn.begin();
        let event = json!({"subtype": "completed", "call_id": "a\nb", "tool_call": tool_call});
        on_tool_call(&mut calls, &event, &mut turn);
        let updates: Vec<&Value> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                TurnEffect::SendUpdate(it) => Some(it),
                _ => None,
            })
            .collect();
        (updates[0].clone(), updates[updates.len() - 1].clone())
    }

    #[test]
    fn every_outcome_but_success_fails_the_call() {
        for result in [
            json!({"error": {"errorMessage": "why"}}),
            json!({"rejected": {"reason": "why"}}),
            json!({"failure": {"exitCode": 1, "stdout": "", "stderr": "why"}}),
            json!({"success": {"exitCode": 1, "stdout": "why", "stderr": ""}}),
        ] {
            let call = json!({"shellToolCall": {"args": {"command": "x"}, "result": result}});
            let (first, end) = first_and_last_update(&call);
            assert_eq!((&first["toolCallId"], &first["title"]), (&json!("a"), &json!("x")));
            assert_eq!(end["status"], "failed", "{call}");
            assert_eq!(end["content"][0]["content"]["text"], "why", "{call}");
        }
    }

    #[test]
    fn edit_shows_the_file_before_and_after() {
        let success = json!({"path": "a.rs", "beforeFullFileContent": "x", "afterFullFileContent": "y",
            "message": "edited"});
        let result = json!({"success": success});
        let (_, end) = first_and_last_update(
            &json!({"editToolCall": {"args": {"path": "a.rs"}, "result": result}}),
        );
        let diff = json!([{"type": "diff", "path": "/w/a.rs", "newText": "y", "oldText": "x"}]);
        assert_eq!((&end["content"], &end["status"]), (&diff, &json!("completed")));
    }

    #[test]
    fn mcp_tools_and_functions_are_unwrapped() {
        let args = json!({"toolName": "query", "args": {"sql": "1"}});
        let (first, _) = first_and_last_update(&json!({"mcpToolCall": {"args": args}}));
        assert_eq!((&first["title"], &first["rawInput"]), (&json!("query"), &json!({"sql": "1"})));
        let function = json!({"name": "grep", "arguments": "{\"pattern\":\"fn\"}"});
        assert_eq!(first_and_last_update(&json!({"function": function})).0["title"], "Search fn");
    }
}
