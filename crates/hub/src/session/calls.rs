//! The tool calls of a session as its agent reports them: what is known of each, since when it runs, and when it last
//! changed. Several updates about one call are merged.

use crate::{Time, limits};
use jackfield_protocol::Frame;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap};

/// Running calls, and the last one that ended, which may be checked once more.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    known: BTreeMap<Box<str>, Call>,
    bytes: usize,
    /// A call that ended. It is forgotten with the next update about a call.
    ended: Option<Box<str>>,
}

/// One tool call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The members of a `toolCall` that say what it is: `toolCallId`, `title`, `kind`, `status`,
    /// `rawInput`, `locations`, `_meta`, each as it was reported last.
    pub(crate) known: Map<String, Value>,
    /// A member was too large to be stored, so what is known may be incomplete.
    pub(crate) cut: bool,
    pub(crate) began: Time,
    pub(crate) changed: Time,
    bytes: usize,
}

/// The part of an update that is stored; content and output are not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedCall<'a> {
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
    update: ReportedCall<'a>,
}

impl ToolCalls {
    /// Handles an update. Returns the call that it concerns.
    pub(crate) fn on_update(&mut self, frame: &Frame, now: Time) -> Option<&Call> {
        if !matches!(frame.update().as_deref(), Some("tool_call" | "tool_call_update")) {
            return None;
        }
        let params: Params<'_> = serde_json::from_str(frame.params()?).ok()?;
        let update = params.update;
        let id: Box<str> = update.tool_call_id.as_ref().into();
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
        call.take(&update, room + before);
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

    /// Calls that have not ended, as far as the agent has reported.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Call> {
        self.known.values().filter(|it| !it.has_ended())
    }

    /// The turn or the agent has ended, so all calls have.
    pub(crate) fn clear(&mut self) {
        *self = ToolCalls::default();
    }

    fn forget(&mut self, id: &str) {
        if let Some(call) = self.known.remove(id) {
            self.bytes -= call.bytes;
        }
    }

    /// If an agent never ends its calls, the one that changed longest ago is forgotten.
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

    /// Each member replaces the one before, as long as the sum stays within `room` bytes.
    fn take(&mut self, update: &ReportedCall<'_>, room: usize) {
        let members = [
            ("title", update.title),
            ("kind", update.kind),
            ("status", update.status),
            ("rawInput", update.raw_input),
            ("locations", update.locations),
            ("_meta", update.meta),
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

/// The size of a member.
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
        let call = calls.on_update(&done, Time(2)).unwrap();
        assert_eq!(call.text("title"), Some("a"));
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
