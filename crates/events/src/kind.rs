//! The kinds of events, and the notification in which clients receive each of them.

use jackfield_protocol::acp::Method;
use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};
use serde_json::Value;
use std::fmt;

/// The kind of an event. Its JSON form is the member `is`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    Opened,
    Forked,
    Imported,
    Moved,
    Bound,
    Said,
    Queued,
    Reordered,
    Withdrawn,
    Prompted,
    Cancelled,
    Ended,
    Asked,
    Answered,
    Refused,
    Sandboxed,
    HostRefused,
    LeftOut,
    Learned,
    Unasked,
    Served,
    Configured,
    Gone,
    Quiet,
    Slept,
    Closed,
}

impl EventKind {
    /// The kind with this name; `None` for a kind of a newer version.
    pub fn from_name(name: &str) -> Option<EventKind> {
        let name: value::StrDeserializer<'_, value::Error> = name.into_deserializer();
        EventKind::deserialize(name).ok()
    }

    /// The kind of an event in its JSON form; `None` for every other JSON.
    pub fn from_value(event: &Value) -> Option<EventKind> {
        EventKind::from_name(event.get("is")?.as_str()?)
    }

    /// The method of the notification for clients that announce `_meta.jackfield`. `None` for messages
    /// of the agent, which every client receives as they are.
    pub fn notification_method(self) -> Option<Method> {
        match self {
            EventKind::Said => None,
            EventKind::Queued
            | EventKind::Reordered
            | EventKind::Withdrawn
            | EventKind::Prompted
            | EventKind::Cancelled
            | EventKind::Ended => Some(Method::ControlTurn),
            EventKind::Asked | EventKind::Answered | EventKind::Learned => Some(Method::ControlAsk),
            EventKind::Opened
            | EventKind::Forked
            | EventKind::Imported
            | EventKind::Moved
            | EventKind::Bound
            | EventKind::Refused
            | EventKind::Sandboxed
            | EventKind::HostRefused
            | EventKind::LeftOut
            | EventKind::Unasked
            | EventKind::Served
            | EventKind::Configured
            | EventKind::Gone
            | EventKind::Quiet
            | EventKind::Slept
            | EventKind::Closed => Some(Method::ControlSession),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
