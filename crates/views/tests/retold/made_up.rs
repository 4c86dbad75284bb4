//! Sessions made up by chance, as a hub would write them; and facts that no hub would.

use crate::log::Log;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
enum Act {
    Prompt(String),
    Text(String),
    Thought(String),
    Call { id: u8, made: bool, status: usize, tells: u8 },
    Ask(u8),
    Answer,
    End(usize),
    Gone,
    Usage(u8),
    Other(Value),
}

fn act() -> impl Strategy<Value = Act> {
    let word = "[a-z{ \n]{0,6}";
    prop_oneof![
        3 => word.prop_map(Act::Prompt),
        4 => word.prop_map(Act::Text),
        2 => word.prop_map(Act::Thought),
        8 => (0..4_u8, any::<bool>(), 0..8_usize, any::<u8>())
            .prop_map(|(id, made, status, tells)| Act::Call { id, made, status, tells }),
        2 => (0..5_u8).prop_map(Act::Ask),
        1 => Just(Act::Answer),
        3 => (0..5_usize).prop_map(Act::End),
        1 => Just(Act::Gone),
        1 => any::<u8>().prop_map(Act::Usage),
        1 => update().prop_map(Act::Other),
    ]
}

/// A session from its beginning; the clock may stand still and go back.
pub(crate) fn session() -> impl Strategy<Value = Log> {
    let acts = prop::collection::vec((act(), 0..50_u64), 1..60);
    acts.prop_map(|acts| {
        let mut log = Log::opened();
        let mut open = Open::default();
        for (act, at) in acts {
            let before = log.facts.len();
            log = play(log, act, &mut open);
            for fact in &mut log.facts[before..] {
                fact["at"] = json!(1_000 + at);
            }
        }
        log
    })
}

/// What has begun and not ended.
#[derive(Default)]
struct Open {
    turn: bool,
    ask: bool,
}

fn play(log: Log, act: Act, open: &mut Open) -> Log {
    match act {
        Act::Prompt(text) if !open.turn => {
            open.turn = true;
            log.prompted(&text)
        }
        Act::End(how) if open.turn => {
            open.turn = false;
            // As the hub does: no ask outlives its turn.
            let log = if std::mem::take(&mut open.ask) { log.answered("yes") } else { log };
            match how {
                0 => log.failed("no"),
                1 => log.stopped("cancelled"),
                _ => log.stopped("end_turn"),
            }
        }
        Act::Ask(id) if open.turn && !open.ask => {
            open.ask = true;
            log.asked(&id.to_string())
        }
        Act::Answer if std::mem::take(&mut open.ask) => log.answered("yes"),
        Act::Prompt(_) | Act::End(_) | Act::Ask(_) | Act::Answer => log,
        Act::Text(text) => log.text(&text),
        Act::Thought(text) => log.thought(&text),
        Act::Call { id, made, status, tells } => log.said(&call(id, made, status, tells)),
        Act::Gone => log.fact(json!({ "is": "gone", "status": "killed", "stderr": "" })),
        Act::Usage(spent) => {
            let cost = json!({ "amount": f64::from(spent), "currency": "USD" });
            log.said(
                &json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost }),
            )
        }
        Act::Other(update) => log.said(&update),
    }
}

fn call(id: u8, made: bool, status: usize, tells: u8) -> Value {
    let kind = if made { "tool_call" } else { "tool_call_update" };
    let mut call = json!({ "sessionUpdate": kind, "toolCallId": id.to_string() });
    let words = ["pending", "in_progress", "completed", "failed", "cancelled"];
    if let Some(word) = words.get(status) {
        call["status"] = json!(word);
    }
    let fields = [
        ("title", json!("run: ls")),
        ("kind", json!("execute")),
        ("rawInput", json!({ "command": "ls" })),
        ("rawInput", json!({})),
        ("content", json!([{ "type": "content", "content": { "type": "text", "text": "{\"a" } }])),
        ("rawOutput", json!("a")),
    ];
    for (bit, (name, value)) in fields.into_iter().enumerate() {
        if tells & (1 << bit) != 0 {
            call[name] = value;
        }
    }
    call
}

/// An update of any kind but those that speak: what they say is counted.
fn update() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "plan",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "available_commands_update",
        "user_message_chunk",
        "news",
    ]);
    (kinds, json_value()).prop_map(|(kind, value)| {
        let mut update = json!({ "entries": value, "content": value, "configOptions": value,
                                 "_meta": value, "title": value, "currentModeId": value });
        update["sessionUpdate"] = json!(kind);
        update
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Words that mean something to the views, as keys and as values.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "_meta",
        "answer",
        "ask",
        "at",
        "call",
        "completed",
        "configOptions",
        "content",
        "cost",
        "currentValue",
        "data",
        "entries",
        "frame",
        "id",
        "is",
        "jackfield",
        "method",
        "options",
        "outcome",
        "params",
        "pending",
        "prompt",
        "rawInput",
        "rawOutput",
        "resource",
        "result",
        "seq",
        "session/request_permission",
        "sessionUpdate",
        "setup",
        "status",
        "stopReason",
        "text",
        "title",
        "toolCall",
        "toolCallId",
        "tool_call",
        "tool_call_update",
        "turn",
        "type",
        "update",
        "uri",
        "usage",
    ])
    .prop_map(str::to_owned)
}

/// Anything at all, and more often something that looks like a fact and is none.
pub(crate) fn anything() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "opened",
        "bound",
        "said",
        "queued",
        "withdrawn",
        "prompted",
        "cancelled",
        "ended",
        "asked",
        "answered",
        "learned",
        "unasked",
        "refused",
        "leftOut",
        "served",
        "configured",
        "gone",
        "quiet",
        "slept",
        "closed",
        "forked",
        "imported",
        "moved",
        "news",
    ]);
    let inner = || (json_value(), json_value(), json_value());
    let numbers = || (any::<u64>(), any::<u64>(), 0..3_u64, any::<bool>());
    let fact = (kinds, numbers(), inner()).prop_map(|(kind, numbers, inner)| {
        let (seq, at, turn, numbered) = numbers;
        let (update, params, other) = inner;
        let params = match params {
            Value::Object(mut params) => {
                params.insert("update".to_owned(), update);
                Value::Object(params)
            }
            other => other,
        };
        let frame = json!({ "method": "session/request_permission", "params": params });
        let mut fact = json!({ "is": kind, "at": at, "turn": turn, "ask": turn, "frame": frame,
                               "answer": other, "setup": other, "call": other });
        if numbered {
            fact["seq"] = json!(seq);
        }
        fact
    });
    prop_oneof![4 => fact, 1 => json_value()]
}
