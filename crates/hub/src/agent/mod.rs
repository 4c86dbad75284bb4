//! Agent processes: their start, their slots, pending requests and their end.

mod activity;
mod admission;
mod breaker;
mod exit;
mod messages;
mod oversized;
mod slots;
mod warm;

pub(crate) use activity::SessionActivity;
pub(crate) use admission::AgentStart;
pub(crate) use breaker::CircuitBreaker;
pub(crate) use messages::{error_of, is_journaled};
pub(crate) use slots::{AgentSlots, SlotOwner};
pub(crate) use warm::ProcessShape;

use crate::{
    AgentId, ConnId, Hub, Launch, Output, SessionId, Time,
    budget::{ByteCharge, ByteOwner},
    context::HubContext,
    limits,
    peer::agent_hello,
    session::RestoreMethod,
    timer::HubTimer,
};
use jackfield_events::AgentName;
use jackfield_protocol::{Frame, acp::Method};
use std::collections::{BTreeMap, VecDeque};

/// All agent processes, the starts that wait for one, and what decides whether another is started.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    pub(crate) processes: BTreeMap<AgentId, Agent>,
    /// Starts that wait until another process may run, in order.
    pub(crate) starts: VecDeque<AgentStart>,
    /// What warm processes are kept for.
    pub(crate) warm_shapes: Vec<ProcessShape>,
    /// Circuit breakers of agents whose processes failed lately, by name.
    pub(crate) breakers: BTreeMap<AgentName, CircuitBreaker>,
    last_id: u64,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the process")]
pub(crate) struct Agent {
    pub(crate) launch: Launch,
    pub(crate) pid: Option<u32>,
    pub(crate) phase: Phase,
    pub(crate) slots: AgentSlots,
    /// Clients whose `initialize` is answered when the agent has reported its capabilities, with the request ids.
    pub(crate) pending_initialize: Vec<(ConnId, Box<str>)>,
    pub(crate) capabilities: PeerCapabilities,
    /// The `initialize` parameters of the client that it was started for.
    pub(crate) initialize_params: Option<Box<str>>,
    /// Its result of `initialize`.
    pub(crate) initialize_result: Option<Box<str>>,
    /// Set after the first completed turn. A later exit then no longer counts toward the circuit breaker.
    pub(crate) has_completed_turn: bool,
    /// When it last sent or received a message.
    pub(crate) last_active_at: Time,
    /// It was asked to stop.
    pub(crate) stopping: bool,
    /// Its output is not read, because the journal is behind.
    pub(crate) paused: bool,
    /// Requests that were sent to it, by the request id of the hub.
    pub(crate) waiting: BTreeMap<u64, PendingRequest>,
    /// Updates of sessions whose ids it has not reported yet.
    pub(crate) updates_before_session_id: Vec<(Frame, ByteCharge)>,
    kept: ByteOwner,
    /// Its program never asks for permission before it acts.
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
pub(crate) struct PeerCapabilities {
    pub(crate) load: bool,
    pub(crate) resume: bool,
    pub(crate) fork: bool,
    pub(crate) close: bool,
}

/// A request that was sent to an agent, and who gets the answer.
#[derive(Debug)]
pub(crate) enum PendingRequest {
    Initialize,
    /// A request of a client. `setting` is set if a successful answer is logged as a setting of the session.
    Client {
        conn: ConnId,
        id: Box<str>,
        session: Option<SessionId>,
        setting: Option<Frame>,
        /// The bytes of the request until it is answered.
        _charge: ByteCharge,
    },
    New(SessionId),
    /// A step of restoring a session.
    Reopen(SessionId, RestoreMethod),
    /// A setting of a session that is being restored.
    Setting(SessionId, String),
    Prompt(SessionId, u64),
    /// The answer is ignored. If it names a session, that session is closed.
    Unwanted,
}

impl PendingRequest {
    /// Whether the process can serve a session after the answer.
    pub(crate) fn is_start(&self) -> bool {
        matches!(
            self,
            PendingRequest::Initialize | PendingRequest::New(_) | PendingRequest::Reopen(..)
        )
    }

    /// Whether the answer has the id of a session.
    fn names(&self) -> bool {
        matches!(
            self,
            PendingRequest::New(_)
                | PendingRequest::Reopen(_, RestoreMethod::New | RestoreMethod::Fork)
                | PendingRequest::Unwanted
        )
    }

    /// Whether the answer is used.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, PendingRequest::Unwanted)
    }

    /// The session that the request concerns.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            PendingRequest::New(id)
            | PendingRequest::Reopen(id, _)
            | PendingRequest::Setting(id, _)
            | PendingRequest::Prompt(id, _) => Some(id),
            PendingRequest::Client { session, .. } => session.as_ref(),
            PendingRequest::Initialize | PendingRequest::Unwanted => None,
        }
    }
}

impl Agent {
    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready && !self.stopping
    }

    /// Registers a pending request and returns its id.
    pub(crate) fn expect(&mut self, waiting: PendingRequest) -> u64 {
        self.next_id += 1;
        self.waiting.insert(self.next_id, waiting);
        self.next_id
    }

    /// Whether it serves no client and no session yet.
    pub(crate) fn is_warm(&self) -> bool {
        self.slots.is_empty() && !self.stopping
    }

    /// Whether a request for a session id is pending.
    pub(crate) fn owes_a_name(&self) -> bool {
        self.waiting.values().any(PendingRequest::names)
    }
}

impl Agents {
    pub(crate) fn set_pid(&mut self, agent: AgentId, pid: u32) {
        if let Some(agent) = self.processes.get_mut(&agent) {
            agent.pid = Some(pid);
        }
    }

