//! Reads the fields of frames that a relay acts on.

use jackfield_protocol::{Frame, acp::Method};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

/// The members of an object as JSON text.
pub(super) type JsonMembers<'a> = BTreeMap<String, &'a RawValue>;

/// `params._meta.jackfield` as JSON text.
pub fn jackfield_meta(frame: &Frame) -> Option<String> {
    let meta: JsonMembers<'_> = serde_json::from_str(frame.meta()?).ok()?;
    meta.get("jackfield").map(|it| it.get().to_owned())
}

/// The sequence number of the event that a frame of a hub belongs to.
pub fn event_seq(frame: &Frame) -> Option<u64> {
    #[derive(Deserialize)]
    struct EventSeq {
        seq: u64,
    }
    let parse_seq = |json: &str| serde_json::from_str::<EventSeq>(json).ok().map(|it| it.seq);
    match frame.known_method() {
        Some(
            Method::ControlTurn
            | Method::ControlAsk
            | Method::ControlSession
            | Method::ControlEvent,
        ) => parse_seq(frame.params()?),
        _ => parse_seq(&jackfield_meta(frame)?),
    }
}

/// The end of the log in a response of a hub: `_meta.jackfield.seq` of a response that opens a
/// session, or `head` of an attach.
pub fn log_head(answer: &Frame) -> Option<u64> {
    let result: Value = serde_json::from_str(answer.result()?).ok()?;
    let head = result.pointer("/_meta/jackfield/seq").or_else(|| result.get("head"));
    head.and_then(Value::as_u64)
}

/// Whether a request replays earlier events of its session.
pub fn replays_history(request: &Frame) -> bool {
    matches!(request.known_method(), Some(Method::SessionLoad | Method::ControlAttach))
}
