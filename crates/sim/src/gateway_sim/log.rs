//! What the fleet remembers of a session, whoever owns it: its events, its turn, its keys.

use jackfield_events::HostId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Log {
    pub(super) owner: Option<HostId>,
    /// How many frames each event is.
    pub(super) events: Vec<u64>,
    pub(super) turn: Option<u64>,
    pub(super) prompts: Vec<Prompt>,
}

pub(super) struct Prompt {
    pub(super) key: String,
    /// What the client calls it.
    pub(super) token: u64,
    /// The seq of its end, and whether it was interrupted.
    pub(super) ended: Option<(u64, bool)>,
}

/// A place in the log: a seq, and which frame of it.
pub(super) type Place = (u64, u64);

impl Log {
    pub(super) fn head(&self) -> u64 {
        self.events.len() as u64
    }

    /// What comes after this place, if it is there yet.
    pub(super) fn after(&self, place: Option<Place>) -> Option<Place> {
        let (seq, part) = place.unwrap_or((0, 0));
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

    pub(super) fn keyed(&self, key: &str) -> Option<u64> {
        self.prompts.iter().position(|it| it.key == key).map(|it| it as u64)
    }
}

/// The first of several is a notice of ours, as hubs have it.
fn frame(session: &str, seq: u64, part: u64) -> Value {
    if part == 0 && seq.is_multiple_of(3) {
        let params = json!({ "sessionId": session, "seq": seq, "part": part });
        return json!({ "jsonrpc": "2.0", "method": "_jackfield/turn", "params": params });
    }
    let meta = json!({ "jackfield": { "seq": seq } });
    let params = json!({ "sessionId": session, "part": part, "_meta": meta });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// Which place a frame is of.
pub(super) fn place_of(params: &Value) -> Option<Place> {
    let seq = params["seq"].as_u64().or_else(|| params["_meta"]["jackfield"]["seq"].as_u64())?;
    Some((seq, params["part"].as_u64()?))
}

/// All logs there are.
pub(super) type Logs = BTreeMap<String, Log>;
