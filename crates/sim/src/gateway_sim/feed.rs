//! One input for the gateway, and everything that must be true of what comes out.

use super::{
    log::place_of,
    world::{HostConnection, World},
};
use jackfield_events::HostId;
use jackfield_fleet::gateway::{GatewayInput, GatewayOutput, HostConnectionId};
use jackfield_hub::{ConnId, Time};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a trace keeps.
const TRACE_MAX: usize = 80;
/// The longest frame in these worlds.
const FRAME_BYTES: usize = 400;

impl World {
    pub(super) fn feed(&mut self, input: GatewayInput) {
        self.log(|now| format!("{now} > {input:?}"));
        self.gateway.handle(Time(self.now), input);
        while let Some(output) = self.gateway.poll_output() {
            self.log(|now| format!("{now} < {output:?}"));
            self.on_output(output);
        }
        self.nothing_grows_without_bound();
    }

    fn log(&mut self, line: impl Fn(u64) -> String) {
        if self.traced {
            self.trace.push_back(line(self.now));
            if TRACE_MAX < self.trace.len() {
                self.trace.pop_front();
            }
        }
    }

    fn on_output(&mut self, output: GatewayOutput) {
        match output {
            GatewayOutput::ToClient { conn, text } => {
                let client = self.clients.get_mut(&conn).expect("a client of ours");
                assert!(!client.closing, "{conn} is told something after the end");
                client.queue.push_back(text.len());
                let message: Value = serde_json::from_slice(&text).expect("JSON");
                self.on_told(conn, &message);
            }
            // One that died without a word takes everything.
            GatewayOutput::ToHost { host_conn, text } => {
                if let Some(it) = self.host_conns.get_mut(&host_conn) {
                    it.inbox.push_back(text);
                }
            }
            GatewayOutput::OpenHostConnection { host_conn, host } => {
                self.on_host_conn(host_conn, host);
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
                let client = self.clients.get_mut(&conn).expect("a client of ours");
                assert!(!client.finished || client.asked.is_empty(), "{conn} waits for answers");
                client.closing = true;
            }
            GatewayOutput::Locate { session, avoid } => {
                let twice = self.locates.iter().any(|(it, _)| *it == session);
                assert!(!twice, "{session} is looked for twice");
                self.locates.push((session, avoid));
            }
            GatewayOutput::List { token, .. } => self.lists.push(token),
            GatewayOutput::ReadLog { .. } => unreachable!("no client here only observes"),
            GatewayOutput::Note(_) | GatewayOutput::ClientAction(_) => {}
            GatewayOutput::Stopped => self.stopped = true,
        }
    }

    fn on_host_conn(&mut self, host_conn: HostConnectionId, host: HostId) {
        let it = HostConnection {
            host,
            tenant: None,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            paused: false,
            began: false,
            hears: BTreeSet::new(),
            owed: BTreeMap::new(),
            asks: BTreeMap::new(),
            next_ask: 0,
        };
        self.host_conns.insert(host_conn, it);
        self.tally.count("host connections opened");
    }

    fn pause_host_conn(&mut self, host_conn: HostConnectionId, paused: bool) {
        self.tally.count("pauses");
        if let Some(it) = self.host_conns.get_mut(&host_conn) {
            assert_ne!(it.paused, paused, "{host_conn} is told what it knows");
            it.paused = paused;
        }
    }

    fn pause_client(&mut self, conn: ConnId, paused: bool) {
        let it = self.clients.get_mut(&conn).expect("a client of ours");
        assert_ne!(it.paused, paused, "{conn} is told what it knows");
        it.paused = paused;
    }

