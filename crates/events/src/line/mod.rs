//! An event as a line of JSON: `{"at":…,"is":"…",…}`. This is what the journal stores.

use crate::{EventBody, EventKind, Seq, SessionEvent, Time};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use std::borrow::Cow;

/// A line that is not an event, or an event of a newer version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct InvalidEvent {
    pub why: String,
}

impl InvalidEvent {
    fn new(name: &str, why: &impl ToString) -> InvalidEvent {
        InvalidEvent { why: format!("invalid event `{name}`: {}", why.to_string()) }
    }
}

/// The members that every event has.
#[derive(Deserialize)]
struct EventHeader<'a> {
    at: Time,
    #[serde(borrow)]
    is: Cow<'a, str>,
}

impl SessionEvent {
    /// Appends the event as a line without a newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let write = "an event serializes to memory";
        out.extend_from_slice(br#"{"at":"#);
        serde_json::to_writer(&mut *out, &self.at).expect(write);
        // The body is an object of its own: its opening brace becomes the comma behind `at`.
        let brace = out.len();
        serde_json::to_writer(&mut *out, &self.body).expect(write);
        out[brace] = b',';
    }

    /// Reads a line that this or an earlier version has written.
    pub fn decode(seq: Seq, line: &[u8]) -> Result<SessionEvent, InvalidEvent> {
        let header: EventHeader<'_> =
            serde_json::from_slice(line).map_err(|it| InvalidEvent { why: it.to_string() })?;
        let mut members = serde_json::Deserializer::from_slice(line);
        let body = EventBody::from_members(&header.is, &mut members)?;
        Ok(SessionEvent { seq, at: header.at, body })
    }
}

impl<J: DeserializeOwned> EventBody<J> {
    /// Reads the event that `is` names from the members of its JSON object.
    ///
    /// Serde's own tagged enums read the members into a buffer first, which loses the exact text of
    /// embedded JSON. Here each member is read directly.
    pub(crate) fn from_members<'de, D>(is: &str, members: D) -> Result<EventBody<J>, InvalidEvent>
    where
        D: Deserializer<'de>,
        D::Error: ToString,
    {
        let Some(kind) = EventKind::from_name(is) else {
            return Err(InvalidEvent::new(is, &"this version does not know it"));
        };
        let body = match kind {
            EventKind::Opened => Deserialize::deserialize(members).map(EventBody::Opened),
            EventKind::Forked => Deserialize::deserialize(members).map(EventBody::Forked),
            EventKind::Imported => Deserialize::deserialize(members).map(EventBody::Imported),
            EventKind::Moved => Deserialize::deserialize(members).map(EventBody::Moved),
            EventKind::Bound => Deserialize::deserialize(members).map(EventBody::Bound),
            EventKind::Said => Deserialize::deserialize(members).map(EventBody::Said),
            EventKind::Queued => Deserialize::deserialize(members).map(EventBody::Queued),
            EventKind::Reordered => Deserialize::deserialize(members).map(EventBody::Reordered),
            EventKind::Withdrawn => Deserialize::deserialize(members).map(EventBody::Withdrawn),
            EventKind::Prompted => Deserialize::deserialize(members).map(EventBody::Prompted),
            EventKind::Cancelled => Deserialize::deserialize(members).map(EventBody::Cancelled),
            EventKind::Ended => Deserialize::deserialize(members).map(EventBody::Ended),
            EventKind::Asked => Deserialize::deserialize(members).map(EventBody::Asked),
            EventKind::Answered => Deserialize::deserialize(members).map(EventBody::Answered),
            EventKind::Refused => Deserialize::deserialize(members).map(EventBody::Refused),
            EventKind::Sandboxed => Deserialize::deserialize(members).map(EventBody::Sandboxed),
            EventKind::HostRefused => Deserialize::deserialize(members).map(EventBody::HostRefused),
            EventKind::LeftOut => Deserialize::deserialize(members).map(EventBody::LeftOut),
            EventKind::Learned => Deserialize::deserialize(members).map(EventBody::Learned),
            EventKind::Unasked => Deserialize::deserialize(members).map(EventBody::Unasked),
            EventKind::Served => Deserialize::deserialize(members).map(EventBody::Served),
            EventKind::Configured => Deserialize::deserialize(members).map(EventBody::Configured),
            EventKind::Gone => Deserialize::deserialize(members).map(EventBody::Gone),
            EventKind::Quiet => Deserialize::deserialize(members).map(EventBody::Quiet),
            EventKind::Slept => Deserialize::deserialize(members).map(EventBody::Slept),
            EventKind::Closed => Ok(EventBody::Closed),
        };
        body.map_err(|error| InvalidEvent::new(is, &error))
    }
}

#[cfg(test)]
mod tests;
