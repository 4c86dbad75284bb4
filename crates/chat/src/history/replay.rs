//! A history as the updates a client would have seen.

use super::{Done, Entry, done_of};
use crate::{
    model::Call,
    turn::{message_id, shown_id},
};
use agent_client_protocol::v1::schema::{
    ContentChunk, Plan, SessionUpdate, ToolCall, ToolCallStatus, ToolKind,
};
use serde_json::Value;

/// The updates, in order. A call that nobody finished is told as failed.
pub(crate) fn replay(history: &[Entry]) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for (at, entry) in history.iter().enumerate() {
        let chunk = |text: &str| ContentChunk::new(text.into());
        match entry {
            Entry::Prompt { content } => {
                // Without an id, two prompts of which the first was never answered look like one.
                let chunk = |it| ContentChunk::new(it).message_id(message_id(at));
                let chunks = content.iter().cloned().map(chunk);
                updates.extend(chunks.map(SessionUpdate::UserMessageChunk));
            }
            Entry::Answer { text, thought, calls, .. } => {
                let chunk = |text: &str| chunk(text).message_id(message_id(at));
                if !thought.is_empty() {
                    updates.push(SessionUpdate::AgentThoughtChunk(chunk(thought)));
                }
                if !text.is_empty() {
                    updates.push(SessionUpdate::AgentMessageChunk(chunk(text)));
                }
                let rest = &history[at + 1..];
                updates.extend(calls.iter().map(|call| tool_call(at, call, rest)));
            }
            Entry::Plan { entries } => {
                updates.push(SessionUpdate::Plan(Plan::new(entries.clone())));
            }
            Entry::Failed { message } => {
                updates.push(SessionUpdate::AgentMessageChunk(chunk(message)));
            }
            Entry::Result(_) | Entry::Hint { .. } | Entry::Summary { .. } => {}
        }
    }
    updates
}

fn tool_call(at: usize, call: &Call, rest: &[Entry]) -> SessionUpdate {
    let done = done_of(call, rest);
    let id = shown_id(at, &call.id);
    let input = serde_json::from_str::<Value>(&call.arguments).ok();
    let update = match done {
        Some(done) => finished(id, done),
        None => ToolCall::new(id, call.name.clone())
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Failed),
    };
    SessionUpdate::ToolCall(update.name(call.name.clone()).raw_input(input))
}

fn finished(id: String, done: &Done) -> ToolCall {
    let status = if done.failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    ToolCall::new(id, done.title.clone())
        .kind(done.kind)
        .status(status)
        .locations(done.locations.clone())
        .content(done.content.clone())
        .raw_output(done.raw.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_sees_what_it_would_have_seen() {
        let call = |id: &str| Call {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: r#"{"path":"a"}"#.to_owned(),
        };
        let done = Done {
            call: "1".to_owned(),
            title: "a".to_owned(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            text: "for the model".to_owned(),
            failed: false,
            content: Vec::new(),
            raw: None,
        };
        let history = [
            Entry::Prompt { content: vec!["look".into()] },
            Entry::Answer {
                text: "I look.".to_owned(),
                thought: "hm".to_owned(),
                calls: vec![call("1"), call("2")],
                tokens: None,
            },
            Entry::Result(done),
            Entry::Hint { text: "not for people".to_owned() },
            Entry::Failed { message: "Server error (HTTP 500) from x.".to_owned() },
        ];
        let updates = serde_json::to_value(replay(&history)).unwrap();
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
            { "sessionUpdate": "agent_message_chunk", "content": text("Server error (HTTP 500) from x.") },
        ]);
        assert_eq!(updates, expected);
    }
}
