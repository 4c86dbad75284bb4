//! Where a scenario is played: the hub in a perfect world. Appends are durable at once, reads are
//! answered at once, and nothing happens that the text does not say.

use super::{
    house::{House, milliseconds},
    matching::Names,
};
use bytes::Bytes;
use jackfield_events::{AgentName, SessionEvent, SessionSummary};
use jackfield_hub::{
    AgentId, Config, ConnId, Exit, Hub, Input, Launch, Output, PolicySet, Recovered, Seq,
    SessionId, Time, limits,
};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::Arc,
};

/// The agents a daemon in a scenario knows; the first is the default.
const AGENTS: [&str; 2] = ["claude", "codex"];

pub(super) struct Stage {
    hub: Hub,
    now: Time,
    lives: u64,
    pub(super) journal: BTreeMap<SessionId, Vec<SessionEvent>>,
    clients: BTreeMap<String, ConnId>,
    conns: BTreeMap<ConnId, Conn>,
    agents: BTreeMap<String, AgentId>,
    procs: BTreeMap<AgentId, Process>,
    /// Started, and not yet given a name by the text.
    started: VecDeque<AgentId>,
    next_conn: u64,
    pub(super) names: Names,
    stopped: bool,
    house: House,
    /// Sessions that it has let go.
    pub(super) let_gone: BTreeSet<SessionId>,
}

#[derive(Default)]
struct Conn {
    heard: VecDeque<Bytes>,
    /// Handed to it and not yet written, because it does not read.
    unwritten: usize,
    deaf: bool,
    gone: bool,
}

