//! What was heard of each session, by anybody, under its seq: two who hear the same event hear the
//! same, and in the end the log has it so.

use super::world::locked;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Mutex,
};

/// An event is told as a fact or as the agent's words; a prompt also as the user's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Told {
    Event,
    User,
}

/// Fingerprints of what was heard: the texts themselves would not fit.
#[derive(Default)]
pub(super) struct Ear(Mutex<BTreeMap<String, Prints>>);

type Prints = HashMap<(u64, Told), u64>;

/// A message that tells an event.
pub(super) struct Heard {
    pub(super) session: String,
    pub(super) seq: u64,
    pub(super) told: Told,
    print: u64,
}

impl Heard {
    /// Takes the addition of the hub off again, so that it can be held against the log.
    pub(super) fn of(mut message: Value) -> Option<Heard> {
        let method = message["method"].as_str()?.to_owned();
        let params = message.get_mut("params")?.as_object_mut()?;
        let session = params.get("sessionId")?.as_str()?.to_owned();
        if method != "session/update" {
            let seq = params.get("seq")?.as_u64()?;
            params.shift_remove("sessionId");
            params.shift_remove("seq");
            return Some(Heard {
                session,
                seq,
                told: Told::Event,
                print: print(&message["params"]),
            });
        }
        let meta = params.get_mut("_meta")?.as_object_mut()?;
        let seq = meta.shift_remove("jackfield")?["seq"].as_u64()?;
        let user = params["update"]["sessionUpdate"] == "user_message_chunk";
        let told = if user { Told::User } else { Told::Event };
        let print = if user { print(&params["update"]["content"]) } else { said_print(message) };
        Some(Heard { session, seq, told, print })
    }
}

impl Ear {
    /// Keeps what was heard; false if somebody heard something else under this seq.
    pub(super) fn keep(&self, heard: &Heard) -> bool {
        let mut all = locked(&self.0);
        let of_session = all.entry(heard.session.clone()).or_default();
        match of_session.entry((heard.seq, heard.told)) {
            Entry::Occupied(it) => *it.get() == heard.print,
            Entry::Vacant(it) => *it.insert(heard.print) == heard.print,
        }
    }

    /// Seqs of a session that were heard otherwise than its log has them.
    pub(super) fn unlike(&self, session: &str, log: &[Value]) -> Vec<u64> {
        let all = locked(&self.0);
        let heard = all.get(session).into_iter().flatten();
        let differs = |(&(seq, told), print): (&(u64, Told), &u64)| {
            let at = usize::try_from(seq).ok().and_then(|it| it.checked_sub(1));
            let event = at.and_then(|it| log.get(it));
            (event.and_then(|it| print_of(it, told)) != Some(*print)).then_some(seq)
        };
        heard.filter_map(differs).collect()
    }

    pub(super) fn len(&self) -> usize {
        locked(&self.0).values().map(HashMap::len).sum()
    }
}

/// What an event of the log must have been heard as.
fn print_of(event: &Value, told: Told) -> Option<u64> {
    match (told, event["is"].as_str()?) {
        (Told::User, "prompted") => Some(print(event.pointer("/frame/params/prompt/0")?)),
        // Some agents repeat the user's words.
        (Told::User, "said") => Some(print(event.pointer("/frame/params/update/content")?)),
        (Told::Event, "said") => Some(said_print(event["frame"].clone())),
        (Told::Event, _) => Some(print(event)),
        (Told::User, _) => None,
    }
}

/// An empty `_meta` is no `_meta`: the hub's own stands in it on the way to a client.
fn said_print(mut frame: Value) -> u64 {
    if let Some(params) = frame.get_mut("params").and_then(Value::as_object_mut) {
        let empty =
            |it: &Value| it.is_null() || it.as_object().is_some_and(serde_json::Map::is_empty);
        if params.get("_meta").is_some_and(empty) {
            params.shift_remove("_meta");
        }
    }
    print(&frame)
}

fn print(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
