//! Agent processes: started for a client or a session, spoken to under ids of ours, and buried with
//! an answer for everyone who waited.

mod breaker;
mod gone;
mod heard;
mod oversized;
mod places;
mod pulse;
mod seats;
mod warm;

pub(crate) use breaker::Breaker;
pub(crate) use heard::{error_of, is_journaled};
pub(crate) use places::Start;
pub(crate) use pulse::Pulse;
pub use seats::AgentPool;
pub(crate) use seats::{Seat, Seats};
pub(crate) use warm::Shape;

use crate::{
    AgentId, ConnId, Hub, Launch, Output, SessionId, Time,
    budget::{ByteCharge, ByteOwner},
    limits,
    peer::agent_hello,
    session::Way,
    timer::Timer,
};
use jackfield_protocol::Frame;
use jackfield_protocol::acp::Method;
use std::collections::BTreeMap;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the process")]
pub(crate) struct Agent {
    pub(crate) launch: Launch,
    pub(crate) pid: Option<u32>,
    pub(crate) phase: Phase,
    pub(crate) seats: Seats,
    /// Clients whose `initialize` is answered with what this agent can do, and their requests.
    pub(crate) introduces: Vec<(ConnId, Box<str>)>,
    pub(crate) can: Abilities,
    /// What the client it was started for had sent with `initialize`.
    pub(crate) hello: Option<Box<str>>,
    /// What it answered to `initialize`.
    pub(crate) told: Option<Box<str>>,
    /// A turn of it went well: whatever ends this process, the agent is not to blame.
    pub(crate) proved: bool,
    /// Its last word, or the last one to it.
    pub(crate) used: Time,
    /// Asked to stop; its end is no surprise.
    pub(crate) stopping: bool,
    /// Its pipe is not read because the journal is behind.
    pub(crate) paused: bool,
    /// Requests sent to it, by our id.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    /// What it said in sessions whose names it had not told yet.
    pub(crate) updates_before_session_id: Vec<(Frame, ByteCharge)>,
    kept: ByteOwner,
    /// Its program never asks before it acts.
    pub(crate) never_asks: bool,
    next_id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Initializing,
    Ready,
}

#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent flags of the protocol")]
pub(crate) struct Abilities {
    pub(crate) load: bool,
    pub(crate) resume: bool,
    pub(crate) fork: bool,
    pub(crate) close: bool,
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
        /// Its bytes, until it is answered.
        _charge: ByteCharge,
    },
    New(SessionId),
    /// A session that wakes.
    Reopen(SessionId, Way),
    /// What is set again in a session that wakes.
    Setting(SessionId, String),
    Prompt(SessionId, u64),
    /// Nobody waits any more. If the answer names a session, that is let go.
    Unwanted,
}

impl Waiting {
    /// Whether the answer would let a process begin to serve.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self, Waiting::Initialize | Waiting::New(_) | Waiting::Reopen(..))
    }

    /// Whether the answer tells the name of a session.
    fn names(&self) -> bool {
        matches!(
            self,
            Waiting::New(_) | Waiting::Reopen(_, Way::New | Way::Fork) | Waiting::Unwanted
        )
    }

    /// Whether somebody would miss the answer.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, Waiting::Unwanted)
    }

    /// The session that it is about.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            Waiting::New(id)
            | Waiting::Reopen(id, _)
            | Waiting::Setting(id, _)
            | Waiting::Prompt(id, _) => Some(id),
            Waiting::Client { session, .. } => session.as_ref(),
            Waiting::Initialize | Waiting::Unwanted => None,
        }
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

    /// Started and introduced, or about to be, and nobody's yet.
    pub(crate) fn is_warm(&self) -> bool {
        self.seats.is_empty() && !self.stopping
    }

    /// Whether it has been asked for a session and has not told its name for it.
    pub(crate) fn owes_a_name(&self) -> bool {
        self.waiting.values().any(Waiting::names)
    }
}

