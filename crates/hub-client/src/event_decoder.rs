//! Restores the events of the log from the notifications that a client with `_jackfield` capability receives: some
//! arrive as ACP messages, the others as `_jackfield/…` notifications.

use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, Seq, SessionId, Time};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use serde_json::{Map, Value, json};

/// Decodes notifications into events, each event once.
#[derive(Debug, Default)]
pub struct EventDecoder {
    /// The sequence number of the last event.
    seq: u64,
}

impl EventDecoder {
    /// The event in a frame; `None` if the frame carries no event, or one that was decoded before.
    pub fn decode_frame(&mut self, frame: &Frame) -> Option<ReceivedEvent> {
        if frame.kind() != Kind::Notification {
            return None;
        }
        let event = parse_event(frame).or_else(|| parse_agent_message(frame))?;
        let seq = event.seq?.0;
        // A prompt of another client arrives twice: as an event, and as ACP messages with the same number.
        if seq <= self.seq {
            return None;
        }
        self.seq = seq;
        Some(event)
    }
}

/// The event in a `_jackfield/…` notification.
pub fn parse_event(frame: &Frame) -> Option<ReceivedEvent> {
    let is_event = matches!(
        frame.known_method()?,
        Method::ControlTurn | Method::ControlAsk | Method::ControlSession
    );
    let params = frame.params().filter(|_| is_event)?;
    ReceivedEvent::from_value(serde_json::from_str(params).ok()?).ok()
}

/// The event of an agent's message, without the members that the hub has added.
fn parse_agent_message(frame: &Frame) -> Option<ReceivedEvent> {
    let method = frame.method()?;
    let mut params: Value = serde_json::from_str(frame.params()?).ok()?;
    let members = params.as_object_mut()?;
    let hub_meta = take_hub_meta(members)?;
    let session = members.get("sessionId").and_then(Value::as_str).map(SessionId::from);
    let number = |name: &str| hub_meta[name].as_u64();
    let (seq, at, turn) = (Some(Seq(number("seq")?)), Time(number("at")?), number("turn")?);
    let late = hub_meta["late"] == true;
    let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    let body = EventBody::Said(AgentMessage { turn, late, frame });
    Some(ReceivedEvent { session, seq, at, body })
}

fn take_hub_meta(params: &mut Map<String, Value>) -> Option<Value> {
    let meta = params.get_mut("_meta")?.as_object_mut()?;
    let hub_meta = meta.remove("jackfield")?;
    if meta.is_empty() {
        params.remove("_meta");
    }
    Some(hub_meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(decoder: &mut EventDecoder, method: &str, params: &Value) -> Option<ReceivedEvent> {
        decoder.decode_frame(&Frame::notification(method, &params.to_string()))
    }

    fn update(kind: &str, meta: &Value) -> Value {
        json!({ "_meta": meta, "sessionId": "s-1", "update": { "sessionUpdate": kind } })
    }

    #[test]
    fn agent_messages_become_the_events_of_the_log() {
        let mut decoder = EventDecoder::default();
        let meta = json!({ "x": 1, "jackfield": { "seq": 3, "at": 7, "turn": 1 } });
        let decoded = decode(&mut decoder, "session/update", &update("plan", &meta)).unwrap();
        let params = update("plan", &json!({ "x": 1 }));
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let said = json!({ "sessionId": "s-1", "seq": 3, "at": 7, "is": "said", "turn": 1, "frame": frame });
        assert_eq!(decoded, ReceivedEvent::from_value(said).unwrap());
        let meta = json!({ "jackfield": { "seq": 4, "at": 8, "turn": 1, "late": true } });
        let late = decode(&mut decoder, "session/update", &update("plan", &meta)).unwrap();
        let EventBody::Said(message) = late.body else { panic!("{late:?}") };
        assert!(message.late);
        assert_eq!(message.frame["params"].get("_meta"), None);
    }

    #[test]
    fn prompt_of_another_client_is_decoded_once() {
        let mut decoder = EventDecoder::default();
        let prompted = json!({ "sessionId": "s-1", "seq": 2, "at": 5, "is": "prompted", "turn": 1,
                               "by": "zed", "frame": {} });
        assert!(decode(&mut decoder, "_jackfield/turn", &prompted).is_some());
        let meta = json!({ "jackfield": { "seq": 2, "at": 5, "turn": 1 } });
        let chunk = update("user_message_chunk", &meta);
        assert_eq!(decode(&mut decoder, "session/update", &chunk), None);
        assert_eq!(decode(&mut decoder, "session/update", &chunk), None);
    }

    #[test]
    fn frames_that_are_not_in_the_log_carry_no_event() {
        let mut decoder = EventDecoder::default();
        assert_eq!(decode(&mut decoder, "$/cancel_request", &json!({ "requestId": 1 })), None);
        let plain = json!({ "sessionId": "s-1", "update": {} });
        assert_eq!(decode(&mut decoder, "session/update", &plain), None);
        assert_eq!(
            decoder.decode_frame(&Frame::request("1", "session/request_permission", "{}")),
            None
        );
    }
}
