//! The durable state of a session, whichever host owns it: events, turn and prompt keys.

use jackfield_events::HostId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct SessionLog {
    pub(super) owner: Option<HostId>,
    /// The number of frames of each event.
    pub(super) events: Vec<u64>,
    pub(super) turn: Option<u64>,
    pub(super) prompts: Vec<PromptRecord>,
}

pub(super) struct PromptRecord {
    pub(super) key: String,
    /// The number that the client put into the prompt.
    pub(super) token: u64,
    /// The sequence number of its end, and whether it was interrupted.
    pub(super) ended: Option<(u64, bool)>,
}

/// A position in the log: a sequence number and the index of a frame.
pub(super) type LogPosition = (u64, u64);

impl SessionLog {
    pub(super) fn head(&self) -> u64 {
        self.events.len() as u64
    }

    /// The next position, if it exists.
    pub(super) fn next_position(&self, position: Option<LogPosition>) -> Option<LogPosition> {
        let (seq, part) = position.unwrap_or((0, 0));
        let next = match seq.checked_sub(1).and_then(|it| usize::try_from(it).ok()) {
            Some(at) if part + 1 < self.events[at] => (seq, part + 1),
            _ => (seq + 1, 0),
        };
        (next.0 <= self.head()).then_some(next)
    }

    /// The frames of one event.
    pub(super) fn frames(&self, session: &str, seq: u64) -> Vec<Value> {
        let parts = self.events[usize::try_from(seq).expect("small") - 1];
        (0..parts).map(|part| frame(session, seq, part)).collect()
    }

    pub(super) fn turn_with_key(&self, key: &str) -> Option<u64> {
        self.prompts.iter().position(|it| it.key == key).map(|it| it as u64)
    }
}

/// The first frame of some events is a hub notification.
fn frame(session: &str, seq: u64, part: u64) -> Value {
    if part == 0 && seq.is_multiple_of(3) {
        let params = json!({ "sessionId": session, "seq": seq, "part": part });
        return json!({ "jsonrpc": "2.0", "method": "_jackfield/turn", "params": params });
    }
    let meta = json!({ "jackfield": { "seq": seq } });
    let params = json!({ "sessionId": session, "part": part, "_meta": meta });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// The position of a frame.
pub(super) fn position_of(params: &Value) -> Option<LogPosition> {
    let seq = params["seq"].as_u64().or_else(|| params["_meta"]["jackfield"]["seq"].as_u64())?;
    Some((seq, params["part"].as_u64()?))
}

/// All logs by session.
pub(super) type SessionLogs = BTreeMap<String, SessionLog>;
