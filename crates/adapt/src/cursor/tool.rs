//! Cursor's tool calls: the name is a key, the outcome another.

use crate::calls::{Calls, End};
use crate::{Tool, Turn, kinds};
use serde_json::{Map, Value};

pub(super) fn on_tool_call(calls: &mut Calls, event: &Value, turn: &mut Turn) {
    // The second line is the provider's own id and not always there.
    let id = event["call_id"].as_str().and_then(|id| id.lines().next());
    let (Some(id), Some((name, body))) = (id, named(&event["tool_call"])) else {
        return turn.unmapped(event);
    };
    let (name, input) = called(name, body);
    calls.begin(id, &name, &input, turn);
    if event["subtype"] == "completed" {
        on_result(calls, id, &input, &body["result"], turn);
    }
}

/// `{"readToolCall": {…}}` is a call of `read`.
fn named(tool_call: &Value) -> Option<(&str, &Value)> {
    let fields = tool_call.as_object()?;
    let named = |suffix: &str| fields.iter().find(|(key, _)| key.ends_with(suffix));
    let (key, body) = named("ToolCall").or_else(|| fields.get_key_value("function"))?;
    Some((key.strip_suffix("ToolCall").unwrap_or(key), body))
}

/// Tools of others are wrapped once more.
fn called(name: &str, body: &Value) -> (String, Value) {
    let args = &body["args"];
    match name {
        "mcp" => {
            let words = ["toolName", "name"];
            (kinds::text_of(args, &words).unwrap_or(name).to_owned(), args["args"].clone())
        }
        "function" => {
            let told = &body["arguments"];
            let parsed = told.as_str().and_then(|text| serde_json::from_str(text).ok());
            let name = body["name"].as_str().unwrap_or(name).to_owned();
            (name, parsed.unwrap_or_else(|| told.clone()))
        }
        _ => (name.to_owned(), args.clone()),
    }
}

fn on_result(calls: &mut Calls, id: &str, input: &Value, result: &Value, turn: &mut Turn) {
    let nothing = Map::new();
    let kinds_of_end = result.as_object().unwrap_or(&nothing);
    let success = kinds_of_end.get("success");
    // `error`, `failure`, `rejected`, `permissionDenied`, `timeout`: whatever has words.
    let other = kinds_of_end.values().find(|it| it.is_object());
    let told = success.or(other).unwrap_or(&Value::Null);
    let exited_badly = told["exitCode"].as_i64().is_some_and(|code| code != 0);
    let failed = exited_badly || (success.is_none() && !result.is_null());
    let end = End { failed, text: &text_of(told), output: result };
    let changed = change(calls.cwd(), input, told);
    calls.end_with(id, end, changed.filter(|_| !failed).unwrap_or_default(), turn);
}

fn text_of(told: &Value) -> String {
    let printed: Vec<&str> =
        ["stdout", "stderr"].iter().filter_map(|name| told[*name].as_str()).collect();
    if printed.iter().any(|it| !it.is_empty()) {
        return printed.concat();
    }
    let names = ["content", "output", "message", "errorMessage", "error", "reason"];
    kinds::text_of(told, &names).unwrap_or_default().to_owned()
}

/// An edit tells the whole file before and after only when it is done.
fn change(cwd: &str, input: &Value, told: &Value) -> Option<Tool> {
    let new = told["afterFullFileContent"].as_str()?;
    let path = kinds::text_of(told, &["path"]).or_else(|| kinds::text_of(input, &["path"]))?;
    let path = kinds::absolute(cwd, path);
    Some(Tool::new().diff(&path, told["beforeFullFileContent"].as_str(), new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Effect;
    use serde_json::json;

    fn last(tool_call: &Value) -> (Value, Value) {
        let (mut calls, mut turn) = (Calls::at("/w"), Turn::default());
        turn.begin();
        let event = json!({"subtype": "completed", "call_id": "a\nb", "tool_call": tool_call});
        on_tool_call(&mut calls, &event, &mut turn);
        let updates: Vec<&Value> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                Effect::Update(it) => Some(it),
                _ => None,
            })
            .collect();
        (updates[0].clone(), updates[updates.len() - 1].clone())
    }

    #[test]
    fn every_end_that_is_no_success_has_failed() {
        for result in [
            json!({"error": {"errorMessage": "why"}}),
            json!({"rejected": {"reason": "why"}}),
            json!({"failure": {"exitCode": 1, "stdout": "", "stderr": "why"}}),
            json!({"success": {"exitCode": 1, "stdout": "why", "stderr": ""}}),
        ] {
            let call = json!({"shellToolCall": {"args": {"command": "x"}, "result": result}});
            let (first, end) = last(&call);
            assert_eq!((&first["toolCallId"], &first["title"]), (&json!("a"), &json!("x")));
            assert_eq!(end["status"], "failed", "{call}");
            assert_eq!(end["content"][0]["content"]["text"], "why", "{call}");
        }
    }

    #[test]
    fn an_edit_shows_the_file_before_and_after() {
        let success = json!({"path": "a.rs", "beforeFullFileContent": "x", "afterFullFileContent": "y",
            "message": "edited"});
        let result = json!({"success": success});
        let (_, end) = last(&json!({"editToolCall": {"args": {"path": "a.rs"}, "result": result}}));
        let diff = json!([{"type": "diff", "path": "/w/a.rs", "newText": "y", "oldText": "x"}]);
        assert_eq!((&end["content"], &end["status"]), (&diff, &json!("completed")));
    }

    #[test]
    fn tools_of_others_have_their_own_names() {
        let args = json!({"toolName": "query", "args": {"sql": "1"}});
        let (first, _) = last(&json!({"mcpToolCall": {"args": args}}));
        assert_eq!((&first["title"], &first["rawInput"]), (&json!("query"), &json!({"sql": "1"})));
        let function = json!({"name": "grep", "arguments": "{\"pattern\":\"fn\"}"});
        assert_eq!(last(&json!({"function": function})).0["title"], "Search fn");
    }
}
