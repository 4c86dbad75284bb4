//! Runs the steps of a scenario against the hub in a perfect world: appends are durable at once, reads are answered at
//! once, and nothing happens that the text does not mention.

use super::{
    daemon_settings::{DaemonSettings, base_config, parse_milliseconds},
    placeholders::PlaceholderValues,
};
use bytes::Bytes;
use jackfield_events::SessionEvent;
use jackfield_hub::{AgentId, ConnId, Exit, Hub, Input, PolicySet, Recovered, SessionId, Time};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub(super) struct ScenarioRunner {
    pub(super) hub: Hub,
    pub(super) now: Time,
    hub_number: u64,
    pub(super) journal: BTreeMap<SessionId, Vec<SessionEvent>>,
    clients: BTreeMap<String, ConnId>,
    pub(super) conns: BTreeMap<ConnId, ClientConnection>,
    agents: BTreeMap<String, AgentId>,
    pub(super) procs: BTreeMap<AgentId, AgentProcess>,
    /// Started processes that the text has not named yet.
    pub(super) started: VecDeque<AgentId>,
    next_conn: u64,
    pub(super) placeholders: PlaceholderValues,
    pub(super) stopped: bool,
    settings: DaemonSettings,
    /// Sessions that the hub has released.
    pub(super) released: BTreeSet<SessionId>,
}

#[derive(Default)]
pub(super) struct ClientConnection {
    pub(super) unread: VecDeque<Bytes>,
    /// Bytes that are not written because the client does not read.
    pub(super) unwritten: usize,
    pub(super) stopped_reading: bool,
    pub(super) closed: bool,
}

#[derive(Default)]
pub(super) struct AgentProcess {
    pub(super) unread: VecDeque<Bytes>,
    pub(super) stop_requested: bool,
}

impl ScenarioRunner {
    pub(super) fn new() -> ScenarioRunner {
        let now = Time(1_700_000_000_000);
        ScenarioRunner {
            hub: Hub::new(base_config(0), now, []),
            now,
            hub_number: 0,
            journal: BTreeMap::new(),
            clients: BTreeMap::new(),
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            procs: BTreeMap::new(),
            started: VecDeque::new(),
            next_conn: 0,
            placeholders: PlaceholderValues::default(),
            stopped: false,
            settings: DaemonSettings::default(),
            released: BTreeSet::new(),
        }
    }

    /// Runs one line of a scenario.
    pub(super) fn run_step(&mut self, line: &str, location: &str) {
        if line.starts_with('#') {
            return;
        }
        if let Some((party, text)) = line.split_once(" -> ") {
            return self.send_message(party.trim(), text.trim(), location);
        }
        if let Some((party, text)) = line.split_once(" <- ") {
            return self.expect_message(party.trim(), text.trim(), false, location);
        }
        if let Some((party, text)) = line.split_once(" <= ") {
            return self.expect_message(party.trim(), text.trim(), true, location);
        }
        if let Some(rules) = line.strip_prefix("policy ") {
            let user = jackfield_policy::parse_policy(rules, "policy.toml");
            let user = user.unwrap_or_else(|flaws| panic!("{location}: {flaws:?}"));
            let policies = Arc::new(PolicySet { user, ..PolicySet::default() });
            return self.feed_input(Input::PolicyChanged { policies });
        }
        if let Some(rule) = line.strip_prefix("daemon config: ") {
            assert!(self.conns.is_empty(), "{location}: settings come before the first connection");
            self.settings
                .apply_setting(rule)
                .unwrap_or_else(|| panic!("{location}: unknown setting `{rule}`"));
            self.hub =
                Hub::new(self.settings.configure(base_config(self.hub_number)), self.now, []);
            return;
        }
        if let Some(time) = line.strip_prefix("after ") {
            return self.advance_clock(time, location);
        }
        if let Some(action) = line.strip_prefix("host ") {
            return self.run_host_step(action, location);
        }
        match line {
            "daemon restarts" => self.restart_daemon(),
            "machine is short of memory" => self.feed_input(Input::Pressure),
            "daemon stops" => {
                self.feed_input(Input::Stop);
            }
            "daemon has stopped" => {
                assert!(self.stopped, "{location}: the daemon has not stopped");
            }
            _ => self.run_event(line, location),
        }
    }

