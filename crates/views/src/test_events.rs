//! Events for tests: a test names the members that matter to it.

use jackfield_events::ReceivedEvent;
use serde_json::{Value, json};

/// The event with these members; `None` if `is` names no kind of event.
///
/// A member that every event of its kind has and the test does not name, or names with another type,
/// gets a value that means nothing. Embedded JSON is kept, whatever it is.
pub(crate) fn received_any(event: &Value) -> Option<ReceivedEvent> {
    let mut whole = json!({
        "seq": null, "at": 0, "turn": 0, "by": "", "ask": 0, "rung": "resumed", "how": "stopped",
        "why": "", "status": "", "stderr": "", "prompt": 0, "step": 1, "agent": "", "argv": [],
        "cwd": "", "agentSession": "", "from": "", "seqThere": 0, "operation": "", "what": "",
        "bytes": 0, "limit": 0, "phase": "", "since": 0, "waits": "", "late": false,
        "sessionId": "", "to": "",
        "frame": {}, "answer": {}, "setup": null, "rule": {}, "call": {}, "params": {},
    });
    let embedded =
        ["frame", "answer", "setup", "rule", "call", "params", "decision", "peer", "tried"];
    for (name, value) in event.as_object()? {
        let fits = |it: &Value| match it {
            Value::Null | Value::Number(_) => value.is_u64(),
            Value::Array(_) => false,
            it => std::mem::discriminant(it) == std::mem::discriminant(value),
        };
        let is_typed = whole.get(name).is_none_or(fits);
        if embedded.contains(&name.as_str()) || is_typed {
            whole[name] = value.clone();
        }
    }
    let outcomes: &[&str] = match whole["is"].as_str() {
        Some("served") => &["done", "denied", "failed", "unknown"],
        _ => &["stopped", "failed", "interrupted"],
    };
    if outcomes.iter().all(|it| whole["how"] != *it) {
        whole["how"] = "failed".into();
    }
    ReceivedEvent::from_value(whole).ok()
}

/// The same for a kind of event that exists.
pub(crate) fn received(event: &Value) -> ReceivedEvent {
    received_any(event).unwrap_or_else(|| panic!("no event: {event}"))
}
