//! Feeds inputs into the gateway and checks its outputs.

use super::{
    log::position_of,
    world::{GatewayWorld, HostConnection},
};
use jackfield_events::HostId;
use jackfield_fleet::gateway::{GatewayInput, GatewayOutput, HostConnectionId};
use jackfield_hub::{ConnId, Time};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of lines in a trace.
const TRACE_MAX: usize = 80;
/// The longest frame in these worlds.
const FRAME_BYTES: usize = 400;

impl GatewayWorld {
    pub(super) fn feed_input(&mut self, input: GatewayInput) {
        self.note_trace(|now| format!("{now} > {input:?}"));
        self.gateway.handle(Time(self.now), input);
        while let Some(output) = self.gateway.poll_output() {
            self.note_trace(|now| format!("{now} < {output:?}"));
            self.on_output(output);
        }
        self.check_limits();
    }

    fn note_trace(&mut self, line: impl Fn(u64) -> String) {
        if self.traced {
            self.trace.push_back(line(self.now));
            if TRACE_MAX < self.trace.len() {
                self.trace.pop_front();
            }
        }
    }

    fn on_output(&mut self, output: GatewayOutput) {
        match output {
            GatewayOutput::SendToClient { conn, text } => {
                let client = self.clients.get_mut(&conn).expect("a known client");
                assert!(!client.closing, "{conn} receives a message after it was closed");
                client.queue.push_back(text.len());
                let message: Value = serde_json::from_slice(&text).expect("JSON");
                self.on_client_message(conn, &message);
            }
            // Messages to a host that is lost without notice disappear.
            GatewayOutput::SendToHost { host_conn, text } => {
                if let Some(it) = self.host_conns.get_mut(&host_conn) {
                    it.inbox.push_back(text);
                }
            }
            GatewayOutput::OpenHostConnection { host_conn, host } => {
                self.on_host_conn_opened(host_conn, host);
            }
            GatewayOutput::CloseHostConnection { host_conn } => {
                _ = self.host_conns.remove(&host_conn);
            }
            GatewayOutput::PauseHostConnection { host_conn } => {
                self.pause_host_conn(host_conn, true);
            }
            GatewayOutput::ResumeHostConnection { host_conn } => {
                self.pause_host_conn(host_conn, false);
            }
            GatewayOutput::PauseClient { conn } => self.pause_client(conn, true),
            GatewayOutput::ResumeClient { conn } => self.pause_client(conn, false),
            GatewayOutput::CloseClient { conn } => {
                let client = self.clients.get_mut(&conn).expect("a known client");
                assert!(
                    !client.finished || client.open_requests.is_empty(),
                    "{conn} waits for answers"
                );
                client.closing = true;
            }
            GatewayOutput::LocateSession { session, avoid } => {
                let twice = self.locates.iter().any(|(it, _)| *it == session);
                assert!(!twice, "{session} is looked up twice");
                self.locates.push((session, avoid));
            }
            GatewayOutput::ListSessions { token, .. } => self.lists.push(token),
            GatewayOutput::ReadLog { .. } => unreachable!("no simulated client observes"),
            GatewayOutput::Note(_) | GatewayOutput::ClientAction(_) => {}
            GatewayOutput::Stopped => self.stopped = true,
        }
    }

    fn on_host_conn_opened(&mut self, host_conn: HostConnectionId, host: HostId) {
        let it = HostConnection {
            host,
            tenant: None,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            paused: false,
            has_started: false,
            subscriptions: BTreeSet::new(),
            waiting_turns: BTreeMap::new(),
            open_asks: BTreeMap::new(),
            next_ask: 0,
        };
        self.host_conns.insert(host_conn, it);
        self.tally.count("host connections opened");
    }

    fn pause_host_conn(&mut self, host_conn: HostConnectionId, paused: bool) {
        self.tally.count("pauses");
        if let Some(it) = self.host_conns.get_mut(&host_conn) {
            assert_ne!(it.paused, paused, "{host_conn} is paused or resumed twice");
            it.paused = paused;
        }
    }

    fn pause_client(&mut self, conn: ConnId, paused: bool) {
        let it = self.clients.get_mut(&conn).expect("a known client");
        assert_ne!(it.paused, paused, "{conn} is paused or resumed twice");
        it.paused = paused;
    }

