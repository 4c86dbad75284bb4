//! The messages that an event becomes for clients. Ordinary ACP clients get ACP messages; clients that announced
//! `_meta.jackfield` also get notices for events that ACP has no message for, and sequence number, time and turn of each
//! event.

use crate::{Seq, SessionId};
use bytes::Bytes;
use jackfield_events::{
    AgentMessage, EventBody, MissingEvent, RequestKey, SessionEvent, TurnStarted,
};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json, value::RawValue};
use std::{cell::OnceCell, collections::BTreeMap};

/// One event as its subscribers get it. Each form is made when the first subscriber needs it, and is shared.
pub struct Rendering<'a> {
    pub session: &'a SessionId,
    pub event: &'a SessionEvent,
    said: OnceCell<Bytes>,
    plain_chunks: OnceCell<Vec<Bytes>>,
    aware_chunks: OnceCell<Vec<Bytes>>,
    notice: OnceCell<Option<Bytes>>,
    fact: OnceCell<Bytes>,
}

impl<'a> Rendering<'a> {
    pub fn new(session: &'a SessionId, event: &'a SessionEvent) -> Rendering<'a> {
        Rendering {
            session,
            event,
            said: OnceCell::new(),
            plain_chunks: OnceCell::new(),
            aware_chunks: OnceCell::new(),
            notice: OnceCell::new(),
            fact: OnceCell::new(),
        }
    }

    /// A message of the agent as it was sent.
    pub fn said(&self, frame: &Bytes, aware: bool) -> Bytes {
        if !aware {
            return frame.clone();
        }
        let render = || match Frame::parse(frame.clone()) {
            Ok(parsed) => with_seq(&parsed, self.event, None),
            Err(_) => frame.clone(),
        };
        self.said.get_or_init(render).clone()
    }

    /// The prompt of another client as ACP shows it: one chunk per content block.
    pub fn user_chunks(&self, prompt: &Bytes, aware: bool) -> &[Bytes] {
        let chunks = if aware { &self.aware_chunks } else { &self.plain_chunks };
        chunks.get_or_init(|| user_chunks(self.session, self.event, prompt, aware))
    }

    /// The notice for clients that know the hub. `None` for events that they get as an update.
    pub fn notice(&self) -> Option<Bytes> {
        self.notice.get_or_init(|| notice(self.session, self.event)).clone()
    }

    /// Any event as it is in the log.
    pub fn fact(&self) -> Bytes {
        self.fact
            .get_or_init(|| addressed(Method::ControlEvent.name(), self.session, self.event))
            .clone()
    }
}

