//! The world of a replay: the hub, a journal in memory that is always ready, and the clock of the recording.

use bytes::Bytes;
use jackfield_events::{
    EventBody, PromptCapabilities, RawJson, SessionEvent, SessionOpened, SessionSummary,
};
use jackfield_hub::{
    AgentId, Config, ConnId, Exit, Hub, Input, Launch, Output, Recovered, SessionId, Time, limits,
};
use jackfield_protocol::{Fault, Frame};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

/// The only configured agent.
pub(crate) const AGENT: &str = "recorded";

const START_TIME: Time = Time(1_700_000_000_000);

pub(crate) struct ReplayWorld {
    hub: Hub,
    now: Time,
    pub(crate) journal: BTreeMap<SessionId, Vec<SessionEvent>>,
    clients: BTreeMap<ConnId, VecDeque<String>>,
    /// The running process, and its unread messages.
    agent: Option<AgentId>,
    agent_inbox: VecDeque<String>,
}

impl ReplayWorld {
    pub(crate) fn new() -> ReplayWorld {
        ReplayWorld::on(BTreeMap::new())
    }

    /// A world in which the session was opened earlier, by an agent that has exited.
    pub(crate) fn after(session: &SessionId, agent_session: &str, params: &str) -> ReplayWorld {
        let body = EventBody::Opened(SessionOpened {
            agent: AGENT.into(),
            argv: vec![AGENT.to_owned()],
            cwd: "/user/project".to_owned(),
            params: RawJson::trusted(params.to_owned()),
            agent_session: agent_session.into(),
            setup: RawJson::null(),
            variant: None,
            fallback: None,
            sandbox: None,
            prompt_capabilities: PromptCapabilities::default(),
        });
        let opened = SessionEvent { seq: jackfield_hub::Seq(1), at: START_TIME, body };
        ReplayWorld::on(BTreeMap::from([(session.clone(), vec![opened])]))
    }

    fn on(journal: BTreeMap<SessionId, Vec<SessionEvent>>) -> ReplayWorld {
        let argv = vec![AGENT.to_owned()];
        let launch = Launch {
            name: AGENT.into(),
            argv,
            cwd: PathBuf::new(),
            env: None,
            variant: jackfield_hub::VariantChoice::Any,
            sandbox: jackfield_hub::SandboxRequest::default(),
        };
        let config = Config {
            agents: BTreeMap::from([(AGENT.into(), launch)]),
            default_agent: Some(AGENT.into()),
            ..Config::default()
        };
        let recovered: Vec<Recovered> = journal
            .iter()
            .map(|(session, events)| Recovered { session: session.clone(), state: fold(events) })
            .collect();
        ReplayWorld {
            hub: Hub::new(config, START_TIME, recovered),
            now: START_TIME,
            journal,
            clients: BTreeMap::new(),
            agent: None,
            agent_inbox: VecDeque::new(),
        }
    }

    /// Advances the clock to this many milliseconds after the start of the agent.
    pub(crate) fn advance_clock(&mut self, ms: u64) {
        let until = self.now.max(START_TIME.plus(ms));
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed_input(Input::Tick);
        }
        self.now = until;
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        let conn = ConnId(self.clients.len() as u64 + 1);
        self.clients.insert(conn, VecDeque::new());
        self.feed_input(Input::ClientOpened { conn, peer: None });
        conn
    }

    pub(crate) fn client_sends(&mut self, conn: ConnId, text: &str) {
        self.feed_input(Input::ClientSpoke {
            conn,
            frame: Frame::parse_str(text).expect("a message"),
        });
    }

    pub(crate) fn agent_sends(&mut self, text: &str, location: &str) {
        let frame = Frame::parse_str(text).unwrap_or_else(|error| panic!("{location}: {error}"));
        let agent = self.agent.unwrap_or_else(|| panic!("{location}: no agent was started"));
        self.feed_input(Input::AgentSpoke { agent, frame });
    }

    /// The agent exits with status 0.
    pub(crate) fn agent_ends(&mut self) {
        let Some(agent) = self.agent.take() else { return };
        let exit = Exit {
            status: "exit status 0".into(),
            stderr: String::new(),
            started: true,
            shortage: false,
        };
        self.feed_input(Input::AgentGone { agent, exit });
    }

    /// The next message of a client.
    pub(crate) fn client_receives(&mut self, conn: ConnId, location: &str) -> String {
        let received = self.clients.get_mut(&conn).and_then(VecDeque::pop_front);
        received.unwrap_or_else(|| panic!("{location}: the client receives nothing"))
    }

    pub(crate) fn agent_receives(&mut self, location: &str) -> String {
        self.agent_inbox
            .pop_front()
            .unwrap_or_else(|| panic!("{location}: the agent receives nothing"))
    }

    /// Whether the agent has an unread request with this method.
    pub(crate) fn agent_has_unread(&self, method: &str) -> bool {
        let method = format!(r#""{method}""#);
        self.agent_inbox.iter().any(|it| it.contains(&method))
    }

    pub(crate) fn assert_clients_read_all(&self, location: &str) {
        for (conn, received) in &self.clients {
            assert!(
                received.is_empty(),
                "{location}: client {} also receives {received:#?}",
                conn.0
            );
        }
    }

    pub(crate) fn assert_all_read(&self, location: &str) {
        self.assert_clients_read_all(location);
        let unread = &self.agent_inbox;
        assert!(unread.is_empty(), "{location}: the agent also receives {unread:#?}");
    }

    fn feed_input(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.hub.handle(self.now, input);
            while let Some(output) = self.hub.poll_output() {
                inputs.extend(self.execute_output(output));
            }
        }
    }

    fn execute_output(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Append { session, event, .. } => {
                let upto = event.seq;
                let mut line = Vec::new();
                event.encode(&mut line);
                let read = SessionEvent::decode(upto, &Bytes::from(line))
                    .expect("stored events can be decoded");
                assert_eq!(read, event, "the decoded event equals the stored one");
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
                let text = String::from_utf8(text.to_vec()).expect("the hub sends UTF-8");
                self.clients.get_mut(&conn).expect("connected").push_back(text);
                return Some(Input::ClientWrote { conn, bytes });
            }
            Output::Spawn { agent, .. } => {
                assert!(self.agent.is_none(), "a second process is started");
                self.agent = Some(agent);
                return Some(Input::AgentStarted { agent, pid: 1 });
            }
            Output::ToAgent { agent, text } => {
                assert_eq!(self.agent, Some(agent), "a message to an agent that does not run");
                let text = String::from_utf8(text.to_vec()).expect("the hub sends UTF-8");
                self.agent_inbox.push_back(text);
            }
            Output::Note(_)
            | Output::EndTools { .. }
            | Output::Summarize { .. }
            | Output::SessionReleased { .. } => {}
            other => panic!("unexpected output {other:?}"),
        }
        None
    }
}

/// Folds the events into the state of their session.
pub(crate) fn fold(events: &[SessionEvent]) -> SessionSummary {
    let mut state = SessionSummary::default();
    for event in events {
        state.fold(event);
    }
    state
}
