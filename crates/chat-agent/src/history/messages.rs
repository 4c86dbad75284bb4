//! Builds the messages of a model request from a history.
//!
//! **Invariant:** for any history, even one that was truncated anywhere, servers accept the result:
//! at most one system message and it is the first, no two user messages in a row, every call
//! followed by exactly one result, and arguments that are JSON objects.

use super::{HistoryEntry, find_result};
use crate::content::to_message_content;
use crate::model::ModelToolCall;
use agent_client_protocol::v1::schema::ContentBlock;
use serde_json::{Value, json};

/// The result that the model sees for a call that did not finish.
const INTERRUPTED: &str = "This call was interrupted. It is unknown whether it had any effect.";

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageOptions<'a> {
    pub(crate) system_prompt: &'a str,
    pub(crate) accepts_images: bool,
}

/// Builds the system message and the conversation, starting at its last summary.
pub(crate) fn build_messages(history: &[HistoryEntry], options: MessageOptions<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    if !options.system_prompt.is_empty() {
        messages.push(json!({ "role": "system", "content": options.system_prompt }));
    }
    let mut user: Vec<ContentBlock> = Vec::new();
    let mut first = 0;
    let summary = history.iter().rev().find_map(|it| match it {
        HistoryEntry::Summary { text, first_kept } => Some((text, *first_kept)),
        _ => None,
    });
    if let Some((text, first_kept)) = summary {
        user.push(ContentBlock::from(text.as_str()));
        first = first_kept;
    }
    for (at, entry) in history.iter().enumerate().skip(first) {
        match entry {
            HistoryEntry::Prompt { content } => user.extend(content.iter().cloned()),
            HistoryEntry::Hint { text } => user.push(ContentBlock::from(text.as_str())),
            HistoryEntry::Answer { text, calls, .. } => {
                flush_user_message(&mut user, options, &mut messages);
                messages.extend(answer_messages(text, calls, &history[at + 1..]));
            }
            HistoryEntry::Result(_)
            | HistoryEntry::Plan { .. }
            | HistoryEntry::Failed { .. }
            | HistoryEntry::Summary { .. } => {}
        }
    }
    flush_user_message(&mut user, options, &mut messages);
    messages
}

/// Adds one message with everything that the user sent since the last answer.
fn flush_user_message(
    user: &mut Vec<ContentBlock>,
    options: MessageOptions<'_>,
    messages: &mut Vec<Value>,
) {
    if !user.is_empty() {
        let content = to_message_content(user.iter(), options.accepts_images);
        messages.push(json!({ "role": "user", "content": content }));
        user.clear();
    }
}

/// Returns the messages of an answer and of the results of its calls, in the order of the calls.
fn answer_messages(text: &str, calls: &[ModelToolCall], rest: &[HistoryEntry]) -> Vec<Value> {
    if calls.is_empty() {
        return vec![json!({ "role": "assistant", "content": text })];
    }
    let tool_calls: Vec<Value> = calls.iter().map(to_call_entry).collect();
    let content = if text.is_empty() { Value::Null } else { text.into() };
    let answer = json!({ "role": "assistant", "content": content, "tool_calls": tool_calls });
    let to_result = |call: &ModelToolCall| {
        let text = find_result(call, rest).map_or(INTERRUPTED, |it| &it.text);
        json!({ "role": "tool", "tool_call_id": call.id, "content": text })
    };
    std::iter::once(answer).chain(calls.iter().map(to_result)).collect()
}

