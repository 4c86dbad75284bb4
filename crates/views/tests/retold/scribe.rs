//! Makes a session's log of recorded traffic, as the hub would write it.

use crate::log::Log;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Scribe {
    log: Log,
    turn: u64,
    runs: bool,
    /// Open requests of the client, and what they ask for.
    asked_agent: BTreeMap<String, String>,
    /// Open asks of the agent, and their numbers.
    asked_client: BTreeMap<String, u64>,
    asks: u64,
    /// What is said before the session is open, or told again when it is loaded.
    early: Option<Vec<Value>>,
}

impl Scribe {
    pub(crate) fn new() -> Scribe {
        Scribe {
            log: Log::default(),
            turn: 0,
            runs: false,
            asked_agent: BTreeMap::new(),
            asked_client: BTreeMap::new(),
            asks: 0,
            early: None,
        }
    }

    pub(crate) fn into_log(self) -> Log {
        self.log
    }

    pub(crate) fn client_says(&mut self, at: u64, message: &Value) {
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some("session/prompt") => {
                (self.turn, self.runs, self.early) = (self.turn + 1, true, None);
                let fact = json!({ "is": "prompted", "turn": self.turn, "by": "lab",
                                   "frame": message });
                self.log.put(at, fact);
                self.asked_agent.insert(id, "session/prompt".to_owned());
            }
            Some("session/cancel") if self.runs => {
                self.log.put(at, json!({ "is": "cancelled", "turn": self.turn, "step": 1 }));
            }
            Some(method) => {
                if ["session/new", "session/load", "session/resume"].contains(&method) {
                    self.early = Some(Vec::new());
                }
                self.asked_agent.insert(id, method.to_owned());
            }
            None => {
                let Some(ask) = self.asked_client.remove(&id) else { return };
                let answer = match message.get("result") {
                    Some(result) => json!({ "result": result }),
                    None => json!({ "error": message["error"] }),
                };
                let fact = json!({ "is": "answered", "ask": ask, "by": "lab", "answer": answer });
                self.log.put(at, fact);
            }
        }
    }

    pub(crate) fn agent_says(&mut self, at: u64, message: &Value) {
        let id = message["id"].to_string();
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/request_permission"), Some(_)) => {
                self.asks += 1;
                self.asked_client.insert(id, self.asks);
                self.log.put(at, json!({ "is": "asked", "ask": self.asks, "frame": message }));
            }
            (Some(_), Some(_)) => {} // A file, a terminal: no fact.
            (Some(_), None) if message["params"]["sessionId"].is_null() => {}
            (Some(_), None) => match &mut self.early {
                Some(early) => early.push(message.clone()),
                None => self.said(at, message),
            },
            (None, _) => self.answered(at, &id, message),
        }
    }

    fn said(&mut self, at: u64, frame: &Value) {
        let mut fact = json!({ "is": "said", "turn": self.turn });
        if self.turn != 0 && !self.runs {
            fact["late"] = json!(true);
        }
        fact["frame"] = frame.clone();
        self.log.put(at, fact);
    }

    fn answered(&mut self, at: u64, id: &str, message: &Value) {
        let (result, error) = (message.get("result"), message.get("error"));
        match (self.asked_agent.remove(id).unwrap_or_default().as_str(), result, error) {
            ("session/new", Some(setup), _) => {
                let fact = json!({ "is": "opened", "agent": "recorded", "setup": setup });
                self.log.put(at, fact);
                for frame in self.early.take().into_iter().flatten() {
                    self.said(at, &frame);
                }
            }
            ("session/load", Some(setup), _) => self.woken(at, "reloaded", setup),
            ("session/resume", Some(setup), _) => self.woken(at, "resumed", setup),
            ("session/prompt", Some(result), _) => self.ended(at, "stopped", result),
            ("session/prompt", None, Some(error)) => self.ended(at, "failed", error),
            _ => {}
        }
    }

    /// What is told again is in the log already; some agents go on with it until they are prompted.
    fn woken(&mut self, at: u64, rung: &str, setup: &Value) {
        self.log.starts_later();
        self.log.put(at, json!({ "is": "bound", "rung": rung, "setup": setup }));
    }

    fn ended(&mut self, at: u64, how: &str, answer: &Value) {
        self.runs = false;
        let turn = self.turn;
        self.log.put(at, json!({ "is": "ended", "turn": turn, "how": how, "answer": answer }));
    }
}
