//! What a person sees of a session: updates put together as an editor does, so that a turn that was
//! heard live and one that was loaded can be compared.

use serde_json::{Map, Value, json};

/// Messages with their text, tool calls with what is known of them last, and plans, in the order in
/// which they began.
pub(super) fn seen(updates: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for update in updates {
        match update["sessionUpdate"].as_str().unwrap() {
            kind @ ("user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk") => {
                say(&mut items, kind, update);
            }
            "tool_call" | "tool_call_update" => call(&mut items, update),
            "plan" => items.push(json!({ "is": "plan", "entries": update["entries"] })),
            // What stands beside the conversation.
            _ => {}
        }
    }
    items
}

/// A prompt, as if it had been heard.
pub(super) fn prompt(text: &str) -> Value {
    json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } })
}

fn say(items: &mut Vec<Value>, kind: &str, update: &Value) {
    let text = update["content"]["text"].as_str().unwrap();
    let message = &update["messageId"];
    match items.last_mut().filter(|it| it["is"] == kind && it["message"] == *message) {
        Some(last) => last["text"] = json!(format!("{}{text}", last["text"].as_str().unwrap())),
        None => items.push(json!({ "is": kind, "message": message, "text": text })),
    }
}

fn call(items: &mut Vec<Value>, update: &Value) {
    let id = &update["toolCallId"];
    let known = items.iter().position(|it| it["is"] == "tool" && it["toolCallId"] == *id);
    let at = known.unwrap_or_else(|| {
        assert_eq!(update["sessionUpdate"], "tool_call", "the first of it: {update}");
        items.push(json!({ "is": "tool" }));
        items.len() - 1
    });
    let item = items[at].as_object_mut().unwrap();
    for (name, value) in update.as_object().unwrap() {
        if name != "sessionUpdate" {
            item.insert(name.clone(), value.clone());
        }
    }
    drop_defaults(item);
}

/// What may be said or left out.
fn drop_defaults(item: &mut Map<String, Value>) {
    item.retain(|name, value| match name.as_str() {
        "kind" => value != "other",
        "status" => value != "pending",
        _ => !value.is_null() && value.as_array().is_none_or(|it| !it.is_empty()),
    });
}
