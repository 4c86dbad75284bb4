//! A session's log, built event by event and read by the views.

use crate::test_events::build_event_if_known;
use jackfield_views::{AgentEventView, Envelope, EnvelopeView};
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "s-abcdefghijkl";

/// Events in order, each ten milliseconds after the previous one.
#[derive(Debug, Default, Clone)]
pub(crate) struct SessionLog {
    pub(crate) events: Vec<Value>,
    /// The number of earlier events that the reader does not get.
    skipped: u64,
    turn: u64,
    is_turn_running: bool,
    request_count: u64,
}

impl SessionLog {
    /// A session that has just been opened.
    pub(crate) fn opened() -> SessionLog {
        SessionLog::default().open(&json!({}))
    }

    pub(crate) fn open(self, setup: &Value) -> SessionLog {
        self.event(json!({ "is": "opened", "agent": "claude", "argv": [], "cwd": "/p",
                          "params": {}, "agentSession": "a-1", "setup": setup }))
    }

    /// Lets the reader start in the middle of the session.
    pub(crate) fn start_in_the_middle(&mut self) {
        self.skipped = 100;
    }

    pub(crate) fn event(mut self, event: Value) -> SessionLog {
        let at = 1_010 + 10 * self.events.len() as u64;
        self.push_event_at(at, event);
        self
    }

    /// Adds an event with this time.
    pub(crate) fn push_event_at(&mut self, at: u64, event: Value) {
        let seq = self.skipped + self.events.len() as u64 + 1;
        let mut numbered = json!({ "sessionId": SESSION, "seq": seq, "at": at });
        let Value::Object(members) = event else { panic!("an event is an object") };
        numbered.as_object_mut().unwrap().extend(members);
        self.events.push(numbered);
    }

    pub(crate) fn prompted(self, text: &str) -> SessionLog {
        self.prompted_with(&json!([{ "type": "text", "text": text }]))
    }

    pub(crate) fn prompted_with(mut self, prompt: &Value) -> SessionLog {
        (self.turn, self.is_turn_running) = (self.turn + 1, true);
        let params = json!({ "sessionId": SESSION, "prompt": prompt });
        let frame =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params });
        let turn = self.turn;
        self.event(json!({ "is": "prompted", "turn": turn, "by": "test", "frame": frame }))
    }

    pub(crate) fn update(self, update: &Value) -> SessionLog {
        let params = json!({ "sessionId": SESSION, "update": update });
        self.message(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    /// Adds any notification of the agent.
    pub(crate) fn message(self, frame: Value) -> SessionLog {
        let mut event = json!({ "is": "said", "turn": self.turn });
        if self.turn != 0 && !self.is_turn_running {
            event["late"] = json!(true);
        }
        event["frame"] = frame;
        self.event(event)
    }

    pub(crate) fn text(self, text: &str) -> SessionLog {
        self.update(&json!({ "sessionUpdate": "agent_message_chunk",
                           "content": { "type": "text", "text": text } }))
    }

    pub(crate) fn thought(self, text: &str) -> SessionLog {
        self.update(&json!({ "sessionUpdate": "agent_thought_chunk",
                           "content": { "type": "text", "text": text } }))
    }

    pub(crate) fn tool(self, id: &str, command: &str) -> SessionLog {
        self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": command,
                           "kind": "execute", "status": "in_progress",
                           "rawInput": { "command": command } }))
    }

    pub(crate) fn tool_done(self, id: &str, output: &str) -> SessionLog {
        self.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": id,
                           "status": "completed", "rawOutput": output }))
    }

    /// Adds a permission request for the call.
    pub(crate) fn asked(mut self, id: &str) -> SessionLog {
        self.request_count += 1;
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let call = json!({ "toolCallId": id, "title": "ls", "kind": "execute" });
        let params = json!({ "sessionId": SESSION, "toolCall": call, "options": options });
        let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
                            "params": params });
        let ask = self.request_count;
        self.event(json!({ "is": "asked", "ask": ask, "frame": frame }))
    }

    pub(crate) fn answered(self, option: &str) -> SessionLog {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        let ask = self.request_count;
        self.event(json!({ "is": "answered", "ask": ask, "by": "zed",
                          "answer": { "result": { "outcome": outcome } } }))
    }

    pub(crate) fn ended(mut self, how: &str, answer: &Value) -> SessionLog {
        self.is_turn_running = false;
        let turn = self.turn;
        self.event(json!({ "is": "ended", "turn": turn, "how": how, "answer": answer }))
    }

    /// Ends the turn with a stop reason.
    pub(crate) fn stopped(self, reason: &str) -> SessionLog {
        self.ended("stopped", &json!({ "stopReason": reason }))
    }

    pub(crate) fn failed(self, message: &str) -> SessionLog {
        self.ended("failed", &json!({ "code": -32603, "message": message }))
    }

    /// Repeats the last event with a new sequence number.
    pub(crate) fn repeat_last(self) -> SessionLog {
        let mut last = self.events.last().unwrap().clone();
        last.as_object_mut().unwrap().shift_remove("seq");
        last.as_object_mut().unwrap().shift_remove("at");
        self.event(last)
    }

    /// The envelopes with all additions to the protocol.
    pub(crate) fn envelopes(&self) -> Vec<Envelope> {
        self.fold_envelopes(EnvelopeView::new(SESSION).with_additions())
    }

    /// The same with joined chunks.
    pub(crate) fn joined_envelopes(&self) -> Vec<Envelope> {
        self.fold_envelopes(EnvelopeView::joining_chunks(SESSION).with_additions())
    }

    pub(crate) fn fold_envelopes(&self, mut envelopes: EnvelopeView) -> Vec<Envelope> {
        let mut all: Vec<_> = self
            .events
            .iter()
            .filter_map(build_event_if_known)
            .flat_map(|it| envelopes.fold_event(&it))
            .collect();
        all.extend(envelopes.finish());
        all
    }

    /// The agent events as JSON.
    pub(crate) fn agent_events(&self) -> Vec<Value> {
        let mut view = AgentEventView::default();
        let events = self
            .events
            .iter()
            .filter_map(build_event_if_known)
            .flat_map(|it| view.fold_event(&it))
            .collect::<Vec<_>>();
        events.iter().map(|it| serde_json::to_value(it).unwrap()).collect()
    }
}