    fn on_told(&mut self, conn: ConnId, message: &Value) {
        self.nobody_hears_of_another_tenant(conn, message);
        let client = self.clients.get_mut(&conn).expect("a client of ours");
        let params = &message["params"];
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("$/cancel_request"), _) => {
                let id = params["requestId"].as_u64().expect("an id of the gateway");
                assert!(client.asks.remove(&id).is_some(), "{conn} was never asked {id}");
                self.tally.count("asks withdrawn");
            }
            (Some(_), Some(id)) => {
                let ask = params["ask"].as_u64().expect("a number of ours");
                assert!(client.asks.insert(id, ask).is_none(), "{id} is used twice");
            }
            (Some(method), None) => {
                assert!(!method.ends_with("/moved"), "{conn} hears what is for gateways");
                self.each_frame_is_heard_once_and_in_order(conn, params);
            }
            (None, Some(id)) => self.every_request_has_one_answer(conn, id, message),
            (None, None) => assert!(message["error"].is_object(), "{message}"),
        }
    }

    fn each_frame_is_heard_once_and_in_order(&mut self, conn: ConnId, params: &Value) {
        let session = params["sessionId"].as_str().expect("a session");
        let place = place_of(params).expect("a place in its log");
        let heard = &mut self.clients.get_mut(&conn).expect("a client of ours").heard;
        let due = self.logs[session].after(heard.get(session).copied());
        assert_eq!(Some(place), due, "{conn} hears {session} out of order");
        heard.insert(session.to_owned(), place);
        self.tally.count("frames heard");
    }

    fn every_request_has_one_answer(&mut self, conn: ConnId, id: u64, message: &Value) {
        let client = self.clients.get_mut(&conn).expect("a client of ours");
        // A refused duplicate is an answer too, but these clients use no id twice.
        let asked = client.asked.remove(&id);
        let asked = asked.unwrap_or_else(|| panic!("{conn} did not ask {id}, or was answered"));
        if asked.session.as_ref().is_some_and(|it| !client.may_know(it)) {
            assert!(message["error"].is_object(), "{conn} is answered about {asked:?}");
            return self.tally.count("strangers turned away");
        }
        if message["error"].is_object() {
            let name = message["error"]["data"]["jackfield"]["code"].as_str();
            // Those that are stopping end soon; only who opens something may meet nobody else.
            let of_host = name == Some("stopping") && asked.session.is_some();
            assert!(!of_host || self.stopping, "{conn} is told that a host stops");
            return self.tally.count(match name {
                Some("host_lost") => "answered host_lost",
                Some("interrupted") => "turns interrupted",
                _ => "refusals",
            });
        }
        let result = &message["result"];
        if asked.method != "_jackfield/sessions" {
            assert_eq!(result["token"], asked.token, "the answer to another request");
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
                let heard = client.heard.get(session).copied();
                let next = self.logs[session].after(heard);
                let all = next.is_none_or(|next| (end, u64::MAX) < next);
                assert!(all, "{conn} is told the end of a turn before its words");
            }
            _ => {}
        }
    }

    /// What a client is told names sessions of its tenant only, save for those that it named itself.
    fn nobody_hears_of_another_tenant(&self, conn: ConnId, message: &Value) {
        let client = &self.clients[&conn];
        let about = [&message["params"]["sessionId"], &message["result"]["sessionId"]];
        let rows = message["result"]["sessions"].as_array();
        let rows = rows.into_iter().flatten().map(|it| &it["sessionId"]);
        for named in about.into_iter().chain(rows).filter_map(Value::as_str) {
            assert!(client.may_know(named), "{conn} of {:?} hears of {named}", client.tenant);
        }
    }

    /// Somebody waits for the answer to everything that a client is asked.
    pub(super) fn nobody_is_asked_in_vain(&self, conn: ConnId) {
        for ask in self.clients[&conn].asks.values() {
            let waits = |it: &HostConnection| it.asks.values().any(|(_, it)| it == ask);
            assert!(self.host_conns.values().any(waits), "{conn} is asked {ask}, and nobody waits");
        }
    }

    fn nothing_grows_without_bound(&self) {
        let gauges = self.gateway.gauges();
        let clients = self.clients.len();
        assert!(gauges.kept_bytes <= clients * (self.limits.kept_bytes_max + FRAME_BYTES));
        assert!(gauges.pending <= clients * self.limits.pending_max);
        assert!(gauges.host_conns <= clients * self.hosts.len());
        for (conn, client) in &self.clients {
            // Each of its host connections may say one more thing before it is stopped, and so may the client.
            let slack = FRAME_BYTES * (4 * self.hosts.len() + 3 * self.limits.pending_max);
            let unread: usize = client.queue.iter().sum();
            assert!(unread <= self.limits.outbox_bytes_max + slack, "{conn} has {unread} unread");
        }
    }
}