/// Sequence number, time and turn, and whether the message came after its end. With these a client can rebuild the event.
/// The key of a prompt tells its client that the prompt is its own.
fn with_seq(frame: &Frame, event: &SessionEvent, key: Option<&str>) -> Bytes {
    let (seq, at) = (event.seq.0, event.at.0);
    let (turn, late) = match event.body {
        EventBody::Said(AgentMessage { turn, late, .. }) => (turn, late),
        EventBody::Prompted(TurnStarted { turn, .. }) => (turn, false),
        _ => unreachable!("only words are heard as ACP"),
    };
    let late = if late { r#","late":true"# } else { "" };
    let key = key.map(|it| format!(r#","key":{}"#, Value::from(it))).unwrap_or_default();
    let meta = format!(r#"{{"seq":{seq},"at":{at},"turn":{turn}{late}{key}}}"#);
    frame.with_meta(&meta).bytes().clone()
}

fn user_chunks(
    session: &SessionId,
    event: &SessionEvent,
    prompt: &Bytes,
    aware: bool,
) -> Vec<Bytes> {
    let Ok(frame) = Frame::parse(prompt.clone()) else { return Vec::new() };
    let params: BTreeMap<String, &RawValue> =
        serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
    // Blocks are copied, not rebuilt: a client may know more kinds than the hub.
    let blocks: Option<Vec<&RawValue>> =
        params.get("prompt").and_then(|it| serde_json::from_str(it.get()).ok());
    let key = RequestKey::from_frame(&frame).ok().flatten().map(|it| it.key);
    let chunk = |content: &RawValue| {
        let params = format!(
            r#"{{"sessionId":{},"update":{{"sessionUpdate":"user_message_chunk","content":{content}}}}}"#,
            Value::from(&**session),
        );
        let frame = Frame::notification(Method::SessionUpdate.name(), &params);
        if aware { with_seq(&frame, event, key.as_deref()) } else { frame.bytes().clone() }
    };
    blocks.into_iter().flatten().map(chunk).collect()
}

fn notice(session: &SessionId, event: &SessionEvent) -> Option<Bytes> {
    let method = event.body.kind().notification_method()?;
    Some(addressed(method.name(), session, event))
}

fn addressed(method: &str, session: &SessionId, event: &SessionEvent) -> Bytes {
    let mut line = Vec::new();
    event.encode(&mut line);
    let fact = std::str::from_utf8(&line).expect("an event encodes as JSON text");
    // The members of the event are beside its address: `{"sessionId":…,"seq":…,"at":…,"is":…,…}`.
    // Written as text, not as a frame: messages of peers are nested more deeply here than a frame may be.
    let (session, seq) = (Value::from(&**session), event.seq.0);
    let head = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":{session}"#);
    format!(r#"{head},"seq":{seq},{}}}"#, &fact[1..]).into()
}

/// Tells a client that a request needs no answer any more.
pub fn cancel_notice(request: u64) -> Bytes {
    let params = format!(r#"{{"requestId":{request}}}"#);
    Frame::notification(Method::CancelRequest.name(), &params).bytes().clone()
}

/// Tells a relay connection that a session is not at this host any more.
pub(crate) fn moved_notice(session: &SessionId) -> Bytes {
    let params = json!({ "sessionId": &**session }).to_string();
    Frame::notification(Method::ControlMoved.name(), &params).bytes().clone()
}

/// Takes the place of an event that the journal cannot read.
pub(crate) fn missing_notice(session: &SessionId, seq: Seq, why: &str) -> Bytes {
    let params = MissingEvent { seq, why: why.to_owned() }.to_params(session);
    Frame::notification(Method::ControlEvent.name(), &params).into_bytes()
}

/// The answer to an attach: the last event of the log, and the number of events that could not be stored yet.
pub(crate) fn attach_notice(session: &SessionId, head: u64, unwritten: usize) -> String {
    let mut notice = json!({ "sessionId": &**session, "head": head });
    if 0 < unwritten {
        notice["unwritten"] = json!(unwritten);
    }
    notice.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use jackfield_events::RawJson;

    #[test]
    fn all_who_hear_an_event_share_one_rendering_of_it() {
        let frame = r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#;
        let frame = Bytes::from_static(frame.as_bytes());
        let body = EventBody::Said(AgentMessage {
            turn: 1,
            late: false,
            frame: RawJson::trusted(frame.clone()),
        });
        let (session, event) = ("s-1".into(), SessionEvent { seq: Seq(2), at: Time(3), body });
        let rendering = Rendering::new(&session, &event);
        let same = |one: Bytes, other: Bytes| assert_eq!(one.as_ptr(), other.as_ptr());
        same(rendering.fact(), rendering.fact());
        same(rendering.said(&frame, true), rendering.said(&frame, true));
        same(rendering.said(&frame, false), frame.clone());
        assert_ne!(rendering.said(&frame, true), frame);
    }

    #[test]
    fn a_fact_around_a_frame_as_deep_as_frames_may_be_is_still_told() {
        // The frame is at the limit; the notice nests it two levels deeper.
        let deep = format!(r#"{{"method":"x","params":{}1{}}}"#, "[".repeat(127), "]".repeat(127));
        let frame = Frame::parse_str(&deep).unwrap();
        let frame = RawJson::trusted(frame.bytes().clone());
        let body =
            EventBody::Prompted(TurnStarted { turn: 1, by: "zed".into(), prompt: None, frame });
        let event = SessionEvent { seq: Seq(2), at: Time(3), body };
        let text = notice(&"s-1".into(), &event).unwrap();
        let head = r#"{"jsonrpc":"2.0","method":"_jackfield/turn","params":{"sessionId":"s-1","seq":2,"at":3,"#;
        assert!(text.starts_with(head.as_bytes()));
        assert!(text.ends_with(b"}}}"));
    }
}
