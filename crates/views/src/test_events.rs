//! Builds events for tests from the members that matter to the test.

use jackfield_events::ReceivedEvent;
use serde_json::{Value, json};

/// Builds the event with these members; `None` if `is` does not name an event kind.
///
/// A required member that the test omits, or gives with another type, gets a neutral value. Embedded
/// JSON is kept as it is.
pub(crate) fn build_event_if_known(event: &Value) -> Option<ReceivedEvent> {
    let mut members = json!({
        "seq": null, "at": 0, "turn": 0, "by": "", "ask": 0, "restore": "resumed", "how": "stopped",
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
        let is_typed = members.get(name).is_none_or(fits);
        if embedded.contains(&name.as_str()) || is_typed {
            members[name] = value.clone();
        }
    }
    let outcomes: &[&str] = match members["is"].as_str() {
        Some("served") => &["done", "denied", "failed", "unknown"],
        _ => &["stopped", "failed", "interrupted"],
    };
    if outcomes.iter().all(|it| members["how"] != *it) {
        members["how"] = "failed".into();
    }
    ReceivedEvent::from_value(members).ok()
}

/// The same for an event kind that must exist.
pub(crate) fn build_event(event: &Value) -> ReceivedEvent {
    build_event_if_known(event).unwrap_or_else(|| panic!("not an event: {event}"))
}