impl Hub {
    /// Starts a process and tells it what a client said. Without a seat for anybody it is warm.
    pub(crate) fn spawn(
        &mut self,
        launch: Launch,
        hello: Option<Box<str>>,
        seat: Option<Seat>,
    ) -> AgentId {
        let id = self.next_agent();
        let params = agent_hello(hello.as_deref());
        let mut agent = Agent {
            launch: launch.clone(),
            pid: None,
            phase: Phase::Initializing,
            seats: Seats::default(),
            introduces: Vec::new(),
            can: Abilities::default(),
            hello,
            told: None,
            proved: false,
            used: self.cx.now,
            stopping: false,
            paused: false,
            waiting: BTreeMap::new(),
            updates_before_session_id: Vec::new(),
            kept: ByteOwner::default(),
            never_asks: false,
            next_id: 0,
        };
        if let Some(seat) = seat {
            agent.seats.sit(seat);
        }
        let our_id = agent.expect(Waiting::Initialize);
        self.agents.insert(id, agent);
        let frame = Frame::request(&our_id.to_string(), Method::Initialize.name(), &params);
        self.cx.outputs.push_back(Output::Spawn { agent: id, launch });
        self.cx.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
        self.cx.timers.set(self.cx.now.plus(limits::START_MS_MAX), Timer::AgentStart(id, our_id));
        self.try_out(id);
        id
    }

    pub(crate) fn stop_agent(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if !agent.stopping {
            agent.stopping = true;
            self.cx.outputs.push_back(Output::StopAgent { agent: id, now: false });
        }
    }

    /// Ends an agent that was asked to stop, and did not.
    pub(crate) fn end_agent(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.stopping = true;
        self.cx.outputs.push_back(Output::StopAgent { agent: id, now: true });
    }

    /// Asks an agent something on the hub's own account.
    pub(crate) fn ask_agent(&mut self, id: AgentId, method: &str, params: &str, waiting: Waiting) {
        let (starts, session) = (waiting.is_start(), waiting.session().cloned());
        let Some(our_id) = self.agents.get_mut(&id).map(|it| it.expect(waiting)) else { return };
        if starts {
            self.cx
                .timers
                .set(self.cx.now.plus(limits::START_MS_MAX), Timer::AgentStart(id, our_id));
        }
        if let Some(session) = session {
            self.told(&session, starts);
        }
        let frame = Frame::request(&our_id.to_string(), method, params);
        self.cx.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
    }

    /// An agent that is still not ready: what waits for it should not wait for ever. One that
    /// serves others goes on without this session.
    pub(crate) fn on_start_deadline(&mut self, id: AgentId, step: u64) {
        let Some(agent) = self.agents.get(&id) else { return };
        let Some(waiting) = agent.waiting.get(&step).filter(|it| it.is_start()) else { return };
        match waiting.session().filter(|it| agent.seats.has(it) && !agent.seats.is_alone(it)) {
            Some(session) => self.give_up_on(id, &session.clone()),
            None => self.stop_agent(id),
        }
    }

    /// Stops reading an agent whose words the journal cannot keep up with, and reads it again after.
    pub(crate) fn ease_agent(&mut self, id: &SessionId) {
        let limits = self.cx.config.limits;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let held = session.log.pending_bytes();
        session.log.charge_pending_bytes(&self.cx.pending_bytes);
        let all_full = self.cx.pending_bytes.is_exceeded_by(held);
        let Some((agent_id, agent)) =
            session.agent.and_then(|it| self.agents.get_mut(&it).map(|agent| (it, agent)))
        else {
            return;
        };
        if !agent.paused && (limits.held_bytes_max < held || all_full) {
            agent.paused = true;
            self.cx.outputs.push_back(Output::PauseAgent { agent: agent_id });
        } else if agent.paused && held < limits.held_bytes_low {
            self.ease(agent_id);
        }
    }

    /// Reads an agent again, unless a session that it serves is still too far ahead of the journal.
    fn ease(&mut self, id: AgentId) {
        let low = self.cx.config.limits.held_bytes_low;
        let held = |it: &SessionId| self.sessions[it].log.pending_bytes();
        let behind = self.served_by(id).iter().any(|it| low <= held(it));
        let Some(agent) = self.agents.get_mut(&id).filter(|it| it.paused && !behind) else {
            return;
        };
        agent.paused = false;
        if !self.is_held(id) {
            self.cx.outputs.push_back(Output::ResumeAgent { agent: id });
        }
    }
}
