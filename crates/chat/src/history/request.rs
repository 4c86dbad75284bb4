//! The messages of a request, made of a history.
//!
//! **Invariant:** whatever the history, even one that was cut off anywhere, servers accept the result:
//! at most one system message and it is the first, no two messages of the user in a row, every call
//! followed by exactly one result, arguments that are JSON objects.

use super::{Entry, done_of};
use crate::content::content_of;
use crate::model::Call;
use agent_client_protocol::v1::schema::ContentBlock;
use serde_json::{Value, json};

/// What a model is told of a call that nobody finished.
const INTERRUPTED: &str = "This call was interrupted: whether it had any effect is not known.";

/// How we speak to the model.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Voice<'a> {
    pub(crate) system: &'a str,
    pub(crate) takes_images: bool,
}

/// The messages: what the system says, and the conversation from its last summary on.
pub(crate) fn request(history: &[Entry], voice: Voice<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    if !voice.system.is_empty() {
        messages.push(json!({ "role": "system", "content": voice.system }));
    }
    let mut user: Vec<ContentBlock> = Vec::new();
    let summed_up = history.iter().rposition(|it| matches!(it, Entry::Summary { .. }));
    let mut from = 0;
    if let Some(Entry::Summary { text, from: rest }) = summed_up.map(|at| &history[at]) {
        user.push(ContentBlock::from(text.as_str()));
        from = *rest;
    }
    for (at, entry) in history.iter().enumerate().skip(from) {
        match entry {
            Entry::Prompt { content } => user.extend(content.iter().cloned()),
            Entry::Hint { text } => user.push(ContentBlock::from(text.as_str())),
            Entry::Answer { text, calls, .. } => {
                flush(&mut user, voice, &mut messages);
                messages.extend(answer(text, calls, &history[at + 1..]));
            }
            Entry::Result(_)
            | Entry::Plan { .. }
            | Entry::Failed { .. }
            | Entry::Summary { .. } => {}
        }
    }
    flush(&mut user, voice, &mut messages);
    messages
}

/// All that the user said since the last answer is one message.
fn flush(user: &mut Vec<ContentBlock>, voice: Voice<'_>, messages: &mut Vec<Value>) {
    if !user.is_empty() {
        let content = content_of(user.iter(), voice.takes_images);
        messages.push(json!({ "role": "user", "content": content }));
        user.clear();
    }
}

/// An answer and the results of its calls, in the order of the calls.
fn answer(text: &str, calls: &[Call], rest: &[Entry]) -> Vec<Value> {
    if calls.is_empty() {
        return vec![json!({ "role": "assistant", "content": text })];
    }
    let tool_calls: Vec<Value> = calls.iter().map(tool_call).collect();
    let content = if text.is_empty() { Value::Null } else { text.into() };
    let said = json!({ "role": "assistant", "content": content, "tool_calls": tool_calls });
    let result = |call: &Call| {
        let text = done_of(call, rest).map_or(INTERRUPTED, |it| &it.text);
        json!({ "role": "tool", "tool_call_id": call.id, "content": text })
    };
    std::iter::once(said).chain(calls.iter().map(result)).collect()
}

fn tool_call(call: &Call) -> Value {
    // Servers that fill a template with the arguments fail on anything but an object.
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
    use super::super::Done;
    use super::*;
    use agent_client_protocol::v1::schema::ToolKind;
    use proptest::prelude::*;

    fn prompt(text: &str) -> Entry {
        Entry::Prompt { content: vec![text.into()] }
    }

    fn says(text: &str, calls: &[&str]) -> Entry {
        let call = |id: &&str| Call {
            id: (*id).to_owned(),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = calls.iter().map(call).collect();
        Entry::Answer { text: text.to_owned(), thought: String::new(), calls, tokens: None }
    }

    fn result(call: &str, text: &str) -> Entry {
        Entry::Result(Done {
            call: call.to_owned(),
            title: "read".to_owned(),
            kind: ToolKind::Read,
            locations: Vec::new(),
            text: text.to_owned(),
            failed: false,
            content: Vec::new(),
            raw: None,
        })
    }

    fn voice() -> Voice<'static> {
        Voice { system: "be brief", takes_images: false }
    }

    #[test]
    fn a_conversation_is_told_in_order() {
        let history = [prompt("hi"), says("hello", &[]), prompt("bye")];
        let expected = json!([
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": "hello" },
            { "role": "user", "content": "bye" },
        ]);
        assert_eq!(Value::from(request(&history, voice())), expected);
    }

    #[test]
    fn a_prompt_that_failed_and_the_next_are_one_message() {
        let failed = Entry::Failed { message: "Server error".to_owned() };
        let messages = request(&[prompt("hi"), failed, prompt("again")], Voice::default());
        let expected = json!([{ "role": "user", "content": "hi\nagain" }]);
        assert_eq!(Value::from(messages), expected);
    }

    #[test]
    fn results_follow_the_order_of_the_calls_and_none_is_missing() {
        let history =
            [prompt("go"), says("", &["a", "b", "c"]), result("c", "3"), result("a", "1")];
        let messages = request(&history, Voice::default());
        let results: Vec<(&Value, &Value)> =
            messages[2..].iter().map(|it| (&it["tool_call_id"], &it["content"])).collect();
        let expected = [("a", "1"), ("b", INTERRUPTED), ("c", "3")];
        let results: Vec<_> =
            results.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        let expected: Vec<_> = expected.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn after_a_summary_only_what_it_kept_is_told() {
        let summary = Entry::Summary { text: "They greeted.".to_owned(), from: 2 };
        let history =
            [prompt("hi"), says("hello", &[]), prompt("now work"), summary, says("ok", &[])];
        let expected = json!([
            { "role": "user", "content": "They greeted.\nnow work" },
            { "role": "assistant", "content": "ok" },
        ]);
        assert_eq!(Value::from(request(&history, Voice::default())), expected);
    }

    #[test]
    fn broken_arguments_are_told_as_an_object() {
        let mut entry = says("", &["a"]);
        if let Entry::Answer { calls, .. } = &mut entry {
            calls[0].arguments = "{\"path\": ".to_owned();
        }
        let messages = request(&[entry], Voice::default());
        let arguments = messages[0]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert_eq!(arguments, r#"{"unreadable":"{\"path\": "}"#);
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let ids = proptest::collection::btree_set("[a-c]", 0..3);
        prop_oneof![
            ".{0,8}".prop_map(|it| prompt(&it)),
            (".{0,8}", ids).prop_map(|(text, ids)| {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                says(&text, &ids)
            }),
            ("[a-d]", ".{0,8}").prop_map(|(call, text)| result(&call, &text)),
            ".{0,8}".prop_map(|text| Entry::Hint { text }),
            ".{0,8}".prop_map(|message| Entry::Failed { message }),
            (".{0,8}", 0..12usize).prop_map(|(text, from)| Entry::Summary { text, from }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn any_history_makes_a_request_that_servers_accept(
            history in proptest::collection::vec(entry(), 0..16),
        ) {
            let messages = request(&history, voice());
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
