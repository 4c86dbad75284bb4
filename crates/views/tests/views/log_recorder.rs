//! Builds a session's log from recorded ACP traffic, as the hub would write it.

use crate::session_log::SessionLog;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct LogRecorder {
    log: SessionLog,
    turn: u64,
    is_turn_running: bool,
    /// Open requests of the client, and their methods.
    client_requests: BTreeMap<String, String>,
    /// Open permission requests of the agent, and their numbers.
    agent_requests: BTreeMap<String, u64>,
    request_count: u64,
    /// Updates that arrive before the session is open, or that replay it when it is loaded.
    updates_before_open: Option<Vec<Value>>,
}

impl LogRecorder {
    pub(crate) fn new() -> LogRecorder {
        LogRecorder {
            log: SessionLog::default(),
            turn: 0,
            is_turn_running: false,
            client_requests: BTreeMap::new(),
            agent_requests: BTreeMap::new(),
            request_count: 0,
            updates_before_open: None,
        }
    }

    pub(crate) fn into_log(self) -> SessionLog {
        self.log
    }

    pub(crate) fn on_client_message(&mut self, at: u64, message: &Value) {
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some("session/prompt") => {
                (self.turn, self.is_turn_running, self.updates_before_open) =
                    (self.turn + 1, true, None);
                let event = json!({ "is": "prompted", "turn": self.turn, "by": "lab",
                                   "frame": message });
                self.log.push_event_at(at, event);
                self.client_requests.insert(id, "session/prompt".to_owned());
            }
            Some("session/cancel") if self.is_turn_running => {
                self.log
                    .push_event_at(at, json!({ "is": "cancelled", "turn": self.turn, "step": 1 }));
            }
            Some(method) => {
                if ["session/new", "session/load", "session/resume"].contains(&method) {
                    self.updates_before_open = Some(Vec::new());
                }
                self.client_requests.insert(id, method.to_owned());
            }
            None => {
                let Some(ask) = self.agent_requests.remove(&id) else { return };
                let answer = match message.get("result") {
                    Some(result) => json!({ "result": result }),
                    None => json!({ "error": message["error"] }),
                };
                let event = json!({ "is": "answered", "ask": ask, "by": "lab", "answer": answer });
                self.log.push_event_at(at, event);
            }
        }
    }

    pub(crate) fn on_agent_message(&mut self, at: u64, message: &Value) {
        let id = message["id"].to_string();
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/request_permission"), Some(_)) => {
                self.request_count += 1;
                self.agent_requests.insert(id, self.request_count);
                self.log.push_event_at(
                    at,
                    json!({ "is": "asked", "ask": self.request_count, "frame": message }),
                );
            }
            (Some(_), Some(_)) => {} // Requests for files and terminals are not in the log.
            (Some(_), None) if message["params"]["sessionId"].is_null() => {}
            (Some(_), None) => match &mut self.updates_before_open {
                Some(updates_before_open) => updates_before_open.push(message.clone()),
                None => self.on_update(at, message),
            },
            (None, _) => self.on_response(at, &id, message),
        }
    }

    fn on_update(&mut self, at: u64, frame: &Value) {
        let mut event = json!({ "is": "said", "turn": self.turn });
        if self.turn != 0 && !self.is_turn_running {
            event["late"] = json!(true);
        }
        event["frame"] = frame.clone();
        self.log.push_event_at(at, event);
    }

    fn on_response(&mut self, at: u64, id: &str, message: &Value) {
        let (result, error) = (message.get("result"), message.get("error"));
        match (self.client_requests.remove(id).unwrap_or_default().as_str(), result, error) {
            ("session/new", Some(setup), _) => {
                let event = json!({ "is": "opened", "agent": "recorded", "setup": setup });
                self.log.push_event_at(at, event);
                for frame in self.updates_before_open.take().into_iter().flatten() {
                    self.on_update(at, &frame);
                }
            }
            ("session/load", Some(setup), _) => self.on_restored(at, "reloaded", setup),
            ("session/resume", Some(setup), _) => self.on_restored(at, "resumed", setup),
            ("session/prompt", Some(result), _) => self.on_turn_ended(at, "stopped", result),
            ("session/prompt", None, Some(error)) => self.on_turn_ended(at, "failed", error),
            _ => {}
        }
    }

    /// The replayed updates are in the log already; some agents continue the replay until the next prompt.
    fn on_restored(&mut self, at: u64, step: &str, setup: &Value) {
        self.log.start_in_the_middle();
        self.log.push_event_at(at, json!({ "is": "bound", "restore": step, "setup": setup }));
    }

    fn on_turn_ended(&mut self, at: u64, how: &str, answer: &Value) {
        self.is_turn_running = false;
        let turn = self.turn;
        self.log.push_event_at(
            at,
            json!({ "is": "ended", "turn": turn, "how": how, "answer": answer }),
        );
    }
}
