//! The tool calls of a session as its agent tells them: what each is known to be, since when it
//! runs, when it last changed. What is said about one call in several updates is put together here.

use crate::{Time, limits};
use jackfield_protocol::Frame;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap};

/// The calls that run, and the last one that ended: whoever judges it may look once more.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    known: BTreeMap<Box<str>, Call>,
    bytes: usize,
    /// One that ended; it is forgotten when the next update about a call comes.
    ended: Option<Box<str>>,
}

/// One tool call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The members of a `toolCall` that say what it is: `toolCallId`, `title`, `kind`, `status`,
    /// `rawInput`, `locations`, `_meta`, each as it was told last.
    pub(crate) known: Map<String, Value>,
    /// A member was too large to be kept: what is not known of it may have been told.
    pub(crate) cut: bool,
    pub(crate) began: Time,
    pub(crate) changed: Time,
    bytes: usize,
}

/// The part of an update that is kept; its content and output stream by unread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    locations: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    update: Told<'a>,
}

impl ToolCalls {
    /// Takes in what an update says about a call, if it is about one; returns that call.
    pub(crate) fn on_update(&mut self, frame: &Frame, now: Time) -> Option<&Call> {
        if !matches!(frame.update().as_deref(), Some("tool_call" | "tool_call_update")) {
            return None;
        }
        let params: Params<'_> = serde_json::from_str(frame.params()?).ok()?;
        let told = params.update;
        let id: Box<str> = told.tool_call_id.as_ref().into();
        if let Some(ended) = self.ended.take_if(|it| *it != id) {
            self.forget(&ended);
        }
        if !self.known.contains_key(&id) {
            self.make_room();
            if limits::CALLS_BYTES_MAX < self.bytes + id.len() {
                return None; // Nothing more can be kept, not even its name.
            }
            self.bytes += id.len();
            self.known.insert(id.clone(), Call::new(&id, now));
        }
        let room = limits::CALLS_BYTES_MAX.saturating_sub(self.bytes);
        let call = self.known.get_mut(&id).expect("inserted above");
        let before = call.bytes;
        call.take(&told, room + before);
        call.changed = now;
        self.bytes = self.bytes - before + call.bytes;
        if call.has_ended() {
            self.ended = Some(id.clone());
        }
        self.known.get(&id)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.known.get(id)
    }

    /// Those that have not ended, as far as the agent has said.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Call> {
        self.known.values().filter(|it| !it.has_ended())
    }

    /// The turn is over, or the agent is: whatever ran has ended.
    pub(crate) fn clear(&mut self) {
        *self = ToolCalls::default();
    }

    fn forget(&mut self, id: &str) {
        if let Some(call) = self.known.remove(id) {
            self.bytes -= call.bytes;
        }
    }

    /// An agent that never ends its calls: the one that changed longest ago is forgotten.
    fn make_room(&mut self) {
        if self.known.len() < limits::CALLS_MAX {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, it)| it.changed);
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.forget(&id);
        }
    }
}

impl Call {
    fn new(id: &str, now: Time) -> Call {
        let known = Map::from_iter([("toolCallId".to_owned(), id.into())]);
        Call { known, cut: false, began: now, changed: now, bytes: id.len() }
    }

    /// Each member told replaces the one before, as long as the whole stays within `room` bytes.
    fn take(&mut self, told: &Told<'_>, room: usize) {
        let members = [
            ("title", told.title),
            ("kind", told.kind),
            ("status", told.status),
            ("rawInput", told.raw_input),
            ("locations", told.locations),
            ("_meta", told.meta),
        ];
        for (name, raw) in members {
            let Some(raw) = raw.filter(|it| it.get() != "null") else { continue };
            let (size, was) = (raw.get().len(), self.known.get(name).map_or(0, size_of));
            if room < self.bytes - was.min(self.bytes) + size {
                self.cut = true;
                continue;
            }
            let Ok(value) = serde_json::from_str::<Value>(raw.get()) else { continue };
            self.bytes = self.bytes - was.min(self.bytes) + size_of(&value);
            self.known.insert(name.to_owned(), value);
        }
    }

    pub(crate) fn as_json(&self) -> Value {
        Value::Object(self.known.clone())
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.known.get(member)?.as_str()
    }

    fn has_ended(&self) -> bool {
        matches!(self.text("status"), Some("completed" | "failed" | "cancelled"))
    }
}

/// What a member weighs: its text.
fn size_of(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(kind: &str, rest: &str) -> Frame {
        let text = format!(
            r#"{{"method":"session/update","params":{{"sessionId":"x","update":{{"sessionUpdate":"{kind}",{rest}}}}}}}"#
        );
        Frame::parse_str(&text).unwrap()
    }

    #[test]
    fn what_is_said_in_several_updates_is_put_together() {
        let mut calls = ToolCalls::default();
        let first = update("tool_call", r#""toolCallId":"1","title":"Shell","kind":"execute""#);
        calls.on_update(&first, Time(5));
        let then = r#""toolCallId":"1","title":null,"rawInput":{"command":"ls"}"#;
        calls.on_update(&update("tool_call_update", then), Time(9));
        let call = calls.get("1").unwrap();
        assert_eq!((call.began, call.changed), (Time(5), Time(9)));
        assert_eq!(call.text("title"), Some("Shell"));
        assert_eq!(call.known["rawInput"]["command"], "ls");
        assert_eq!(calls.running().count(), 1);
    }

    #[test]
    fn a_call_that_ended_does_not_run_and_is_forgotten_at_the_next_update() {
        let mut calls = ToolCalls::default();
        calls.on_update(&update("tool_call", r#""toolCallId":"1","title":"a""#), Time(1));
        let done = update("tool_call_update", r#""toolCallId":"1","status":"completed""#);
        let told = calls.on_update(&done, Time(2)).unwrap();
        assert_eq!(told.text("title"), Some("a"));
        assert_eq!(calls.running().count(), 0);
        calls.on_update(&update("tool_call", r#""toolCallId":"2","title":"b""#), Time(3));
        assert!(calls.get("1").is_none());
        assert_eq!(calls.running().count(), 1);
    }

    #[test]
    fn other_updates_are_not_looked_at() {
        let mut calls = ToolCalls::default();
        let chunk = update("agent_message_chunk", r#""content":{"type":"text","text":"hi"}"#);
        assert!(calls.on_update(&chunk, Time(1)).is_none());
        let nameless = update("tool_call", r#""title":"no id""#);
        assert!(calls.on_update(&nameless, Time(1)).is_none());
        assert!(calls.known.is_empty());
    }

    #[test]
    fn number_and_bytes_are_bounded() {
        let mut calls = ToolCalls::default();
        for n in 0..limits::CALLS_MAX + 9 {
            let rest = format!(r#""toolCallId":"{n}","title":"call {n}""#);
            calls.on_update(&update("tool_call", &rest), Time(n as u64));
        }
        assert_eq!(calls.known.len(), limits::CALLS_MAX);
        assert!(calls.get("0").is_none() && calls.get("9").is_some());
        let large = "x".repeat(limits::CALLS_BYTES_MAX);
        let rest = format!(r#""toolCallId":"9","title":"t","rawInput":{{"text":"{large}"}}"#);
        calls.on_update(&update("tool_call_update", &rest), Time(999));
        let call = calls.get("9").unwrap();
        assert!(call.cut && !call.known.contains_key("rawInput"));
        assert_eq!(call.text("title"), Some("t"));
        let sum: usize = calls.known.values().map(|it| it.bytes).sum();
        assert!(calls.bytes == sum && sum <= limits::CALLS_BYTES_MAX);
    }
}
