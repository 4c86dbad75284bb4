//! Generated sessions in the format of the hub, and arbitrary events that the hub would not write.

use crate::session_log::SessionLog;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
enum SessionAction {
    Prompt(String),
    Text(String),
    Thought(String),
    Call { id: u8, is_made: bool, status: usize, fields: u8 },
    Ask(u8),
    Answer,
    End(usize),
    Gone,
    Usage(u8),
    Other(Value),
}

fn any_action() -> impl Strategy<Value = SessionAction> {
    let word = "[a-z{ \n]{0,6}";
    prop_oneof![
        3 => word.prop_map(SessionAction::Prompt),
        4 => word.prop_map(SessionAction::Text),
        2 => word.prop_map(SessionAction::Thought),
        8 => (0..4_u8, any::<bool>(), 0..8_usize, any::<u8>())
            .prop_map(|(id, is_made, status, fields)| SessionAction::Call { id, is_made, status, fields }),
        2 => (0..5_u8).prop_map(SessionAction::Ask),
        1 => Just(SessionAction::Answer),
        3 => (0..5_usize).prop_map(SessionAction::End),
        1 => Just(SessionAction::Gone),
        1 => any::<u8>().prop_map(SessionAction::Usage),
        1 => update().prop_map(SessionAction::Other),
    ]
}

/// A session from its start. The clock may stand still and go back.
pub(crate) fn any_session() -> impl Strategy<Value = SessionLog> {
    let actions = prop::collection::vec((any_action(), 0..50_u64), 1..60);
    actions.prop_map(|actions| {
        let mut log = SessionLog::opened();
        let mut open = OpenState::default();
        for (action, at) in actions {
            let before = log.events.len();
            log = apply_action(log, action, &mut open);
            for event in &mut log.events[before..] {
                event["at"] = json!(1_000 + at);
            }
        }
        log
    })
}

/// Whether a turn and a request are open.
#[derive(Default)]
struct OpenState {
    turn: bool,
    request: bool,
}

fn apply_action(log: SessionLog, action: SessionAction, open: &mut OpenState) -> SessionLog {
    match action {
        SessionAction::Prompt(text) if !open.turn => {
            open.turn = true;
            log.prompted(&text)
        }
        SessionAction::End(how) if open.turn => {
            open.turn = false;
            // As in the hub, no request outlives its turn.
            let log = if std::mem::take(&mut open.request) { log.answered("yes") } else { log };
            match how {
                0 => log.failed("no"),
                1 => log.stopped("cancelled"),
                _ => log.stopped("end_turn"),
            }
        }
        SessionAction::Ask(id) if open.turn && !open.request => {
            open.request = true;
            log.asked(&id.to_string())
        }
        SessionAction::Answer if std::mem::take(&mut open.request) => log.answered("yes"),
        SessionAction::Prompt(_)
        | SessionAction::End(_)
        | SessionAction::Ask(_)
        | SessionAction::Answer => log,
        SessionAction::Text(text) => log.text(&text),
        SessionAction::Thought(text) => log.thought(&text),
        SessionAction::Call { id, is_made, status, fields } => {
            log.update(&call(id, is_made, status, fields))
        }
        SessionAction::Gone => log.event(json!({ "is": "gone", "status": "killed", "stderr": "" })),
        SessionAction::Usage(spent) => {
            let cost = json!({ "amount": f64::from(spent), "currency": "USD" });
            log.update(
                &json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost }),
            )
        }
        SessionAction::Other(update) => log.update(&update),
    }
}

fn call(id: u8, is_made: bool, status: usize, fields: u8) -> Value {
    let kind = if is_made { "tool_call" } else { "tool_call_update" };
    let mut call = json!({ "sessionUpdate": kind, "toolCallId": id.to_string() });
    let words = ["pending", "in_progress", "completed", "failed", "cancelled"];
    if let Some(word) = words.get(status) {
        call["status"] = json!(word);
    }
    let known_fields = [
        ("title", json!("run: ls")),
        ("kind", json!("execute")),
        ("rawInput", json!({ "command": "ls" })),
        ("rawInput", json!({})),
        ("content", json!([{ "type": "content", "content": { "type": "text", "text": "{\"a" } }])),
        ("rawOutput", json!("a")),
    ];
    for (bit, (name, value)) in known_fields.into_iter().enumerate() {
        if fields & (1 << bit) != 0 {
            call[name] = value;
        }
    }
    call
}

/// An update of any kind without agent text, whose text the properties compare.
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

/// Words that have a meaning in the views, as keys and as values.
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

/// Any JSON, and more often JSON that resembles an event.
pub(crate) fn any_event() -> impl Strategy<Value = Value> {
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
        "sandboxed",
        "hostRefused",
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
    let event = (kinds, numbers(), inner()).prop_map(|(kind, numbers, inner)| {
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
        let mut event = json!({ "is": kind, "at": at, "turn": turn, "ask": turn, "frame": frame,
                               "answer": other, "setup": other, "call": other });
        if numbered {
            event["seq"] = json!(seq);
        }
        event
    });
    prop_oneof![4 => event, 1 => json_value()]
}
