//! One input for the bus, and everything that must be true of what comes out.

use super::world::{Client, Line, Task, Worker, World};
use jackfield_bus::routing::{BusInput, BusOutput, OUTBOX_FACTOR_MAX, SessionAffinity, WorkerId};
use jackfield_hub::{ConnId, Time};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

/// What a trace keeps.
const TRACE_MAX: usize = 60;
/// The codes a client may be refused with.
const REFUSALS: [i64; 8] = [-32603, -31002, -31003, -31007, -31011, -31012, -32700, -32600];

impl World {
    /// Feeds it, checks the outputs, and returns who heard news.
    pub(super) fn feed(&mut self, input: BusInput) -> Vec<ConnId> {
        self.log(|now| format!("{now} > {input:?}"));
        self.bus.handle(Time(self.now), input);
        self.drain()
    }

    pub(super) fn drain(&mut self) -> Vec<ConnId> {
        let mut news = Vec::new();
        while let Some(output) = self.bus.poll_output() {
            self.log(|now| format!("{now} < {output:?}"));
            match output {
                BusOutput::ToClient { conn, text } => {
                    let message: Value = serde_json::from_slice(&text).expect("JSON");
                    let client = self.clients.get_mut(&conn).expect("a client of ours");
                    assert!(!client.closing, "{conn} is told something after the end");
                    client.queue.push_back(text.len());
                    news.extend(self.on_told(conn, &message));
                }
                BusOutput::ToWorker { worker, text } => self.on_asked(worker, &text),
                BusOutput::Spawn { worker, pool, .. } => {
                    self.tally.count("workers started");
                    self.book.workers.insert(worker, pool);
                    self.workers.insert(worker, Worker::default());
                }
                BusOutput::StopWorker { worker, .. } => {
                    self.book.stopping.insert(worker);
                    self.workers.get_mut(&worker).expect("a worker of ours").stopping = true;
                }
                BusOutput::PauseWorker { worker } => self.pause_worker(worker, true),
                BusOutput::ResumeWorker { worker } => self.pause_worker(worker, false),
                BusOutput::PauseClient { conn } => self.pause_client(conn, true),
                BusOutput::ResumeClient { conn } => self.pause_client(conn, false),
                BusOutput::CloseClient { conn } => self.on_closed(conn),
                BusOutput::Note(_) => {}
                BusOutput::Stopped => self.stopped = true,
            }
        }
        self.check_bounds();
        news
    }

    fn log(&mut self, line: impl Fn(u64) -> String) {
        if !self.traced {
            return;
        }
        self.trace.push_back(line(self.now));
        if TRACE_MAX < self.trace.len() {
            self.trace.pop_front();
        }
    }

    fn pause_worker(&mut self, worker: WorkerId, paused: bool) {
        self.tally.count("pauses");
        let it = self.workers.get_mut(&worker).expect("a worker of ours");
        assert_ne!(it.paused, paused, "{worker} is told what it knows");
        it.paused = paused;
    }

    fn pause_client(&mut self, conn: ConnId, paused: bool) {
        let it = self.clients.get_mut(&conn).expect("a client of ours");
        assert_ne!(it.paused, paused, "{conn} is told what it knows");
        it.paused = paused;
    }

    fn on_closed(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("a client of ours");
        client.closing = true;
        let owed = self.book.asked.keys().any(|(it, _)| *it == conn);
        let slow = !client.queue.is_empty();
        assert!(!owed || !client.finished || slow, "{conn} is closed without its answers");
        self.book.forget_client(conn);
        self.tally.count("clients closed");
    }

    /// A client hears something; returns it if that is news.
    fn on_told(&mut self, conn: ConnId, message: &Value) -> Option<ConnId> {
        let client = self.clients.get_mut(&conn).expect("a client of ours");
        if message["method"] == "$/cancel_request" {
            let ours = message["params"]["requestId"].as_u64().expect("an id of the bus");
            assert!(client.asks.remove(&ours).is_some(), "{conn} was never asked {ours}");
            return None;
        }
        if message.get("method").is_some() {
            let Some(ours) = message["id"].as_u64() else { return Some(conn) };
            let ask = message["params"]["ask"].as_u64().expect("a number of ours");
            assert!(client.asks.insert(ours, ask).is_none(), "{ours} is used twice");
            self.tally.count("asks");
            return None;
        }
        if message["id"].is_null() {
            assert_eq!(message["error"]["code"].as_i64().map(|it| it < -31_000), Some(true));
            return None;
        }
        self.on_answer(conn, message);
        None
    }

