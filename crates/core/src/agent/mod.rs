//! Agent processes: started for a client or a session, spoken to under ids of ours, and buried with
//! an answer for everyone who waited.

mod gone;
mod heard;
mod places;
mod pulse;
mod warm;

pub(crate) use heard::error_of;
pub(crate) use places::Start;
pub(crate) use pulse::Pulse;
pub(crate) use warm::Shape;

use crate::{
    AgentId, ConnId, Hub, Launch, Output, SessionId, limits, peer::agent_hello, session::Way,
    timer::Timer,
};
use jackfield_wire::Frame;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) launch: Launch,
    pub(crate) pid: Option<u32>,
    pub(crate) phase: Phase,
    pub(crate) purpose: Purpose,
    /// The client whose `initialize` is answered with what this agent can do, and its request.
    pub(crate) introduces: Option<(ConnId, Box<str>)>,
    pub(crate) can: Abilities,
    /// What the client it was started for had sent with `initialize`.
    pub(crate) hello: Option<Box<str>>,
    /// What it answered to `initialize`.
    pub(crate) told: Option<Box<str>>,
    pub(crate) pulse: Pulse,
    /// Asked to stop; its end is no surprise.
    pub(crate) stopping: bool,
    /// Its pipe is not read because the journal is behind.
    pub(crate) paused: bool,
    /// Requests sent to it, by our id.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    next_id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Initializing,
    Ready,
}

/// What a process is there for.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// Kept for a client that has not opened a session yet.
    Spare(ConnId),
    /// Serves this session, or is about to.
    Session(SessionId),
    /// Waits for the next session of its shape.
    Warm,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) load: bool,
    pub(crate) resume: bool,
    pub(crate) fork: bool,
}

/// Who waits for an agent's answer.
#[derive(Debug)]
pub(crate) enum Waiting {
    Initialize,
    /// A client's own request. `setting` is kept where the answer makes it a fact of the session.
    Client {
        conn: ConnId,
        id: Box<str>,
        session: Option<SessionId>,
        setting: Option<Frame>,
    },
    New(SessionId),
    /// A session that wakes.
    Reopen(SessionId, Way),
    /// What is set again in a session that wakes.
    Setting(SessionId, String),
    Prompt(SessionId, u64),
}

impl Waiting {
    /// Whether the answer would let a process begin to serve.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self, Waiting::Initialize | Waiting::New(_) | Waiting::Reopen(..))
    }
}

impl Agent {
    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready && !self.stopping
    }

    /// Registers someone who waits, and returns the id to ask under.
    pub(crate) fn expect(&mut self, waiting: Waiting) -> u64 {
        self.next_id += 1;
        self.waiting.insert(self.next_id, waiting);
        self.next_id
    }
}

impl Hub {
    /// Starts a process and says hello to it.
    pub(crate) fn spawn(
        &mut self,
        launch: Launch,
        client: Option<ConnId>,
        purpose: Purpose,
    ) -> AgentId {
        let hello = client.and_then(|it| self.conns.get(&it)).and_then(|it| it.hello.clone());
        self.spawn_told(launch, hello, purpose)
    }

    /// Starts a process and tells it what a client said.
    pub(crate) fn spawn_told(
        &mut self,
        launch: Launch,
        hello: Option<Box<str>>,
        purpose: Purpose,
    ) -> AgentId {
        let id = self.next_agent();
        let params = agent_hello(hello.as_deref());
        let mut agent = Agent {
            launch: launch.clone(),
            pid: None,
            phase: Phase::Initializing,
            purpose,
            introduces: None,
            can: Abilities::default(),
            hello,
            told: None,
            pulse: Pulse::new(self.now),
            stopping: false,
            paused: false,
            waiting: BTreeMap::new(),
            next_id: 0,
        };
        let our_id = agent.expect(Waiting::Initialize);
        self.agents.insert(id, agent);
        let frame = Frame::request(&our_id.to_string(), "initialize", &params);
        self.outputs.push_back(Output::Spawn { agent: id, launch });
        self.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
        self.timers.set(self.now.plus(limits::START_MS_MAX), Timer::AgentStart(id, our_id));
        self.watch(id);
        id
    }

    pub(crate) fn stop_agent(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if !agent.stopping {
            agent.stopping = true;
            self.outputs.push_back(Output::StopAgent { agent: id, now: false });
        }
    }

    /// Ends an agent that was asked to stop, and did not.
    pub(crate) fn end_agent(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.stopping = true;
        self.outputs.push_back(Output::StopAgent { agent: id, now: true });
    }

    /// Asks an agent something on the hub's own account.
    pub(crate) fn ask_agent(&mut self, id: AgentId, method: &str, params: &str, waiting: Waiting) {
        let starts = waiting.is_start();
        let Some(our_id) = self.agents.get_mut(&id).map(|it| it.expect(waiting)) else { return };
        if starts {
            self.timers.set(self.now.plus(limits::START_MS_MAX), Timer::AgentStart(id, our_id));
        }
        self.told(id, starts);
        let frame = Frame::request(&our_id.to_string(), method, params);
        self.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
    }

    /// An agent that is still not ready: what waits for it should not wait for ever.
    pub(crate) fn on_start_deadline(&mut self, id: AgentId, step: u64) {
        if self.agents.get(&id).is_some_and(|it| it.waiting.contains_key(&step)) {
            self.stop_agent(id);
        }
    }

    /// Stops reading an agent whose words the journal cannot keep up with, and reads it again after.
    pub(crate) fn ease_agent(&mut self, id: &SessionId) {
        let limits = self.config.limits;
        let Some(session) = self.sessions.get(id) else { return };
        let held = session.gate.held_bytes();
        let Some((agent_id, agent)) =
            session.agent.and_then(|it| self.agents.get_mut(&it).map(|agent| (it, agent)))
        else {
            return;
        };
        if !agent.paused && limits.held_bytes_max < held {
            agent.paused = true;
            self.outputs.push_back(Output::PauseAgent { agent: agent_id });
        } else if agent.paused && held < limits.held_bytes_low {
            agent.paused = false;
            self.outputs.push_back(Output::ResumeAgent { agent: agent_id });
        }
    }
}
