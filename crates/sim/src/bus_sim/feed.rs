//! Feeds inputs into the bus and checks its outputs.

use super::world::{BusClient, BusWorker, BusWorld, QueuedLine, WorkerTask};
use jackfield_bus::routing::{BusInput, BusOutput, OUTBOX_FACTOR_MAX, SessionAffinity, WorkerId};
use jackfield_hub::{ConnId, Time};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

/// The number of lines in a trace.
const TRACE_MAX: usize = 60;
/// The error codes of the bus.
const REFUSALS: [i64; 8] = [-32603, -31002, -31003, -31007, -31011, -31012, -32700, -32600];

impl BusWorld {
    /// Feeds one input, checks the outputs, and returns the clients that received a notification.
    pub(super) fn feed_input(&mut self, input: BusInput) -> Vec<ConnId> {
        self.note_trace(|now| format!("{now} > {input:?}"));
        self.bus.handle(Time(self.now), input);
        self.drain_outputs()
    }

    pub(super) fn drain_outputs(&mut self) -> Vec<ConnId> {
        let mut receivers = Vec::new();
        while let Some(output) = self.bus.poll_output() {
            self.note_trace(|now| format!("{now} < {output:?}"));
            match output {
                BusOutput::SendToClient { conn, text } => {
                    let message: Value = serde_json::from_slice(&text).expect("JSON");
                    let client = self.clients.get_mut(&conn).expect("a known client");
                    assert!(!client.closing, "{conn} receives a message after it was closed");
                    client.queue.push_back(text.len());
                    receivers.extend(self.on_client_message(conn, &message));
                }
                BusOutput::SendToWorker { worker, text } => self.on_worker_message(worker, &text),
                BusOutput::SpawnWorker { worker, pool, .. } => {
                    self.tally.count("workers started");
                    self.expectations.workers.insert(worker, pool);
                    self.workers.insert(worker, BusWorker::default());
                }
                BusOutput::StopWorker { worker, .. } => {
                    self.expectations.stopping.insert(worker);
                    self.workers.get_mut(&worker).expect("a known worker").stopping = true;
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
        self.check_limits();
        receivers
    }

    fn note_trace(&mut self, line: impl Fn(u64) -> String) {
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
        let it = self.workers.get_mut(&worker).expect("a known worker");
        assert_ne!(it.paused, paused, "{worker} is paused or resumed twice");
        it.paused = paused;
    }

    fn pause_client(&mut self, conn: ConnId, paused: bool) {
        let it = self.clients.get_mut(&conn).expect("a known client");
        assert_ne!(it.paused, paused, "{conn} is paused or resumed twice");
        it.paused = paused;
    }

    fn on_closed(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("a known client");
        client.closing = true;
        let owed = self.expectations.open_requests.keys().any(|(it, _)| *it == conn);
        let slow = !client.queue.is_empty();
        assert!(!owed || !client.finished || slow, "{conn} is closed without its answers");
        self.expectations.forget_client(conn);
        self.tally.count("clients closed");
    }

    /// A client receives a message; returns its connection if that is a notification.
    fn on_client_message(&mut self, conn: ConnId, message: &Value) -> Option<ConnId> {
        let client = self.clients.get_mut(&conn).expect("a known client");
        if message["method"] == "$/cancel_request" {
            let bus_id = message["params"]["requestId"].as_u64().expect("a request id of the bus");
            assert!(client.open_asks.remove(&bus_id).is_some(), "{conn} has no ask {bus_id}");
            return None;
        }
        if message.get("method").is_some() {
            let Some(bus_id) = message["id"].as_u64() else { return Some(conn) };
            let ask = message["params"]["ask"].as_u64().expect("the number of an ask");
            assert!(client.open_asks.insert(bus_id, ask).is_none(), "{bus_id} is used twice");
            self.tally.count("asks");
            return None;
        }
        if message["id"].is_null() {
            assert_eq!(message["error"]["code"].as_i64().map(|it| it < -31_000), Some(true));
            return None;
        }
        self.on_response(conn, message);
        None
    }

    /// A response belongs to an open request, and there is only one.
    fn on_response(&mut self, conn: ConnId, message: &Value) {
        let id = parse_id(&message["id"]);
        let asked = self.expectations.open_requests.remove(&(conn, id));
        let asked = asked.unwrap_or_else(|| panic!("{conn} has no open request {id}"));
        if let Some(code) = message["error"]["code"].as_i64() {
            let is_worker_error = message["error"]["message"] == "theirs";
            assert!(is_worker_error || REFUSALS.contains(&code), "{message}");
            self.tally.count(if is_worker_error { "errors of workers" } else { "refusals" });
            return;
        }
        self.tally.count("answers");
        let worker = asked.worker.expect("the worker received the request");
        assert_eq!(
            message["result"]["token"],
            unique_token(conn, id),
            "the response belongs to another request"
        );
        let affinity = self.affinity(worker);
        if let Some(session) = message["result"]["sessionId"].as_str() {
            self.expectations.note_session_use(conn, session, worker, affinity);
            self.clients.get_mut(&conn).expect("found above").sessions.push(session.to_owned());
        }
    }

    /// A worker receives a message.
    fn on_worker_message(&mut self, worker: WorkerId, text: &[u8]) {
        let message: Value = serde_json::from_slice(text).expect("JSON");
        let affinity = self.affinity(worker);
        let it = self.workers.get_mut(&worker).expect("a known worker");
        let line = QueuedLine { bytes: text.len() + 1, message: message.clone() };
        it.queue.push_back(line);
        if message.get("method").is_none() {
            let ask = parse_id(&message["id"]);
            let known = self.expectations.worker_requests.remove(&(worker, ask));
            assert!(known.is_some(), "{worker} has no open request {ask}");
            let answer = &message["result"]["ask"];
            assert!(answer.is_null() || *answer == ask, "the answer belongs to another request");
            return;
        }
        let Some(token) = message["params"]["token"].as_u64() else { return };
        let (conn, id) = (ConnId(token >> 32), token & u64::from(u32::MAX));
        if message.get("id").is_some() {
            let asked =
                self.expectations.open_requests.get_mut(&(conn, id)).expect("the request is open");
            assert_eq!(asked.worker.replace(worker), None, "request {id} of {conn} is sent twice");
        }
        self.expectations.note_arrival(conn, worker, id);
        if affinity == SessionAffinity::Connection {
            let pool = self.expectations.workers[&worker].clone();
            let was =
                self.expectations.bound_workers.insert((conn, pool), worker).unwrap_or(worker);
            let stays = was == worker || self.expectations.stopping.contains(&was);
            assert!(stays, "{conn} is bound to both {was} and {worker}");
        }
        for session in [&message["sessionId"], &message["params"]["sessionId"]] {
            if let Some(session) = session.as_str() {
                self.expectations.note_session_use(conn, session, worker, affinity);
            }
        }
    }

    pub(super) fn affinity(&self, worker: WorkerId) -> SessionAffinity {
        self.affinities[&self.expectations.workers[&worker]]
    }

    /// A worker sends a notification of a session, or of none: exactly the right clients receive it.
    pub(super) fn check_notification(
        &mut self,
        worker: WorkerId,
        session: Option<&str>,
        input: BusInput,
    ) {
        let affinity = self.affinity(worker);
        let expected = self.expectations.expected_receivers(worker, session, affinity);
        let expected: BTreeSet<ConnId> = expected
            .into_iter()
            .filter(|it| self.clients.get(it).is_some_and(|it| !it.closing))
            .collect();
        let receivers = self.feed_input(input);
        let distinct: BTreeSet<ConnId> = receivers.iter().copied().collect();
        assert_eq!(receivers.len(), distinct.len(), "a client received a notification twice");
        assert_eq!(distinct, expected, "receivers of a notification of {worker} in {session:?}");
        self.tally.count_all("notifications delivered", receivers.len() as u64);
    }

    fn check_limits(&self) {
        for (conn, client) in &self.clients {
            let unread: usize = client.queue.iter().sum();
            // Messages that were in flight when its workers were paused, and a response to each request.
            let calls = self.limits.pending_max + client.sent_since_pause;
            let slack = 400 * (self.workers.len() + 2 + calls);
            let bytes_max = OUTBOX_FACTOR_MAX * self.limits.outbox_bytes_max + slack;
            assert!(
                unread <= bytes_max,
                "{conn} has {unread} bytes waiting, more than {bytes_max}"
            );
        }
        for (pool, workers_max) in &self.workers_max {
            let of_pool = self.expectations.workers.values().filter(|it| *it == pool).count();
            assert!(of_pool <= *workers_max, "{of_pool} workers in `{pool}`, not {workers_max}");
        }
    }
}

/// A number that is unique to this request.
pub(super) fn unique_token(conn: ConnId, id: u64) -> u64 {
    conn.0 << 32 | id
}

/// An id that is written as a number or as a string.
pub(super) fn parse_id(id: &Value) -> u64 {
    let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    text.parse().expect("simulated ids are numbers")
}

impl BusClient {
    /// Reads up to this many messages and returns their size.
    pub(super) fn read(&mut self, texts: usize) -> usize {
        let texts = texts.min(self.queue.len());
        self.queue.drain(..texts).sum()
    }
}

impl BusWorker {
    /// Reads up to this many lines and queues the requests among them.
    pub(super) fn read(&mut self, lines: usize) -> usize {
        let lines = lines.min(self.queue.len());
        let taken: VecDeque<QueuedLine> = self.queue.drain(..lines).collect();
        let bytes = taken.iter().map(|it| it.bytes).sum();
        for QueuedLine { message, .. } in taken {
            let is_request = message.get("method").is_some() && message.get("id").is_some();
            for session in [&message["sessionId"], &message["params"]["sessionId"]] {
                self.sessions.extend(session.as_str().map(str::to_owned));
            }
            if is_request {
                self.tasks.push(WorkerTask { message, session: None });
            }
        }
        bytes
    }
}
