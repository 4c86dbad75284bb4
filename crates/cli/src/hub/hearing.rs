//! The log as a client hears it that knows of the hub. What ACP has words for comes as ACP, the rest
//! as facts; put together they are the facts of the log again, on the connection that also drives.

use jackfield_wire::{Frame, Kind};
use serde_json::{Map, Value, json};

/// Makes facts of what is heard, in order, from wherever it begins.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    /// The last one that was heard.
    seq: u64,
}

impl Hearing {
    /// The fact that a message of the hub tells; nothing if it tells none, or one that was told.
    pub(crate) fn fact(&mut self, frame: &Frame) -> Option<Value> {
        if frame.kind() != Kind::Notification {
            return None;
        }
        let method = frame.method()?;
        let params: Value = serde_json::from_str(frame.params()?).ok()?;
        let fact = match method.as_ref() {
            "_jackfield/turn" | "_jackfield/ask" | "_jackfield/session" => params,
            _ => said(&method, params)?,
        };
        let seq = fact["seq"].as_u64()?;
        // Somebody else's prompt is told twice: as a fact, and in ACP's words under the same number.
        if seq <= self.seq {
            return None;
        }
        self.seq = seq;
        Some(fact)
    }
}

/// Words of the agent, with what the hub has put into them taken out again.
fn said(method: &str, mut params: Value) -> Option<Value> {
    let members = params.as_object_mut()?;
    let ours = take_ours(members)?;
    let number = |name: &str| ours[name].as_u64();
    let mut fact = json!({
        "sessionId": members.get("sessionId"), "seq": number("seq")?, "at": number("at")?,
        "is": "said", "turn": number("turn")?,
    });
    if ours["late"] == true {
        fact["late"] = json!(true);
    }
    fact["frame"] = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    Some(fact)
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

    fn hear(hearing: &mut Hearing, method: &str, params: &Value) -> Option<Value> {
        hearing.fact(&Frame::notification(method, &params.to_string()))
    }

    fn update(kind: &str, meta: &Value) -> Value {
        json!({ "_meta": meta, "sessionId": "s-1", "update": { "sessionUpdate": kind } })
    }

    #[test]
    fn words_are_facts_again() {
        let mut hearing = Hearing::default();
        let meta = json!({ "x": 1, "jackfield": { "seq": 3, "at": 7, "turn": 1 } });
        let heard = hear(&mut hearing, "session/update", &update("plan", &meta)).unwrap();
        let params = update("plan", &json!({ "x": 1 }));
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let said = json!({ "sessionId": "s-1", "seq": 3, "at": 7, "is": "said", "turn": 1, "frame": frame });
        assert_eq!(heard, said);
        let meta = json!({ "jackfield": { "seq": 4, "at": 8, "turn": 1, "late": true } });
        let late = hear(&mut hearing, "session/update", &update("plan", &meta)).unwrap();
        assert_eq!((&late["late"], &late["frame"]["params"].get("_meta")), (&json!(true), &None));
    }

    #[test]
    fn a_prompt_of_somebody_else_is_one_fact() {
        let mut hearing = Hearing::default();
        let prompted =
            json!({ "sessionId": "s-1", "seq": 2, "at": 5, "is": "prompted", "turn": 1 });
        assert!(hear(&mut hearing, "_jackfield/turn", &prompted).is_some());
        let meta = json!({ "jackfield": { "seq": 2, "at": 5, "turn": 1 } });
        let chunk = update("user_message_chunk", &meta);
        assert_eq!(hear(&mut hearing, "session/update", &chunk), None);
        assert_eq!(hear(&mut hearing, "session/update", &chunk), None);
    }

    #[test]
    fn what_is_in_no_log_is_no_fact() {
        let mut hearing = Hearing::default();
        assert_eq!(hear(&mut hearing, "$/cancel_request", &json!({ "requestId": 1 })), None);
        let plain = json!({ "sessionId": "s-1", "update": {} });
        assert_eq!(hear(&mut hearing, "session/update", &plain), None);
        assert_eq!(hearing.fact(&Frame::request("1", "session/request_permission", "{}")), None);
    }
}
