//! The log as a client hears it that knows of the hub. What ACP has words for comes as ACP, the rest
//! as facts; put together they are the facts of the log again, on the connection that also drives.

use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, Seq, SessionId, Time};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use serde_json::{Map, Value, json};

/// Makes facts of what is heard, in order, from wherever it begins.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    /// The last one that was heard.
    seq: u64,
}

impl Hearing {
    /// The event that a message of the hub carries; `None` if it carries none or a known one.
    pub(crate) fn event(&mut self, frame: &Frame) -> Option<ReceivedEvent> {
        if frame.kind() != Kind::Notification {
            return None;
        }
        let event = event_of(frame).or_else(|| agent_message(frame))?;
        let seq = event.seq?.0;
        // Another client's prompt comes twice: as an event, and as ACP messages with the same number.
        if seq <= self.seq {
            return None;
        }
        self.seq = seq;
        Some(event)
    }
}

/// The event in a `_jackfield/…` notification that stands for one.
pub(crate) fn event_of(frame: &Frame) -> Option<ReceivedEvent> {
    let is_event = matches!(
        frame.known_method()?,
        Method::ControlTurn | Method::ControlAsk | Method::ControlSession
    );
    let params = frame.params().filter(|_| is_event)?;
    ReceivedEvent::from_value(serde_json::from_str(params).ok()?).ok()
}

/// A message of the agent, without the members that the hub has added to it.
fn agent_message(frame: &Frame) -> Option<ReceivedEvent> {
    let method = frame.method()?;
    let mut params: Value = serde_json::from_str(frame.params()?).ok()?;
    let members = params.as_object_mut()?;
    let ours = take_ours(members)?;
    let session = members.get("sessionId").and_then(Value::as_str).map(SessionId::from);
    let number = |name: &str| ours[name].as_u64();
    let (seq, at, turn) = (Some(Seq(number("seq")?)), Time(number("at")?), number("turn")?);
    let late = ours["late"] == true;
    let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    let body = EventBody::Said(AgentMessage { turn, late, frame });
    Some(ReceivedEvent { session, seq, at, body })
}

fn take_ours(params: &mut Map<String, Value>) -> Option<Value> {
    let meta = params.get_mut("_meta")?.as_object_mut()?;
    let ours = meta.remove("jackfield")?;
    if meta.is_empty() {
        params.remove("_meta");
    }
    Some(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(hearing: &mut Hearing, method: &str, params: &Value) -> Option<ReceivedEvent> {
        hearing.event(&Frame::notification(method, &params.to_string()))
    }

    fn update(kind: &str, meta: &Value) -> Value {
        json!({ "_meta": meta, "sessionId": "s-1", "update": { "sessionUpdate": kind } })
    }

    #[test]
    fn messages_of_the_agent_are_the_events_of_the_log() {
        let mut hearing = Hearing::default();
        let meta = json!({ "x": 1, "jackfield": { "seq": 3, "at": 7, "turn": 1 } });
        let heard = hear(&mut hearing, "session/update", &update("plan", &meta)).unwrap();
        let params = update("plan", &json!({ "x": 1 }));
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let said = json!({ "sessionId": "s-1", "seq": 3, "at": 7, "is": "said", "turn": 1, "frame": frame });
        assert_eq!(heard, ReceivedEvent::from_value(said).unwrap());
        let meta = json!({ "jackfield": { "seq": 4, "at": 8, "turn": 1, "late": true } });
        let late = hear(&mut hearing, "session/update", &update("plan", &meta)).unwrap();
        let EventBody::Said(message) = late.body else { panic!("{late:?}") };
        assert!(message.late);
        assert_eq!(message.frame["params"].get("_meta"), None);
    }

    #[test]
    fn prompt_of_another_client_is_one_event() {
        let mut hearing = Hearing::default();
        let prompted = json!({ "sessionId": "s-1", "seq": 2, "at": 5, "is": "prompted", "turn": 1,
                               "by": "zed", "frame": {} });
        assert!(hear(&mut hearing, "_jackfield/turn", &prompted).is_some());
        let meta = json!({ "jackfield": { "seq": 2, "at": 5, "turn": 1 } });
        let chunk = update("user_message_chunk", &meta);
        assert_eq!(hear(&mut hearing, "session/update", &chunk), None);
        assert_eq!(hear(&mut hearing, "session/update", &chunk), None);
    }

    #[test]
    fn messages_that_are_not_in_the_log_are_no_events() {
        let mut hearing = Hearing::default();
        assert_eq!(hear(&mut hearing, "$/cancel_request", &json!({ "requestId": 1 })), None);
        let plain = json!({ "sessionId": "s-1", "update": {} });
        assert_eq!(hear(&mut hearing, "session/update", &plain), None);
        assert_eq!(hearing.event(&Frame::request("1", "session/request_permission", "{}")), None);
    }
}