#[derive(Default)]
struct Process {
    heard: VecDeque<Bytes>,
    stop_asked: bool,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let now = Time(1_700_000_000_000);
        Stage {
            hub: Hub::new(config(0), now, []),
            now,
            lives: 0,
            journal: BTreeMap::new(),
            clients: BTreeMap::new(),
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            procs: BTreeMap::new(),
            started: VecDeque::new(),
            next_conn: 0,
            names: Names::default(),
            stopped: false,
            house: House::default(),
            let_gone: BTreeSet::new(),
        }
    }

    /// One line of a scenario.
    pub(super) fn play(&mut self, line: &str, place: &str) {
        if line.starts_with('#') {
            return;
        }
        if let Some((who, text)) = line.split_once(" -> ") {
            return self.say(who.trim(), text.trim(), place);
        }
        if let Some((who, text)) = line.split_once(" <- ") {
            return self.expect(who.trim(), text.trim(), false, place);
        }
        if let Some((who, text)) = line.split_once(" <= ") {
            return self.expect(who.trim(), text.trim(), true, place);
        }
        if let Some(rules) = line.strip_prefix("policy ") {
            let user = jackfield_policy::parse_policy(rules, "policy.toml");
            let user = user.unwrap_or_else(|flaws| panic!("{place}: {flaws:?}"));
            let policies = Arc::new(PolicySet { user, ..PolicySet::default() });
            return self.feed(Input::PolicyChanged { policies });
        }
        if let Some(rule) = line.strip_prefix("daemon keeps house: ") {
            assert!(self.conns.is_empty(), "{place}: the house is kept from the beginning");
            self.house.read(rule).unwrap_or_else(|| panic!("{place}: `{rule}` is no rule"));
            self.hub = Hub::new(self.house.configure(config(self.lives)), self.now, []);
            return;
        }
        if let Some(time) = line.strip_prefix("after ") {
            return self.pass(time, place);
        }
        if let Some(deed) = line.strip_prefix("host ") {
            return self.moves(deed, place);
        }
        match line {
            "daemon restarts" => self.restart(),
            "machine is short of memory" => self.feed(Input::Pressure),
            "daemon stops" => {
                self.feed(Input::Stop);
            }
            "daemon has stopped" => {
                assert!(self.stopped, "{place}: the daemon has not stopped");
            }
            _ => self.happens(line, place),
        }
    }

    /// Something happens to somebody: `editor leaves`.
    fn happens(&mut self, line: &str, place: &str) {
        let (who, what) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "connects" => self.connect(who),
            "starts" => {
                let agent = self.started.pop_front();
                let agent = agent.unwrap_or_else(|| panic!("{place}: nothing was started"));
                self.agents.insert(who.to_owned(), agent);
                self.feed(Input::AgentStarted { agent, pid: 1 });
            }
            "is stopped" => {
                let agent = self.agent(who, place);
                assert!(self.procs[&agent].stop_asked, "{place}: {who} was not asked to stop");
                self.bury(agent, "exit status 0", "");
            }
            "hears nothing" => {
                let heard = self.heard(who, place).front().cloned();
                assert!(heard.is_none(), "{place}: {who} heard {heard:?}");
            }
            _ if what.starts_with("dies ") => {
                let agent = self.agent(who, place);
                let words: Vec<&str> = what.split('"').collect();
                let (status, stderr) = (words.get(1), words.get(3));
                let status = status.unwrap_or_else(|| panic!("{place}: how does it die?"));
                self.bury(agent, status, stderr.copied().unwrap_or_default());
            }
            _ => self.happens_to_client(who, what, place),
        }
    }

    fn happens_to_client(&mut self, who: &str, what: &str, place: &str) {
        let conn = self.clients.get(who).copied();
        let conn = conn.unwrap_or_else(|| panic!("{place}: `{who} {what}` means nothing"));
        match what {
            "leaves" => {
                self.clients.remove(who);
                self.conns.remove(&conn);
                self.feed(Input::ClientGone { conn });
            }
            "finishes" => self.feed(Input::ClientFinished { conn }),
            "is hung up on" => {
                let it = &self.conns[&conn];
                assert!(it.gone && it.heard.is_empty(), "{place}: {who} is still connected");
                self.clients.remove(who);
                self.conns.remove(&conn);
            }
            "stops reading" => self.conns.get_mut(&conn).expect("open").deaf = true,
            "reads again" => {
                let it = self.conns.get_mut(&conn).expect("open");
                it.deaf = false;
                let bytes = std::mem::take(&mut it.unwritten);
                self.feed(Input::ClientWrote { conn, bytes });
            }
            _ => panic!("{place}: `{who} {what}` means nothing"),
        }
    }

    fn connect(&mut self, who: &str) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        self.clients.insert(who.to_owned(), conn);
        self.conns.insert(conn, Conn::default());
        self.feed(Input::ClientOpened { conn, peer: None });
    }

    fn bury(&mut self, agent: AgentId, status: &str, stderr: &str) {
        self.procs.remove(&agent);
        self.agents.retain(|_, it| *it != agent);
        let exit =
            Exit { status: status.into(), stderr: stderr.into(), started: true, shortage: false };
        self.feed(Input::AgentGone { agent, exit });
    }

    fn agent(&self, who: &str, place: &str) -> AgentId {
        *self.agents.get(who).unwrap_or_else(|| panic!("{place}: no agent is called {who}"))
    }

    fn say(&mut self, who: &str, text: &str, place: &str) {
        let text = self.names.fill(text);
        if let Some(&conn) = self.clients.get(who) {
            return match Frame::parse(text.into()) {
                Ok(frame) => self.feed(Input::ClientSpoke { conn, frame }),
                Err(error) => {
                    self.feed(Input::ClientSentInvalidFrame { conn, fault: Fault::from(error) });
                }
            };
        }
        let agent = self.agent(who, place);
        let frame = Frame::parse(text.into()).unwrap_or_else(|error| panic!("{place}: {error}"));
        self.feed(Input::AgentSpoke { agent, frame });
    }

    fn heard(&mut self, who: &str, place: &str) -> &mut VecDeque<Bytes> {
        if let Some(conn) = self.clients.get(who) {
            return &mut self.conns.get_mut(conn).expect("connected").heard;
        }
        let agent = self.agent(who, place);
        &mut self.procs.get_mut(&agent).expect("running").heard
    }

    fn expect(&mut self, who: &str, text: &str, exactly: bool, place: &str) {
        let text = self.names.fill(text);
        let heard = self.heard(who, place).pop_front();
        let heard = heard.unwrap_or_else(|| panic!("{place}: {who} heard nothing"));
        let heard = String::from_utf8_lossy(&heard).into_owned();
        if exactly {
            assert_eq!(heard, text, "{place}");
            return;
        }
        let expected: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
        let said: Value = serde_json::from_str(&heard).expect("the hub speaks JSON");
        let matches = self.names.matches(&expected, &said);
        assert!(matches, "{place}: {who} heard\n  {heard}\nand not\n  {text}");
    }

    fn pass(&mut self, time: &str, place: &str) {
        let ms = milliseconds(time).unwrap_or_else(|| panic!("{place}: after what time?"));
        let until = self.now.plus(ms);
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    /// Killed with everything it started, and started again on the same journal.
    fn restart(&mut self) {
        self.clients.clear();
        self.conns.clear();
        self.agents.clear();
        self.procs.clear();
        self.started.clear();
        self.lives += 1;
        let recovered = self.journal.keys().map(|session| {
            let state = self.folded(session);
            Recovered { session: session.clone(), state }
        });
        let config = self.house.configure(config(self.lives));
        self.hub = Hub::new(config, self.now, recovered.collect::<Vec<_>>());
        self.drain();
    }

    pub(super) fn feed(&mut self, input: Input) {
        self.hub.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        let mut inputs = VecDeque::new();
        loop {
            while let Some(output) = self.hub.poll_output() {
                inputs.extend(self.carry_out(output));
            }
            let Some(input) = inputs.pop_front() else { return };
            self.hub.handle(self.now, input);
        }
    }

    fn carry_out(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Append { session, event, .. } => {
                let upto = event.seq;
                let log = self.journal.entry(session.clone()).or_default();
                assert_eq!(Seq(log.len() as u64).next(), upto, "appends follow each other");
                log.push(event);
                return Some(Input::Durable { session, upto });
            }
            Output::Read { conn, session, after } => {
                let log = self.journal.get(&session).into_iter().flatten();
                let events = log.filter(|it| after < it.seq).take(limits::READ_EVENTS_MAX).cloned();
                return Some(Input::Read { conn, session, after, events: events.collect() });
            }
            Output::Recall { session, after } => {
                let log = self.journal.get(&session).into_iter().flatten();
                let events = log.filter(|it| after < it.seq).take(limits::READ_EVENTS_MAX).cloned();
                return Some(Input::Recalled { session, after, events: events.collect() });
            }
            Output::Copy { from, upto, to, last } => {
                let log = self.journal.get(&from).into_iter().flatten();
                let events = log.take_while(|it| it.seq <= upto).map(|it| it.with_session_id(&to));
                let events: Vec<SessionEvent> = events.chain([last]).collect();
                let mut state = SessionSummary::default();
                for event in &events {
                    state.fold(event);
                }
                self.journal.insert(to.clone(), events);
                return Some(Input::Copied { to, state: Box::new(state) });
            }
            Output::Serve { agent, frame, .. } => {
                return Some(Input::Served { agent, frame: served(&frame) });
            }
            Output::Delete { session } => drop(self.journal.remove(&session)),
            Output::ToClient { conn, text } => return self.hear(conn, text),
            Output::CloseClient { conn } => {
                if let Some(it) = self.conns.get_mut(&conn) {
                    it.gone = true;
                }
            }
            Output::Spawn { agent, .. } => {
                self.procs.insert(agent, Process::default());
                self.started.push_back(agent);
            }
            Output::ToAgent { agent, text } => {
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.heard.push_back(text);
                }
            }
            Output::StopAgent { agent, .. } => {
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.stop_asked = true;
                }
            }
            Output::Stopped => self.stopped = true,
            Output::Summarize { session, upto, .. } => {
                return Some(Input::Durable { session, upto });
            }
            Output::LetGone { session } => drop(self.let_gone.insert(session)),
            Output::PauseAgent { .. }
            | Output::ResumeAgent { .. }
            | Output::EndTools { .. }
            | Output::Note(_)
            | Output::StopAsked => {}
        }
        None
    }

    fn hear(&mut self, conn: ConnId, text: Bytes) -> Option<Input> {
        let it = self.conns.get_mut(&conn)?;
        let bytes = text.len();
        it.heard.push_back(text);
        if it.deaf {
            it.unwritten += bytes;
            return None;
        }
        Some(Input::ClientWrote { conn, bytes })
    }

    /// The scenario is over: everything that happened was mentioned.
    pub(super) fn finish(self, place: &str) {
        for (who, conn) in &self.clients {
            let heard = &self.conns[conn].heard;
            assert!(heard.is_empty(), "after {place}: {who} also heard {heard:?}");
        }
        for (who, agent) in &self.agents {
            let Process { heard, stop_asked } = &self.procs[agent];
            assert!(heard.is_empty(), "after {place}: {who} also heard {heard:?}");
            assert!(!stop_asked, "after {place}: {who} was asked to stop");
        }
        assert!(self.started.is_empty(), "after {place}: a process was started");
    }
}

fn config(life: u64) -> Config {
    let launch = |name: &str| {
        let name = AgentName::from(name);
        let argv = vec![name.to_string()];
        (name.clone(), Launch { name, argv, cwd: PathBuf::new(), env: None })
    };
    Config {
        agents: AGENTS.map(launch).into(),
        default_agent: Some(AGENTS[0].into()),
        seed: life,
        ..Config::default()
    }
}

/// What a world without files and terminals answers.
fn served(frame: &Frame) -> Frame {
    let why = "this world has no files".to_owned();
    Frame::error_for(frame.id().expect("a request has an id"), &Fault::Internal { why })
}