    /// The program never asks for permission before it acts.
    pub(crate) fn set_never_asks(&mut self, agent: AgentId) {
        if let Some(agent) = self.processes.get_mut(&agent) {
            agent.never_asks = true;
        }
    }

    pub(crate) fn next_agent_id(&mut self) -> AgentId {
        self.last_id += 1;
        AgentId(self.last_id)
    }

    /// Starts a process and sends `initialize`. Without a slot owner it is a warm process.
    pub(crate) fn spawn_agent(
        &mut self,
        cx: &mut HubContext,
        launch: Launch,
        initialize_params: Option<Box<str>>,
        seat: Option<SlotOwner>,
    ) -> AgentId {
        let id = self.next_agent_id();
        let params = agent_hello(initialize_params.as_deref());
        let mut agent = Agent {
            launch: launch.clone(),
            pid: None,
            phase: Phase::Initializing,
            slots: AgentSlots::default(),
            pending_initialize: Vec::new(),
            capabilities: PeerCapabilities::default(),
            initialize_params,
            initialize_result: None,
            has_completed_turn: false,
            last_active_at: cx.now,
            stopping: false,
            paused: false,
            waiting: BTreeMap::new(),
            updates_before_session_id: Vec::new(),
            kept: ByteOwner::default(),
            never_asks: false,
            next_id: 0,
        };
        if let Some(seat) = seat {
            agent.slots.assign(seat);
        }
        let our_id = agent.expect(PendingRequest::Initialize);
        self.processes.insert(id, agent);
        let frame = Frame::request(&our_id.to_string(), Method::Initialize.name(), &params);
        cx.outputs.push_back(Output::Spawn { agent: id, launch });
        cx.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
        cx.timers.set(cx.now.plus(limits::START_MS_MAX), HubTimer::AgentStart(id, our_id));
        self.start_breaker_trial(id);
        id
    }

    pub(crate) fn stop_agent(&mut self, cx: &mut HubContext, id: AgentId) {
        let Some(agent) = self.processes.get_mut(&id) else { return };
        if !agent.stopping {
            agent.stopping = true;
            cx.outputs.push_back(Output::StopAgent { agent: id, now: false });
        }
    }

    /// Kills an agent that was asked to stop and did not.
    pub(crate) fn kill_agent(&mut self, cx: &mut HubContext, id: AgentId) {
        let Some(agent) = self.processes.get_mut(&id) else { return };
        agent.stopping = true;
        cx.outputs.push_back(Output::StopAgent { agent: id, now: true });
    }
}

impl Hub {
    /// Sends a request of the hub to an agent.
    pub(crate) fn ask_agent(
        &mut self,
        id: AgentId,
        method: &str,
        params: &str,
        waiting: PendingRequest,
    ) {
        let (starts, session) = (waiting.is_start(), waiting.session().cloned());
        let Some(our_id) = self.parts.agents.processes.get_mut(&id).map(|it| it.expect(waiting))
        else {
            return;
        };
        if starts {
            self.parts.cx.timers.set(
                self.parts.cx.now.plus(limits::START_MS_MAX),
                HubTimer::AgentStart(id, our_id),
            );
        }
        if let Some(session) = session {
            self.with_session(&session, |it, parts| it.mark_agent_used(parts, starts));
        }
        let frame = Frame::request(&our_id.to_string(), method, params);
        self.parts.cx.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
    }

    /// An agent has not answered a request of its start in time. If it serves other sessions, only this one gives up;
    /// otherwise it is stopped.
    pub(crate) fn on_start_deadline(&mut self, id: AgentId, step: u64) {
        let Some(agent) = self.parts.agents.processes.get(&id) else { return };
        let Some(waiting) = agent.waiting.get(&step).filter(|it| it.is_start()) else { return };
        match waiting.session().filter(|it| agent.slots.has(it) && !agent.slots.is_alone(it)) {
            Some(session) => self.give_up_on(id, &session.clone()),
            None => self.parts.agents.stop_agent(&mut self.parts.cx, id),
        }
    }

    /// Pauses reading an agent whose events the journal cannot store fast enough, and resumes it later.
    pub(crate) fn ease_agent(&mut self, id: &SessionId) {
        let limits = self.parts.cx.config.limits;
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let held = session.log.pending_bytes();
        session.log.charge_pending_bytes(&self.parts.cx.pending_bytes);
        let all_full = self.parts.cx.pending_bytes.is_exceeded_by(held);
        let Some((agent_id, agent)) = session
            .agent
            .and_then(|it| self.parts.agents.processes.get_mut(&it).map(|agent| (it, agent)))
        else {
            return;
        };
        if !agent.paused && (limits.held_bytes_max < held || all_full) {
            agent.paused = true;
            self.parts.cx.outputs.push_back(Output::PauseAgent { agent: agent_id });
        } else if agent.paused && held < limits.held_bytes_low {
            self.ease(agent_id);
        }
    }

    /// Resumes reading an agent, unless one of its sessions still has too many pending events.
    fn ease(&mut self, id: AgentId) {
        let low = self.parts.cx.config.limits.held_bytes_low;
        let held = |it: &SessionId| self.sessions.by_id[it].log.pending_bytes();
        let behind = self.served_by(id).iter().any(|it| low <= held(it));
        let Some(agent) =
            self.parts.agents.processes.get_mut(&id).filter(|it| it.paused && !behind)
        else {
            return;
        };
        agent.paused = false;
        if !self.is_held(id) {
            self.parts.cx.outputs.push_back(Output::ResumeAgent { agent: id });
        }
    }
}