    fn on_client_message(&mut self, conn: ConnId, message: &Value) {
        self.check_tenant(conn, message);
        let client = self.clients.get_mut(&conn).expect("a known client");
        let params = &message["params"];
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("$/cancel_request"), _) => {
                let id = params["requestId"].as_u64().expect("an id of the gateway");
                assert!(client.open_asks.remove(&id).is_some(), "{conn} has no ask {id}");
                self.tally.count("asks withdrawn");
            }
            (Some(_), Some(id)) => {
                let ask = params["ask"].as_u64().expect("the number of an ask");
                assert!(client.open_asks.insert(id, ask).is_none(), "{id} is used twice");
            }
            (Some(method), None) => {
                assert!(!method.ends_with("/moved"), "{conn} receives a notification for gateways");
                self.check_frame_order(conn, params);
            }
            (None, Some(id)) => self.check_response(conn, id, message),
            (None, None) => assert!(message["error"].is_object(), "{message}"),
        }
    }

    fn check_frame_order(&mut self, conn: ConnId, params: &Value) {
        let session = params["sessionId"].as_str().expect("a session");
        let position = position_of(params).expect("a position in its log");
        let positions = &mut self.clients.get_mut(&conn).expect("a known client").positions;
        let due = self.logs[session].next_position(positions.get(session).copied());
        assert_eq!(Some(position), due, "{conn} receives frames of {session} out of order");
        positions.insert(session.to_owned(), position);
        self.tally.count("frames received");
    }

    fn check_response(&mut self, conn: ConnId, id: u64, message: &Value) {
        let client = self.clients.get_mut(&conn).expect("a known client");
        // The refusal of a duplicate id is a response too, but these clients use each id once.
        let asked = client.open_requests.remove(&id);
        let asked = asked.unwrap_or_else(|| panic!("{conn} has no open request {id}"));
        if asked.session.as_ref().is_some_and(|it| !client.can_access(it)) {
            assert!(message["error"].is_object(), "{conn} gets a result for {asked:?}");
            return self.tally.count("foreign requests refused");
        }
        if message["error"].is_object() {
            let name = message["error"]["data"]["jackfield"]["code"].as_str();
            // A stopping host ends soon. Only a request that opens a session may find no other host.
            let of_host = name == Some("stopping") && asked.session.is_some();
            assert!(!of_host || self.stopping, "{conn} receives the error of a stopping host");
            return self.tally.count(match name {
                Some("host_lost") => "answered host_lost",
                Some("interrupted") => "turns interrupted",
                _ => "refusals",
            });
        }
        let result = &message["result"];
        if asked.method != "_jackfield/sessions" {
            assert_eq!(result["token"], asked.token, "the response belongs to another request");
        }
        self.tally.count("answers");
        match (asked.method, &asked.session) {
            ("session/new", _) => {
                let session = result["sessionId"].as_str().expect("a name").to_owned();
                client.attached.insert(session);
            }
            ("session/load", Some(session)) => {
                client.attached.insert(session.clone());
            }
            ("session/prompt", Some(session)) => {
                let end = result["endedAt"].as_u64().expect("a seq");
                let position = client.positions.get(session).copied();
                let next = self.logs[session].next_position(position);
                let all = next.is_none_or(|next| (end, u64::MAX) < next);
                assert!(all, "{conn} receives the end of a turn before its updates");
            }
            _ => {}
        }
    }

    /// Messages to a client only name sessions of its tenant and sessions that it named itself.
    fn check_tenant(&self, conn: ConnId, message: &Value) {
        let client = &self.clients[&conn];
        let about = [&message["params"]["sessionId"], &message["result"]["sessionId"]];
        let rows = message["result"]["sessions"].as_array();
        let rows = rows.into_iter().flatten().map(|it| &it["sessionId"]);
        for named in about.into_iter().chain(rows).filter_map(Value::as_str) {
            assert!(
                client.can_access(named),
                "{conn} of {:?} receives the foreign id {named}",
                client.tenant
            );
        }
    }

    /// A host waits for the answer to each open ask of a client.
    pub(super) fn check_open_asks(&self, conn: ConnId) {
        for ask in self.clients[&conn].open_asks.values() {
            let waits = |it: &HostConnection| it.open_asks.values().any(|(_, it)| it == ask);
            assert!(
                self.host_conns.values().any(waits),
                "{conn} has ask {ask}, and no host waits for it"
            );
        }
    }

    fn check_limits(&self) {
        let gauges = self.gateway.gauges();
        let clients = self.clients.len();
        assert!(gauges.retained_bytes <= clients * (self.limits.retained_bytes_max + FRAME_BYTES));
        assert!(gauges.pending <= clients * self.limits.pending_max);
        assert!(gauges.host_conns <= clients * self.hosts.len());
        for (conn, client) in &self.clients {
            // Each of its host connections may send one more frame before it is paused, and so may the client.
            let slack = FRAME_BYTES * (4 * self.hosts.len() + 3 * self.limits.pending_max);
            let unread: usize = client.queue.iter().sum();
            assert!(unread <= self.limits.outbox_bytes_max + slack, "{conn} has {unread} unread");
        }
    }
}
