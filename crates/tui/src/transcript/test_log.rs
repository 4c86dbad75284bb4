//! Events for tests: made one by one, and recorded traffic of agents as the log of a session.

use jackfield_events::ReceivedEvent;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// A log that grows. Each event comes a second after the one before.
#[derive(Debug, Default, Clone)]
pub(crate) struct TestLog {
    pub(crate) events: Vec<ReceivedEvent>,
    turn: u64,
    requests: u64,
}

impl TestLog {
    pub(crate) fn event(&mut self, is: &str, members: Value) -> &mut TestLog {
        let seq = self.events.len() as u64 + 1;
        self.event_at(seq * 1000, is, members)
    }

    fn event_at(&mut self, at: u64, is: &str, mut members: Value) -> &mut TestLog {
        members["seq"] = json!(self.events.len() as u64 + 1);
        members["at"] = json!(at);
        members["is"] = json!(is);
        self.events.push(ReceivedEvent::from_value(members).unwrap());
        self
    }

    pub(crate) fn opened(&mut self) -> &mut TestLog {
        self.event("opened", opened_members("agent"))
    }

    pub(crate) fn prompt(&mut self, text: &str) -> &mut TestLog {
        self.turn += 1;
        let frame = json!({ "params": { "prompt": [{ "type": "text", "text": text }] } });
        self.event("prompted", json!({ "turn": self.turn, "by": "zed", "frame": frame }))
    }

    pub(crate) fn update(&mut self, kind: &str, mut members: Value) -> &mut TestLog {
        members["sessionUpdate"] = json!(kind);
        let frame = json!({ "method": "session/update", "params": { "update": members } });
        self.event("said", json!({ "turn": self.turn, "frame": frame }))
    }

    fn chunk(&mut self, kind: &str, text: &str) -> &mut TestLog {
        self.update(kind, json!({ "content": { "type": "text", "text": text } }))
    }

    pub(crate) fn message(&mut self, text: &str) -> &mut TestLog {
        self.chunk("agent_message_chunk", text)
    }

    pub(crate) fn thought(&mut self, text: &str) -> &mut TestLog {
        self.chunk("agent_thought_chunk", text)
    }

    pub(crate) fn echo(&mut self, text: &str) -> &mut TestLog {
        self.chunk("user_message_chunk", text)
    }

    /// `members` of a `tool_call`.
    pub(crate) fn call(&mut self, id: &str, mut members: Value) -> &mut TestLog {
        members["toolCallId"] = json!(id);
        self.update("tool_call", members)
    }

    pub(crate) fn call_update(&mut self, id: &str, mut members: Value) -> &mut TestLog {
        members["toolCallId"] = json!(id);
        self.update("tool_call_update", members)
    }

    pub(crate) fn plan(&mut self, entries: &[(&str, &str)]) -> &mut TestLog {
        let entry = |it: &(&str, &str)| json!({ "content": it.0, "status": it.1 });
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        self.update("plan", json!({ "entries": entries }))
    }

    /// A permission request for a call, with options to allow and to reject it.
    pub(crate) fn ask(&mut self, call: &Value) -> &mut TestLog {
        self.requests += 1;
        let options = json!([
            { "optionId": "yes", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ]);
        let frame = json!({ "params": { "toolCall": call, "options": options } });
        self.event("asked", json!({ "ask": self.requests, "frame": frame }))
    }

    pub(crate) fn answer(&mut self, option: &str) -> &mut TestLog {
        let answer =
            json!({ "result": { "outcome": { "outcome": "selected", "optionId": option } } });
        self.event("answered", json!({ "ask": self.requests, "by": "zed", "answer": answer }))
    }

    pub(crate) fn end(&mut self, answer: &Value) -> &mut TestLog {
        self.event("ended", json!({ "turn": self.turn, "how": "stopped", "answer": answer }))
    }
}

fn opened_members(agent: &str) -> Value {
    json!({
        "agent": agent, "argv": [], "cwd": "/user/project", "params": {}, "agentSession": "1", "setup": null,
    })
}

fn recordings_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded")
}

/// The names of all recorded agents.
pub(crate) fn recordings() -> Vec<String> {
    let entries = fs::read_dir(recordings_folder()).unwrap().map(|it| it.unwrap());
    let recorded = entries.filter(|it| it.path().join("main.jsonl").exists());
    let mut names: Vec<String> = recorded.map(|it| it.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A recording as the events that the hub writes of it.
pub(crate) fn recorded_log(name: &str) -> Vec<ReceivedEvent> {
    let path = recordings_folder().join(name).join("main.jsonl");
    let mut log = TestLog::default();
    log.event_at(0, "opened", opened_members(name));
    let mut prompts: BTreeMap<String, u64> = BTreeMap::new();
    let mut asks: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (at, message) = (line["t"].as_f64().unwrap_or(0.0).round().max(0.0), &line["msg"]);
        if message.is_null() {
            continue;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded above"
        )]
        let at = at as u64;
        let id = message["id"].to_string();
        match (line["dir"].as_str().unwrap(), message["method"].as_str()) {
            ("client", Some("session/prompt")) => {
                log.turn += 1;
                prompts.insert(id, log.turn);
                let members = json!({ "turn": log.turn, "by": "lab", "frame": message });
                log.event_at(at, "prompted", members);
            }
            ("agent", Some("session/update")) => {
                log.event_at(at, "said", json!({ "turn": log.turn, "frame": message }));
            }
            ("agent", Some("session/request_permission")) => {
                asks.insert(id, asks.len() as u64 + 1);
                log.event_at(at, "asked", json!({ "ask": asks.len(), "frame": message }));
            }
            ("client", None) if asks.contains_key(&id) => {
                let answer = json!({ "result": message["result"] });
                let members = json!({ "ask": asks[&id], "by": "lab", "answer": answer });
                log.event_at(at, "answered", members);
            }
            ("agent", None) if prompts.contains_key(&id) => {
                let is_error = !message["error"].is_null();
                let how = if is_error { "failed" } else { "stopped" };
                let answer = &message[if is_error { "error" } else { "result" }];
                let members = json!({ "turn": prompts[&id], "how": how, "answer": answer });
                log.event_at(at, "ended", members);
            }
            _ => {}
        }
    }
    log.events
}
