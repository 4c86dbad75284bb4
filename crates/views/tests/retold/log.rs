//! A session's log, written fact by fact, and read by the views.

use crate::test_events::received_any;
use jackfield_views::{AgentEvents, Envelope, Envelopes};
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "s-abcdefghijkl";

/// Facts in order, each ten milliseconds after the one before.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    pub(crate) facts: Vec<Value>,
    /// How many facts there were before the first of these.
    before: u64,
    turn: u64,
    runs: bool,
    asks: u64,
}

impl Log {
    /// A session that has just been opened.
    pub(crate) fn opened() -> Log {
        Log::default().open(&json!({}))
    }

    pub(crate) fn open(self, setup: &Value) -> Log {
        self.fact(json!({ "is": "opened", "agent": "claude", "argv": [], "cwd": "/p",
                          "params": {}, "agentSession": "a-1", "setup": setup }))
    }

    /// The reader comes in the middle.
    pub(crate) fn starts_later(&mut self) {
        self.before = 100;
    }

    pub(crate) fn fact(mut self, fact: Value) -> Log {
        let at = 1_010 + 10 * self.facts.len() as u64;
        self.put(at, fact);
        self
    }

    /// A fact of a certain time.
    pub(crate) fn put(&mut self, at: u64, fact: Value) {
        let seq = self.before + self.facts.len() as u64 + 1;
        let mut whole = json!({ "sessionId": SESSION, "seq": seq, "at": at });
        let Value::Object(members) = fact else { panic!("a fact is an object") };
        whole.as_object_mut().unwrap().extend(members);
        self.facts.push(whole);
    }

    pub(crate) fn prompted(self, text: &str) -> Log {
        self.prompted_with(&json!([{ "type": "text", "text": text }]))
    }

    pub(crate) fn prompted_with(mut self, prompt: &Value) -> Log {
        (self.turn, self.runs) = (self.turn + 1, true);
        let params = json!({ "sessionId": SESSION, "prompt": prompt });
        let frame =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params });
        let turn = self.turn;
        self.fact(json!({ "is": "prompted", "turn": turn, "by": "test", "frame": frame }))
    }

    pub(crate) fn said(self, update: &Value) -> Log {
        let params = json!({ "sessionId": SESSION, "update": update });
        self.heard(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    /// Any word of the agent's.
    pub(crate) fn heard(self, frame: Value) -> Log {
        let mut fact = json!({ "is": "said", "turn": self.turn });
        if self.turn != 0 && !self.runs {
            fact["late"] = json!(true);
        }
        fact["frame"] = frame;
        self.fact(fact)
    }

    pub(crate) fn text(self, text: &str) -> Log {
        self.said(&json!({ "sessionUpdate": "agent_message_chunk",
                           "content": { "type": "text", "text": text } }))
    }

    pub(crate) fn thought(self, text: &str) -> Log {
        self.said(&json!({ "sessionUpdate": "agent_thought_chunk",
                           "content": { "type": "text", "text": text } }))
    }

    pub(crate) fn tool(self, id: &str, command: &str) -> Log {
        self.said(&json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": command,
                           "kind": "execute", "status": "in_progress",
                           "rawInput": { "command": command } }))
    }

    pub(crate) fn tool_done(self, id: &str, output: &str) -> Log {
        self.said(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": id,
                           "status": "completed", "rawOutput": output }))
    }

    /// A permission for the call, asked for.
    pub(crate) fn asked(mut self, id: &str) -> Log {
        self.asks += 1;
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let call = json!({ "toolCallId": id, "title": "ls", "kind": "execute" });
        let params = json!({ "sessionId": SESSION, "toolCall": call, "options": options });
        let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
                            "params": params });
        let ask = self.asks;
        self.fact(json!({ "is": "asked", "ask": ask, "frame": frame }))
    }

    pub(crate) fn answered(self, option: &str) -> Log {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        let ask = self.asks;
        self.fact(json!({ "is": "answered", "ask": ask, "by": "zed",
                          "answer": { "result": { "outcome": outcome } } }))
    }

    pub(crate) fn ended(mut self, how: &str, answer: &Value) -> Log {
        self.runs = false;
        let turn = self.turn;
        self.fact(json!({ "is": "ended", "turn": turn, "how": how, "answer": answer }))
    }

    /// The agent answered the prompt.
    pub(crate) fn stopped(self, reason: &str) -> Log {
        self.ended("stopped", &json!({ "stopReason": reason }))
    }

    pub(crate) fn failed(self, message: &str) -> Log {
        self.ended("failed", &json!({ "code": -32603, "message": message }))
    }

    /// The last fact, once more.
    pub(crate) fn again(mut self) -> Log {
        let mut last = self.facts.last().unwrap().clone();
        last.as_object_mut().unwrap().shift_remove("seq");
        last.as_object_mut().unwrap().shift_remove("at");
        self = self.fact(last);
        self
    }

    pub(crate) fn envelopes(&self) -> Vec<Envelope> {
        let mut envelopes = Envelopes::new(SESSION);
        self.facts.iter().filter_map(received_any).flat_map(|it| envelopes.fold(&it)).collect()
    }

    /// With the pieces of a text put together.
    pub(crate) fn whole_envelopes(&self) -> Vec<Envelope> {
        let mut envelopes = Envelopes::accumulating(SESSION);
        let mut all: Vec<_> =
            self.facts.iter().filter_map(received_any).flat_map(|it| envelopes.fold(&it)).collect();
        all.extend(envelopes.finish());
        all
    }

    /// As they are sent.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut events = AgentEvents::default();
        let events = self
            .facts
            .iter()
            .filter_map(received_any)
            .flat_map(|it| events.fold(&it))
            .collect::<Vec<_>>();
        events.iter().map(|it| serde_json::to_value(it).unwrap()).collect()
    }
}
