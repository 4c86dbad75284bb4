//! The actions of workers: read, answer, notify, request, exit.

use super::world::{BusWorld, WorkerTask};
use jackfield_bus::routing::{BusInput, SessionAffinity, WorkerId};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::Frame;
use serde_json::json;

impl BusWorld {
    pub(super) fn worker_reads(&mut self) {
        let Some(worker) = self.pick_worker() else { return };
        let lines = 1 + self.rng.index(6);
        let it = self.workers.get_mut(&worker).expect("picked");
        if !it.started {
            it.started = true;
            self.feed_input(BusInput::WorkerStarted { worker, pid: 1 });
            return;
        }
        let bytes = it.read(lines);
        if 0 < bytes {
            self.feed_input(BusInput::WorkerWrote { worker, bytes });
        }
    }

    pub(super) fn worker_sends(&mut self) {
        let Some(worker) = self.pick_worker() else { return };
        if !self.workers[&worker].started || (self.workers[&worker].paused && !self.rng.chance(5)) {
            return;
        }
        match self.rng.below(10) {
            0..=4 => self.worker_answers(worker),
            5..=7 => self.worker_notifies(worker),
            8 => self.worker_notifies_early(worker),
            _ => self.worker_asks(worker),
        }
    }

    pub(super) fn worker_answers(&mut self, worker: WorkerId) {
        let it = self.workers.get_mut(&worker).expect("picked");
        if it.tasks.is_empty() {
            return;
        }
        let task = it.tasks.swap_remove(self.rng.index(it.tasks.len()));
        let id = task.message["id"].to_string();
        if self.rng.chance(10) {
            let text = format!(r#"{{"id":{id},"error":{{"code":-1,"message":"theirs"}}}}"#);
            let frame = Frame::parse_str(&text).expect("a message");
            self.feed_input(BusInput::WorkerSentFrame { worker, frame });
            return;
        }
        let early = task.session.is_some();
        let mut result = json!({ "token": task.message["params"]["token"] });
        if task.message["method"] == "session/new" {
            let name = task.session.unwrap_or_else(|| self.new_session_id(worker));
            self.workers.get_mut(&worker).expect("picked").sessions.insert(name.clone());
            result["sessionId"] = name.into();
        }
        let frame = Frame::result_for(&id, &result.to_string());
        // Earlier notifications precede the response, if the client that sent the request is still connected.
        let conn = ConnId(task.message["params"]["token"].as_u64().unwrap_or_default() >> 32);
        let listens = self.clients.get(&conn).is_some_and(|it| !it.closing);
        let refused = self.tally.count_of("refusals");
        let receivers = self.feed_input(BusInput::WorkerSentFrame { worker, frame });
        let is_known = self.clients.contains_key(&conn);
        if task.message["method"] == "session/close" && is_known {
            // This also holds if the client that closed the session is being disconnected.
            let session = task.message["params"]["sessionId"].as_str().expect("it names one");
            let place = self.expectations.scope_of(worker, self.affinity(worker));
            self.expectations.sessions.remove(&(place, session.to_owned()));
        }
        if early && listens && self.tally.count_of("refusals") == refused {
            assert_eq!(receivers, [conn], "early notifications of {worker} reach the client first");
        }
    }

    /// Some workers number their sessions from 1, so their ids collide.
    pub(super) fn new_session_id(&mut self, worker: WorkerId) -> String {
        self.next_number += 1;
        if self.rng.chance(5) { "1".to_owned() } else { format!("{worker}-{}", self.next_number) }
    }

    pub(super) fn worker_notifies(&mut self, worker: WorkerId) {
        let known: Vec<String> = self.workers[&worker].sessions.iter().cloned().collect();
        let bound = self.affinity(worker) == SessionAffinity::Connection;
        self.next_number += 1;
        let mut params = json!({ "n": self.next_number, "pad": "x".repeat(self.rng.index(200)) });
        let session = if known.is_empty() || (bound && self.rng.chance(30)) {
            if !bound {
                return;
            }
            None
        } else {
            Some(known[self.rng.index(known.len())].clone())
        };
        if let Some(session) = &session {
            params["sessionId"] = session.as_str().into();
        }
        let frame = Frame::notification("session/update", &params.to_string());
        self.check_notification(
            worker,
            session.as_deref(),
            BusInput::WorkerSentFrame { worker, frame },
        );
    }

    /// Sends a notification of a session before the response that opens it.
    pub(super) fn worker_notifies_early(&mut self, worker: WorkerId) {
        let is_open =
            |it: &WorkerTask| it.message["method"] == "session/new" && it.session.is_none();
        let Some(at) = self.workers[&worker].tasks.iter().position(is_open) else { return };
        self.next_number += 1;
        let name = format!("{worker}-{}", self.next_number);
        let it = self.workers.get_mut(&worker).expect("picked");
        it.tasks[at].session = Some(name.clone());
        let params = json!({ "sessionId": name, "n": self.next_number });
        let frame = Frame::notification("session/update", &params.to_string());
        self.check_notification(worker, Some(&name), BusInput::WorkerSentFrame { worker, frame });
    }

    pub(super) fn worker_asks(&mut self, worker: WorkerId) {
        let known: Vec<String> = self.workers[&worker].sessions.iter().cloned().collect();
        if known.is_empty() {
            return;
        }
        self.next_number += 1;
        let ask = self.next_number;
        let session = known[self.rng.index(known.len())].clone();
        let params = json!({ "sessionId": session, "ask": ask });
        self.expectations.worker_requests.insert((worker, ask), ConnId(0));
        let frame =
            Frame::request(&ask.to_string(), "session/request_permission", &params.to_string());
        self.feed_input(BusInput::WorkerSentFrame { worker, frame });
    }

    pub(super) fn worker_exits(&mut self) {
        if let Some(worker) = self.pick_worker() {
            self.end_worker(worker, false);
        }
    }

    pub(super) fn end_worker(&mut self, worker: WorkerId, clean: bool) {
        let it = self.workers.remove(&worker).expect("picked");
        self.expectations.forget_worker(worker);
        let exit = Exit {
            status: "ended".to_owned(),
            stderr: String::new(),
            started: it.started,
            shortage: false,
        };
        self.feed_input(BusInput::WorkerGone { worker, exit, clean });
        let waits =
            self.expectations.open_requests.values().filter(|it| it.worker == Some(worker)).count();
        assert_eq!(waits, 0, "requests to {worker} were not answered with its end");
    }
}