    /// An event of one party: `editor leaves`.
    fn run_event(&mut self, line: &str, location: &str) {
        let (party, what) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "connects" => self.connect_client(party),
            "starts" => {
                let agent = self.started.pop_front();
                let agent = agent.unwrap_or_else(|| panic!("{location}: nothing was started"));
                self.agents.insert(party.to_owned(), agent);
                self.feed_input(Input::AgentStarted { agent, pid: 1 });
            }
            "is stopped" => {
                let agent = self.find_agent(party, location);
                assert!(
                    self.procs[&agent].stop_requested,
                    "{location}: {party} was not asked to stop"
                );
                self.exit_agent(agent, "exit status 0", "");
            }
            "receives nothing" => {
                let received = self.unread_messages(party, location).front().cloned();
                assert!(received.is_none(), "{location}: {party} received {received:?}");
            }
            _ if what.starts_with("dies ") => {
                let agent = self.find_agent(party, location);
                let words: Vec<&str> = what.split('"').collect();
                let (status, stderr) = (words.get(1), words.get(3));
                let status =
                    status.unwrap_or_else(|| panic!("{location}: an exit status is missing"));
                self.exit_agent(agent, status, stderr.copied().unwrap_or_default());
            }
            _ => self.run_client_event(party, what, location),
        }
    }

    fn run_client_event(&mut self, party: &str, what: &str, location: &str) {
        let conn = self.clients.get(party).copied();
        let conn = conn.unwrap_or_else(|| panic!("{location}: `{party} {what}` is not a step"));
        match what {
            "leaves" => {
                self.clients.remove(party);
                self.conns.remove(&conn);
                self.feed_input(Input::ClientGone { conn });
            }
            "finishes" => self.feed_input(Input::ClientFinished { conn }),
            "is disconnected" => {
                let it = &self.conns[&conn];
                assert!(
                    it.closed && it.unread.is_empty(),
                    "{location}: {party} is still connected"
                );
                self.clients.remove(party);
                self.conns.remove(&conn);
            }
            "stops reading" => self.conns.get_mut(&conn).expect("open").stopped_reading = true,
            "reads again" => {
                let it = self.conns.get_mut(&conn).expect("open");
                it.stopped_reading = false;
                let bytes = std::mem::take(&mut it.unwritten);
                self.feed_input(Input::ClientWrote { conn, bytes });
            }
            _ => panic!("{location}: `{party} {what}` is not a step"),
        }
    }

    fn connect_client(&mut self, party: &str) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        self.clients.insert(party.to_owned(), conn);
        self.conns.insert(conn, ClientConnection::default());
        self.feed_input(Input::ClientOpened { conn, peer: None });
    }

    fn exit_agent(&mut self, agent: AgentId, status: &str, stderr: &str) {
        self.procs.remove(&agent);
        self.agents.retain(|_, it| *it != agent);
        let exit =
            Exit { status: status.into(), stderr: stderr.into(), started: true, shortage: false };
        self.feed_input(Input::AgentGone { agent, exit });
    }

    fn find_agent(&self, party: &str, location: &str) -> AgentId {
        *self.agents.get(party).unwrap_or_else(|| panic!("{location}: unknown agent {party}"))
    }

    fn send_message(&mut self, party: &str, text: &str, location: &str) {
        let text = self.placeholders.fill_text(text);
        if let Some(&conn) = self.clients.get(party) {
            return match Frame::parse(text.into()) {
                Ok(frame) => self.feed_input(Input::ClientSpoke { conn, frame }),
                Err(error) => {
                    self.feed_input(Input::ClientSentInvalidFrame {
                        conn,
                        fault: Fault::from(error),
                    });
                }
            };
        }
        let agent = self.find_agent(party, location);
        let frame = Frame::parse(text.into()).unwrap_or_else(|error| panic!("{location}: {error}"));
        self.feed_input(Input::AgentSpoke { agent, frame });
    }

    fn unread_messages(&mut self, party: &str, location: &str) -> &mut VecDeque<Bytes> {
        if let Some(conn) = self.clients.get(party) {
            return &mut self.conns.get_mut(conn).expect("connected").unread;
        }
        let agent = self.find_agent(party, location);
        &mut self.procs.get_mut(&agent).expect("running").unread
    }

    fn expect_message(&mut self, party: &str, text: &str, exactly: bool, location: &str) {
        let text = self.placeholders.fill_text(text);
        let received = self.unread_messages(party, location).pop_front();
        let received = received.unwrap_or_else(|| panic!("{location}: {party} received nothing"));
        let received = String::from_utf8_lossy(&received).into_owned();
        if exactly {
            assert_eq!(received, text, "{location}");
            return;
        }
        let expected: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{location}: {error}"));
        let message: Value = serde_json::from_str(&received).expect("the hub sends JSON");
        let matches = self.placeholders.matches(&expected, &message);
        assert!(matches, "{location}: {party} received\n  {received}\nand not\n  {text}");
    }

    fn advance_clock(&mut self, time: &str, location: &str) {
        let ms = parse_milliseconds(time).unwrap_or_else(|| panic!("{location}: invalid duration"));
        let until = self.now.plus(ms);
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed_input(Input::Tick);
        }
        self.now = until;
    }

    /// Kills the daemon with its agents and starts it again on the same journal.
    fn restart_daemon(&mut self) {
        self.clients.clear();
        self.conns.clear();
        self.agents.clear();
        self.procs.clear();
        self.started.clear();
        self.hub_number += 1;
        let recovered = self.journal.keys().map(|session| {
            let state = self.fold_session(session);
            Recovered { session: session.clone(), state }
        });
        let config = self.settings.configure(base_config(self.hub_number));
        self.hub = Hub::new(config, self.now, recovered.collect::<Vec<_>>());
        self.drain_outputs();
    }

    pub(super) fn feed_input(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        self.drain_outputs();
    }

    /// Checks at the end that the scenario mentioned everything that happened.
    pub(super) fn finish(self, location: &str) {
        for (party, conn) in &self.clients {
            let received = &self.conns[conn].unread;
            assert!(received.is_empty(), "after {location}: {party} also received {received:?}");
        }
        for (party, agent) in &self.agents {
            let AgentProcess { unread, stop_requested } = &self.procs[agent];
            assert!(unread.is_empty(), "after {location}: {party} also received {unread:?}");
            assert!(!stop_requested, "after {location}: {party} was asked to stop");
        }
        assert!(
            self.started.is_empty(),
            "after {location}: a process was started and not mentioned"
        );
    }
}
