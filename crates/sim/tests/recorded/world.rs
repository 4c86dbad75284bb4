//! The world a recording is replayed in: the hub, a journal in memory that is always ready, and the
//! clock of the recording.

use bytes::Bytes;
use jackfield_events::{EventBody, RawJson, SessionEvent, SessionOpened, SessionSummary};
use jackfield_hub::{
    AgentId, Config, ConnId, Exit, Hub, Input, Launch, Output, Recovered, SessionId, Time, limits,
};
use jackfield_protocol::{Fault, Frame};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

/// The one agent this world knows.
pub(crate) const AGENT: &str = "recorded";

const DAWN: Time = Time(1_700_000_000_000);

pub(crate) struct World {
    hub: Hub,
    now: Time,
    pub(crate) journal: BTreeMap<SessionId, Vec<SessionEvent>>,
    clients: BTreeMap<ConnId, VecDeque<String>>,
    /// The process that runs, and what it has heard.
    agent: Option<AgentId>,
    told_agent: VecDeque<String>,
}

impl World {
    pub(crate) fn new() -> World {
        World::on(BTreeMap::new())
    }

    /// A world in which the session `ours` was opened earlier, by an agent that is gone.
    pub(crate) fn after(ours: &SessionId, theirs: &str, params: &str) -> World {
        let body = EventBody::Opened(SessionOpened {
            agent: AGENT.into(),
            argv: vec![AGENT.to_owned()],
            cwd: "/user/project".to_owned(),
            params: RawJson::trusted(params.to_owned()),
            agent_session: theirs.into(),
            setup: RawJson::null(),
            fallback: None,
        });
        let opened = SessionEvent { seq: jackfield_hub::Seq(1), at: DAWN, body };
        World::on(BTreeMap::from([(ours.clone(), vec![opened])]))
    }

    fn on(journal: BTreeMap<SessionId, Vec<SessionEvent>>) -> World {
        let argv = vec![AGENT.to_owned()];
        let launch = Launch { name: AGENT.into(), argv, cwd: PathBuf::new(), env: None };
        let config = Config {
            agents: BTreeMap::from([(AGENT.into(), launch)]),
            default_agent: Some(AGENT.into()),
            ..Config::default()
        };
        let recovered: Vec<Recovered> = journal
            .iter()
            .map(|(session, events)| Recovered { session: session.clone(), state: fold(events) })
            .collect();
        World {
            hub: Hub::new(config, DAWN, recovered),
            now: DAWN,
            journal,
            clients: BTreeMap::new(),
            agent: None,
            told_agent: VecDeque::new(),
        }
    }

    /// Lets the time pass until so long after the agent was started.
    pub(crate) fn pass(&mut self, ms: u64) {
        let until = self.now.max(DAWN.plus(ms));
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        let conn = ConnId(self.clients.len() as u64 + 1);
        self.clients.insert(conn, VecDeque::new());
        self.feed(Input::ClientOpened { conn, peer: None });
        conn
    }

    pub(crate) fn client_says(&mut self, conn: ConnId, text: &str) {
        self.feed(Input::ClientSpoke { conn, frame: Frame::parse_str(text).expect("a message") });
    }

    pub(crate) fn agent_says(&mut self, text: &str, place: &str) {
        let frame = Frame::parse_str(text).unwrap_or_else(|error| panic!("{place}: {error}"));
        let agent = self.agent.unwrap_or_else(|| panic!("{place}: no agent was started"));
        self.feed(Input::AgentSpoke { agent, frame });
    }

    /// The agent ends as it should.
    pub(crate) fn agent_ends(&mut self) {
        let Some(agent) = self.agent.take() else { return };
        let exit = Exit {
            status: "exit status 0".into(),
            stderr: String::new(),
            started: true,
            shortage: false,
        };
        self.feed(Input::AgentGone { agent, exit });
    }

    /// What a client hears next.
    pub(crate) fn client_hears(&mut self, conn: ConnId, place: &str) -> String {
        let heard = self.clients.get_mut(&conn).and_then(VecDeque::pop_front);
        heard.unwrap_or_else(|| panic!("{place}: the client hears nothing"))
    }

    pub(crate) fn agent_hears(&mut self, place: &str) -> String {
        self.told_agent.pop_front().unwrap_or_else(|| panic!("{place}: the agent hears nothing"))
    }

    /// Whether this request waits for the agent to look at it.
    pub(crate) fn agent_was_told(&self, method: &str) -> bool {
        let method = format!(r#""{method}""#);
        self.told_agent.iter().any(|it| it.contains(&method))
    }

    pub(crate) fn all_is_heard_by_client(&self, place: &str) {
        for (conn, heard) in &self.clients {
            assert!(heard.is_empty(), "{place}: client {} also hears {heard:#?}", conn.0);
        }
    }

    pub(crate) fn all_is_heard(&self, place: &str) {
        self.all_is_heard_by_client(place);
        let told = &self.told_agent;
        assert!(told.is_empty(), "{place}: the agent also hears {told:#?}");
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.hub.handle(self.now, input);
            while let Some(output) = self.hub.poll_output() {
                inputs.extend(self.carry_out(output));
            }
        }
    }

    fn carry_out(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Append { session, event, .. } => {
                let upto = event.seq;
                let mut line = Vec::new();
                event.encode(&mut line);
                let read = SessionEvent::decode(upto, &Bytes::from(line))
                    .expect("what is written is read");
                assert_eq!(read, event, "the journal gives back what it was given");
                self.journal.entry(session.clone()).or_default().push(read);
                return Some(Input::Durable { session, upto });
            }
            Output::Read { conn, session, after } => {
                let log = self.journal.get(&session).into_iter().flatten();
                let events = log.filter(|it| after < it.seq).take(limits::READ_EVENTS_MAX);
                let events = events.cloned().collect();
                return Some(Input::Read { conn, session, after, events });
            }
            Output::Serve { agent, frame, .. } => {
                let why = "there are no files here".to_owned();
                let id = frame.id().expect("a request has an id");
                let frame = Frame::error_for(id, &Fault::Internal { why });
                return Some(Input::Served { agent, frame });
            }
            Output::ToClient { conn, text } => {
                let bytes = text.len();
                let text = String::from_utf8(text.to_vec()).expect("the hub speaks UTF-8");
                self.clients.get_mut(&conn).expect("connected").push_back(text);
                return Some(Input::ClientWrote { conn, bytes });
            }
            Output::Spawn { agent, .. } => {
                assert!(self.agent.is_none(), "one process is enough");
                self.agent = Some(agent);
                return Some(Input::AgentStarted { agent, pid: 1 });
            }
            Output::ToAgent { agent, text } => {
                assert_eq!(self.agent, Some(agent), "only the living are spoken to");
                let text = String::from_utf8(text.to_vec()).expect("the hub speaks UTF-8");
                self.told_agent.push_back(text);
            }
            Output::Note(_)
            | Output::EndTools { .. }
            | Output::Summarize { .. }
            | Output::LetGone { .. } => {}
            other => panic!("nothing in a recording asks for {other:?}"),
        }
        None
    }
}

/// What the events say of their session.
pub(crate) fn fold(events: &[SessionEvent]) -> SessionSummary {
    let mut state = SessionSummary::default();
    for event in events {
        state.fold(event);
    }
    state
}