fn to_call_entry(call: &ModelToolCall) -> Value {
    // Servers that insert the arguments into a template fail on anything but an object.
    let is_object = serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).is_ok();
    let arguments = if is_object {
        call.arguments.clone()
    } else {
        json!({ "unreadable": call.arguments }).to_string()
    };
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use super::super::ToolResult;
    use super::*;
    use agent_client_protocol::v1::schema::ToolKind;
    use proptest::prelude::*;

    fn prompt(text: &str) -> HistoryEntry {
        HistoryEntry::Prompt { content: vec![text.into()] }
    }

    fn answer(text: &str, calls: &[&str]) -> HistoryEntry {
        let call = |id: &&str| ModelToolCall {
            id: (*id).to_owned(),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = calls.iter().map(call).collect();
        HistoryEntry::Answer { text: text.to_owned(), thought: String::new(), calls, tokens: None }
    }

    fn result(call: &str, text: &str) -> HistoryEntry {
        HistoryEntry::Result(ToolResult {
            call_id: call.to_owned(),
            title: "read".to_owned(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            text: text.to_owned(),
            is_error: false,
            content: Vec::new(),
            raw_output: None,
        })
    }

    fn options() -> MessageOptions<'static> {
        MessageOptions { system_prompt: "be brief", accepts_images: false }
    }

    #[test]
    fn messages_follow_the_order_of_the_history() {
        let history = [prompt("hi"), answer("hello", &[]), prompt("bye")];
        let expected = json!([
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": "hello" },
            { "role": "user", "content": "bye" },
        ]);
        assert_eq!(Value::from(build_messages(&history, options())), expected);
    }

    #[test]
    fn failed_prompt_and_the_next_one_are_one_message() {
        let failed = HistoryEntry::Failed { message: "Server error".to_owned() };
        let messages =
            build_messages(&[prompt("hi"), failed, prompt("again")], MessageOptions::default());
        let expected = json!([{ "role": "user", "content": "hi\nagain" }]);
        assert_eq!(Value::from(messages), expected);
    }

    #[test]
    fn results_follow_the_order_of_the_calls_and_none_is_missing() {
        let history =
            [prompt("go"), answer("", &["a", "b", "c"]), result("c", "3"), result("a", "1")];
        let messages = build_messages(&history, MessageOptions::default());
        let results: Vec<(&Value, &Value)> =
            messages[2..].iter().map(|it| (&it["tool_call_id"], &it["content"])).collect();
        let expected = [("a", "1"), ("b", INTERRUPTED), ("c", "3")];
        let results: Vec<_> =
            results.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        let expected: Vec<_> = expected.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn summary_replaces_the_entries_before_it() {
        let summary = HistoryEntry::Summary { text: "They greeted.".to_owned(), first_kept: 2 };
        let history =
            [prompt("hi"), answer("hello", &[]), prompt("now work"), summary, answer("ok", &[])];
        let expected = json!([
            { "role": "user", "content": "They greeted.\nnow work" },
            { "role": "assistant", "content": "ok" },
        ]);
        assert_eq!(Value::from(build_messages(&history, MessageOptions::default())), expected);
    }

    #[test]
    fn invalid_arguments_are_wrapped_in_an_object() {
        let mut entry = answer("", &["a"]);
        if let HistoryEntry::Answer { calls, .. } = &mut entry {
            calls[0].arguments = "{\"path\": ".to_owned();
        }
        let messages = build_messages(&[entry], MessageOptions::default());
        let arguments = messages[0]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert_eq!(arguments, r#"{"unreadable":"{\"path\": "}"#);
    }

    fn entry() -> impl Strategy<Value = HistoryEntry> {
        let ids = proptest::collection::btree_set("[a-c]", 0..3);
        prop_oneof![
            ".{0,8}".prop_map(|it| prompt(&it)),
            (".{0,8}", ids).prop_map(|(text, ids)| {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                answer(&text, &ids)
            }),
            ("[a-d]", ".{0,8}").prop_map(|(call, text)| result(&call, &text)),
            ".{0,8}".prop_map(|text| HistoryEntry::Hint { text }),
            ".{0,8}".prop_map(|message| HistoryEntry::Failed { message }),
            (".{0,8}", 0..12usize)
                .prop_map(|(text, first_kept)| HistoryEntry::Summary { text, first_kept }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn any_history_gives_messages_that_servers_accept(
            history in proptest::collection::vec(entry(), 0..16),
        ) {
            let messages = build_messages(&history, options());
            let roles: Vec<&str> = messages.iter().filter_map(|it| it["role"].as_str()).collect();
            prop_assert_eq!(roles[0], "system");
            prop_assert!(!roles[1..].contains(&"system"));
            prop_assert!(roles.windows(2).all(|it| it != ["user", "user"]), "{:?}", roles);
            let mut open: Vec<&Value> = Vec::new();
            for message in &messages {
                if message["role"] == "tool" {
                    prop_assert!(!open.is_empty());
                    prop_assert_eq!(open.remove(0), &message["tool_call_id"]);
                } else {
                    prop_assert!(open.is_empty(), "a call has no result");
                }
                let calls = message["tool_calls"].as_array();
                open.extend(calls.into_iter().flatten().map(|it| &it["id"]));
            }
            prop_assert!(open.is_empty(), "a call has no result");
        }
    }
}