    /// It asked this, exactly this is answered, and only once.
    fn on_answer(&mut self, conn: ConnId, message: &Value) {
        let id = number(&message["id"]);
        let asked = self.book.asked.remove(&(conn, id));
        let asked = asked.unwrap_or_else(|| panic!("{conn} did not ask {id}, or was answered"));
        if let Some(code) = message["error"]["code"].as_i64() {
            let theirs = message["error"]["message"] == "theirs";
            assert!(theirs || REFUSALS.contains(&code), "{message}");
            self.tally.count(if theirs { "faults of workers" } else { "refusals" });
            return;
        }
        self.tally.count("answers");
        let worker = asked.worker.expect("who answers was asked");
        assert_eq!(message["result"]["token"], token(conn, id), "an answer for somebody else");
        let affinity = self.affinity(worker);
        if let Some(session) = message["result"]["sessionId"].as_str() {
            self.book.used(conn, session, worker, affinity);
            self.clients.get_mut(&conn).expect("found above").sessions.push(session.to_owned());
        }
    }

    /// A worker is handed something.
    fn on_asked(&mut self, worker: WorkerId, text: &[u8]) {
        let message: Value = serde_json::from_slice(text).expect("JSON");
        let affinity = self.affinity(worker);
        let it = self.workers.get_mut(&worker).expect("a worker of ours");
        let line = Line { bytes: text.len() + 1, message: message.clone() };
        it.queue.push_back(line);
        if message.get("method").is_none() {
            let ask = number(&message["id"]);
            let known = self.book.asks.remove(&(worker, ask));
            assert!(known.is_some(), "{worker} did not ask {ask}, or was answered");
            let answer = &message["result"]["ask"];
            assert!(answer.is_null() || *answer == ask, "an answer to another question");
            return;
        }
        let Some(token) = message["params"]["token"].as_u64() else { return };
        let (conn, id) = (ConnId(token >> 32), token & u64::from(u32::MAX));
        if message.get("id").is_some() {
            let asked = self.book.asked.get_mut(&(conn, id)).expect("it was asked");
            assert_eq!(asked.worker.replace(worker), None, "{conn} {id} is asked twice");
        }
        self.book.arrived(conn, worker, id);
        if affinity == SessionAffinity::Connection {
            let pool = self.book.workers[&worker].clone();
            let was = self.book.bound.insert((conn, pool), worker).unwrap_or(worker);
            let stays = was == worker || self.book.stopping.contains(&was);
            assert!(stays, "{conn} is torn between {was} and {worker}");
        }
        for session in [&message["sessionId"], &message["params"]["sessionId"]] {
            if let Some(session) = session.as_str() {
                self.book.used(conn, session, worker, affinity);
            }
        }
    }

    pub(super) fn affinity(&self, worker: WorkerId) -> SessionAffinity {
        self.affinities[&self.book.workers[&worker]]
    }

    /// A worker says something of a session, or of none: exactly those hear it who must.
    pub(super) fn news(&mut self, worker: WorkerId, session: Option<&str>, input: BusInput) {
        let affinity = self.affinity(worker);
        let expected = self.book.audience(worker, session, affinity);
        let expected: BTreeSet<ConnId> = expected
            .into_iter()
            .filter(|it| self.clients.get(it).is_some_and(|it| !it.closing))
            .collect();
        let heard = self.feed(input);
        let told: BTreeSet<ConnId> = heard.iter().copied().collect();
        assert_eq!(heard.len(), told.len(), "news came twice");
        assert_eq!(told, expected, "of {session:?} of {worker}");
        self.tally.count_all("news heard", heard.len() as u64);
    }

    fn check_bounds(&self) {
        for (conn, client) in &self.clients {
            let unread: usize = client.queue.iter().sum();
            // What was under way when its workers were paused, and an answer for all it may ask.
            let calls = self.limits.pending_max + client.said_since_pause;
            let slack = 400 * (self.workers.len() + 2 + calls);
            let most = OUTBOX_FACTOR_MAX * self.limits.outbox_bytes_max + slack;
            assert!(unread <= most, "{conn} has {unread} bytes waiting, more than {most}");
        }
        for (pool, most) in &self.most {
            let of_pool = self.book.workers.values().filter(|it| *it == pool).count();
            assert!(of_pool <= *most, "{of_pool} workers in `{pool}`, not {most}");
        }
    }
}

/// What only this request has.
pub(super) fn token(conn: ConnId, id: u64) -> u64 {
    conn.0 << 32 | id
}

/// An id that is written as a number or as a string.
pub(super) fn number(id: &Value) -> u64 {
    let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    text.parse().expect("ids of ours are numbers")
}

impl Client {
    /// It reads this much.
    pub(super) fn read(&mut self, texts: usize) -> usize {
        let texts = texts.min(self.queue.len());
        self.queue.drain(..texts).sum()
    }
}

impl Worker {
    /// It reads so many lines; what each is goes to what it has to do.
    pub(super) fn read(&mut self, lines: usize) -> usize {
        let lines = lines.min(self.queue.len());
        let taken: VecDeque<Line> = self.queue.drain(..lines).collect();
        let bytes = taken.iter().map(|it| it.bytes).sum();
        for Line { message, .. } in taken {
            let is_request = message.get("method").is_some() && message.get("id").is_some();
            for session in [&message["sessionId"], &message["params"]["sessionId"]] {
                self.sessions.extend(session.as_str().map(str::to_owned));
            }
            if is_request {
                self.tasks.push(Task { message, name: None });
            }
        }
        bytes
    }
}
