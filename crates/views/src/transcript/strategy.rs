//! Strategies for unusual events, for property tests.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

pub(super) fn agent_update(update: &Value) -> Value {
    json!({ "is": "said", "turn": 1, "frame": { "params": { "update": update } } })
}

pub(super) fn chunk(kind: &str, text: &str) -> Value {
    agent_update(&json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
}

const TRICKY: [&str; 24] = [
    "a",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "```",
    "````",
    "~~~",
    "- ",
    "1. ",
    "> ",
    "# ",
    "`",
    "|",
    "<!--",
    "<details>",
    "</details>",
    "\r",
    "\t",
    "---",
    "*",
    "\u{1b}[1m",
    "é",
    "[x](",
];
const NAMES: &str = "is turn frame params update sessionUpdate content text type toolCallId title kind status \
    ask answer result by options optionId name entries prompt rawOutput newText how stderr \
    late _meta message toolCall";
const CHUNKS: [&str; 3] = ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"];
const WORDS: &str = "opened forked moved bound said withdrawn prompted cancelled ended asked answered learned \
    unasked refused configured gone closed tool_call tool_call_update plan completed failed diff \
    content stopped end_turn edit";

fn select_word(words: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    select(words.split(' ').collect::<Vec<_>>())
}

fn tricky_text() -> impl Strategy<Value = String> {
    vec(select(&TRICKY[..]), 0..12).prop_map(|it| it.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0u64..4).prop_map(Value::from),
        select_word(WORDS).prop_map(Value::from),
        tricky_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let members = vec((select_word(NAMES), inner.clone()), 0..6);
        let object = members.prop_map(|it| {
            Value::Object(it.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())
        });
        prop_oneof![vec(inner, 0..4).prop_map(Value::Array), object]
    })
}

/// An event in the format of the hub, with unusual content.
pub(super) fn any_event() -> impl Strategy<Value = Value> {
    let spoken = (select(&CHUNKS[..]), tricky_text()).prop_map(|(kind, it)| chunk(kind, &it));
    let blocks = json!([{ "type": "content", "content": { "type": "text", "text": "" } }]);
    let called = ((0u8..3), tricky_text(), tricky_text()).prop_map(move |(id, title, output)| {
        let mut content = blocks.clone();
        content[0]["content"]["text"] = json!(output);
        agent_update(&json!({ "sessionUpdate": "tool_call", "toolCallId": id.to_string(),
                      "title": title, "content": content }))
    });
    let edited = (tricky_text(), tricky_text(), tricky_text()).prop_map(|(path, old, new)| {
        let diff = json!([{ "type": "diff", "path": path, "oldText": old, "newText": new }]);
        agent_update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "content": diff }))
    });
    let prompted = tricky_text().prop_map(|it| {
        let prompt = json!([{ "type": "text", "text": it }]);
        json!({ "is": "prompted", "turn": 1, "frame": { "params": { "prompt": prompt } } })
    });
    let gone = tricky_text().prop_map(|it| json!({ "is": "gone", "status": it, "stderr": it }));
    prop_oneof![spoken, called, edited, prompted, gone, any_json()]
}
