//! An event as a client receives it from the hub: `{"sessionId":…,"seq":…,"at":…,"is":"…",…}`.

use crate::{EventBody, InvalidEvent, Seq, SessionId, Time};
use serde_json::Value;

/// An event with parsed JSON, for views and clients. An event that was read from a file may lack its
/// session and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEvent {
    pub session: Option<SessionId>,
    pub seq: Option<Seq>,
    pub at: Time,
    pub body: EventBody<Value>,
}

impl ReceivedEvent {
    pub fn from_value(value: Value) -> Result<ReceivedEvent, InvalidEvent> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let is = text("is").unwrap_or_default().to_owned();
        let session = text("sessionId").map(SessionId::from);
        let (seq, at) = (number("seq").map(Seq), Time(number("at").unwrap_or_default()));
        let body = EventBody::from_members(&is, value)?;
        Ok(ReceivedEvent { session, seq, at, body })
    }
}

/// Stands for an event that the journal cannot read: `{"seq":…,"is":"missing","why":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingEvent {
    pub seq: Seq,
    pub why: String,
}

impl MissingEvent {
    /// `None` for every other JSON.
    pub fn from_value(value: &Value) -> Option<MissingEvent> {
        let is_missing = value.get("is")? == "missing";
        let why = value.get("why").and_then(Value::as_str).unwrap_or_default().to_owned();
        let seq = Seq(value.get("seq")?.as_u64()?);
        is_missing.then_some(MissingEvent { seq, why })
    }

    /// The params of its notification.
    pub fn to_params(&self, session: &SessionId) -> String {
        let (session, why) = (Value::from(session.as_str()), Value::from(self.why.as_str()));
        format!(r#"{{"sessionId":{session},"seq":{},"is":"missing","why":{why}}}"#, self.seq.0)
    }
}
