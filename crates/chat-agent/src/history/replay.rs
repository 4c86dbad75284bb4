//! Converts a history into the updates that a client received when it happened.

use super::{HistoryEntry, ToolResult, client_call_id, find_result, message_id};
use crate::model::ModelToolCall;
use agent_client_protocol::v1::schema::{
    ContentChunk, Plan, SessionUpdate, ToolCall, ToolCallStatus, ToolKind,
};
use serde_json::Value;

/// Returns the updates, in order. A call that did not finish is reported as failed.
pub(crate) fn to_session_updates(history: &[HistoryEntry]) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for (at, entry) in history.iter().enumerate() {
        let to_chunk = |text: &str| ContentChunk::new(text.into());
        match entry {
            HistoryEntry::Prompt { content } => {
                // The id separates two prompts if the first one was never answered.
                let to_chunk = |it| ContentChunk::new(it).message_id(message_id(at));
                let chunks = content.iter().cloned().map(to_chunk);
                updates.extend(chunks.map(SessionUpdate::UserMessageChunk));
            }
            HistoryEntry::Answer { text, thought, calls, .. } => {
                let to_chunk = |text: &str| to_chunk(text).message_id(message_id(at));
                if !thought.is_empty() {
                    updates.push(SessionUpdate::AgentThoughtChunk(to_chunk(thought)));
                }
                if !text.is_empty() {
                    updates.push(SessionUpdate::AgentMessageChunk(to_chunk(text)));
                }
                let rest = &history[at + 1..];
                updates.extend(calls.iter().map(|call| to_call_update(at, call, rest)));
            }
            HistoryEntry::Plan { entries } => {
                updates.push(SessionUpdate::Plan(Plan::new(entries.clone())));
            }
            // The error was the response to a prompt, and no update.
            HistoryEntry::Result(_)
            | HistoryEntry::Hint { .. }
            | HistoryEntry::Failed { .. }
            | HistoryEntry::Summary { .. } => {}
        }
    }
    updates
}

fn to_call_update(answer_at: usize, call: &ModelToolCall, rest: &[HistoryEntry]) -> SessionUpdate {
    let id = client_call_id(answer_at, &call.id);
    let input = serde_json::from_str::<Value>(&call.arguments).ok();
    let update = match find_result(call, rest) {
        Some(result) => to_finished_call(id, result),
        None => ToolCall::new(id, call.name.clone())
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Failed),
    };
    SessionUpdate::ToolCall(update.name(call.name.clone()).raw_input(input))
}

fn to_finished_call(id: String, result: &ToolResult) -> ToolCall {
    let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    ToolCall::new(id, result.title.clone())
        .kind(result.kind)
        .status(status)
        .locations(result.locations.clone())
        .content(result.content.clone())
        .raw_output(result.raw_output.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replay_sends_the_updates_of_the_live_session() {
        let call = |id: &str| ModelToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: r#"{"path":"a"}"#.to_owned(),
        };
        let result = ToolResult {
            call_id: "1".to_owned(),
            title: "a".to_owned(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            text: "for the model".to_owned(),
            is_error: false,
            content: Vec::new(),
            raw_output: None,
        };
        let history = [
            HistoryEntry::Prompt { content: vec!["look".into()] },
            HistoryEntry::Answer {
                text: "I look.".to_owned(),
                thought: "hm".to_owned(),
                calls: vec![call("1"), call("2")],
                tokens: None,
            },
            HistoryEntry::Result(result),
            HistoryEntry::Hint { text: "not for people".to_owned() },
            HistoryEntry::Failed { message: "Server error (HTTP 500) from x.".to_owned() },
        ];
        let updates = serde_json::to_value(to_session_updates(&history)).unwrap();
        let text = |it: &str| json!({ "type": "text", "text": it });
        let input = json!({ "path": "a" });
        let expected = json!([
            { "sessionUpdate": "user_message_chunk", "content": text("look"), "messageId": "m-0" },
            { "sessionUpdate": "agent_thought_chunk", "content": text("hm"), "messageId": "m-1" },
            { "sessionUpdate": "agent_message_chunk", "content": text("I look."), "messageId": "m-1" },
            {
                "sessionUpdate": "tool_call", "toolCallId": "1-1", "title": "a", "name": "read",
                "kind": "read", "status": "completed", "rawInput": input,
            },
            {
                "sessionUpdate": "tool_call", "toolCallId": "1-2", "title": "read", "name": "read",
                "status": "failed", "rawInput": input,
            },
        ]);
        assert_eq!(updates, expected);
    }
}
