//! What workers do: read, answer, tell, ask, end.

use super::world::{Task, World};
use jackfield_bus::routing::{BusInput, SessionAffinity, WorkerId};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::Frame;
use serde_json::json;

impl World {
    pub(super) fn worker_reads(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        let lines = 1 + self.rng.index(6);
        let it = self.workers.get_mut(&worker).expect("picked");
        if !it.started {
            it.started = true;
            self.feed(BusInput::WorkerStarted { worker, pid: 1 });
            return;
        }
        let bytes = it.read(lines);
        if 0 < bytes {
            self.feed(BusInput::WorkerWrote { worker, bytes });
        }
    }

    pub(super) fn worker_speaks(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        if !self.workers[&worker].started || (self.workers[&worker].paused && !self.rng.chance(5)) {
            return;
        }
        match self.rng.below(10) {
            0..=4 => self.worker_answers(worker),
            5..=7 => self.worker_tells(worker),
            8 => self.worker_names_early(worker),
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
            self.feed(BusInput::WorkerSpoke { worker, frame });
            return;
        }
        let early = task.name.is_some();
        let mut result = json!({ "token": task.message["params"]["token"] });
        if task.message["method"] == "session/new" {
            let name = task.name.unwrap_or_else(|| self.new_name(worker));
            self.workers.get_mut(&worker).expect("picked").sessions.insert(name.clone());
            result["sessionId"] = name.into();
        }
        let frame = Frame::result_for(&id, &result.to_string());
        // What was said before comes before the answer, if the one that asked is still there.
        let conn = ConnId(task.message["params"]["token"].as_u64().unwrap_or_default() >> 32);
        let listens = self.clients.get(&conn).is_some_and(|it| !it.closing);
        let refused = self.tally.of("refusals");
        let heard = self.feed(BusInput::WorkerSpoke { worker, frame });
        let is_known = self.clients.contains_key(&conn);
        if task.message["method"] == "session/close" && is_known {
            // Even if the one that closed it is being hung up on.
            let session = task.message["params"]["sessionId"].as_str().expect("it names one");
            let place = self.book.place(worker, self.affinity(worker));
            self.book.sessions.remove(&(place, session.to_owned()));
        }
        if early && listens && self.tally.of("refusals") == refused {
            assert_eq!(heard, [conn], "what {worker} said before its session had a name");
        }
    }

    /// Some workers count their sessions, and so do others.
    pub(super) fn new_name(&mut self, worker: WorkerId) -> String {
        self.next_number += 1;
        if self.rng.chance(5) { "1".to_owned() } else { format!("{worker}-{}", self.next_number) }
    }

    pub(super) fn worker_tells(&mut self, worker: WorkerId) {
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
        self.news(worker, session.as_deref(), BusInput::WorkerSpoke { worker, frame });
    }

    /// It speaks of a session before it has answered the request that opens it.
    pub(super) fn worker_names_early(&mut self, worker: WorkerId) {
        let is_open = |it: &Task| it.message["method"] == "session/new" && it.name.is_none();
        let Some(at) = self.workers[&worker].tasks.iter().position(is_open) else { return };
        self.next_number += 1;
        let name = format!("{worker}-{}", self.next_number);
        let it = self.workers.get_mut(&worker).expect("picked");
        it.tasks[at].name = Some(name.clone());
        let params = json!({ "sessionId": name, "n": self.next_number });
        let frame = Frame::notification("session/update", &params.to_string());
        self.news(worker, Some(&name), BusInput::WorkerSpoke { worker, frame });
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
        self.book.asks.insert((worker, ask), ConnId(0));
        let frame =
            Frame::request(&ask.to_string(), "session/request_permission", &params.to_string());
        self.feed(BusInput::WorkerSpoke { worker, frame });
    }

    pub(super) fn worker_ends(&mut self) {
        if let Some(worker) = self.some_worker() {
            self.end_worker(worker, false);
        }
    }

    pub(super) fn end_worker(&mut self, worker: WorkerId, clean: bool) {
        let it = self.workers.remove(&worker).expect("picked");
        self.book.forget_worker(worker);
        let exit = Exit {
            status: "ended".to_owned(),
            stderr: String::new(),
            started: it.started,
            shortage: false,
        };
        self.feed(BusInput::WorkerGone { worker, exit, clean });
        let waits = self.book.asked.values().filter(|it| it.worker == Some(worker)).count();
        assert_eq!(waits, 0, "requests to {worker} were not answered with its end");
    }
}
