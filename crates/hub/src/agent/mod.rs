//! Agent processes: their start, their slots, pending requests and their end.

mod admission;
mod breaker;
mod early_updates;
mod pending_request;
mod restore_method;
mod sandbox;
mod slots;
#[cfg(test)]
mod variant_tests;
mod warm;

pub(crate) use admission::AgentStart;
pub(crate) use breaker::CircuitBreaker;
pub(crate) use pending_request::PendingRequest;
pub(crate) use restore_method::RestoreMethod;
pub(crate) use slots::{AgentSlots, SlotOwner};
pub(crate) use warm::ProcessShape;

use crate::{
    AgentId, ConnId, Exit, Launch, Output, SessionId, Time, VariantChoice,
    budget::{ByteCharge, ByteOwner},
    config::StartLimits,
    context::HubContext,
    fallback::NextVariant,
    limits,
    peer::PROTOCOL_VERSION,
    timer::HubTimer,
};
use jackfield_events::{AgentName, PromptCapabilities, SandboxApplied};
use jackfield_protocol::{
    Fault, Frame,
    acp::{Durability, Method},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

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
    pub(crate) prompt_capabilities: PromptCapabilities,
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
    /// The limits of its start, and when the current step of it has to be done.
    pub(crate) start_limits: StartLimits,
    start_deadline: Option<Time>,
    /// The step of its start that took too long, if it was stopped because of that.
    overdue: Option<String>,
    /// Its output is not read, because the journal is behind.
    pub(crate) paused: bool,
    /// Requests that were sent to it, by the request id of the hub.
    pub(crate) waiting: BTreeMap<u64, PendingRequest>,
    /// Updates of sessions whose ids it has not reported yet.
    pub(crate) early_updates: Vec<(Frame, ByteCharge)>,
    kept: ByteOwner,
    /// Its program never asks for permission before it acts.
    pub(crate) never_asks: bool,
    /// Its sandbox; none if it runs without limits.
    pub(crate) sandbox: Option<Arc<SandboxApplied>>,
    /// The launch variant of the catalog, and the one to try if this one cannot be started.
    pub(crate) variant: Option<Arc<str>>,
    next_variant: Option<Arc<str>>,
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

    /// The agent answered `initialize`.
    pub(crate) fn set_initialized(&mut self, result: &str) {
        let value: Value = serde_json::from_str(result).unwrap_or_default();
        let offers = |name: &str| {
            let path = format!("/agentCapabilities/sessionCapabilities/{name}");
            value.pointer(&path).is_some_and(|it| !it.is_null())
        };
        self.phase = Phase::Ready;
        self.initialize_result = Some(result.into());
        let prompt = value.pointer("/agentCapabilities/promptCapabilities");
        let accepts = |name: &str| prompt.is_some_and(|it| it[name] == true);
        self.prompt_capabilities = PromptCapabilities {
            image: accepts("image"),
            audio: accepts("audio"),
            embedded_context: accepts("embeddedContext"),
        };
        self.capabilities = PeerCapabilities {
            load: value.pointer("/agentCapabilities/loadSession") == Some(&Value::Bool(true)),
            resume: offers("resume"),
            fork: offers("fork"),
            close: offers("close"),
        };
    }

    /// The error for requests that its end leaves unanswered.
    pub(crate) fn exit_fault(&self, exit: &Exit) -> Fault {
        let agent = self.launch.name.to_string();
        let (status, stderr) = (exit.status.clone(), exit.stderr.clone());
        if let Some(why) = self.overdue.clone() {
            Fault::AgentNotStarted { agent, why, stderr }
        } else if self.phase == Phase::Ready {
            Fault::AgentGone { agent, status, stderr }
        } else {
            Fault::AgentNotStarted { agent, why: status, stderr }
        }
    }

    /// The launch variant to try instead of a process that has not answered `initialize`.
    pub(crate) fn next_variant(&self) -> Option<NextVariant> {
        let (failed, next) = self.variant.clone().zip(self.next_variant.clone())?;
        (self.phase == Phase::Initializing).then_some(NextVariant { failed, next })
    }

    /// Whether it was started with the same parameters, and a launch variant that fits.
    pub(crate) fn is_started_as(&self, launch: &Launch) -> bool {
        let variant = launch.variant.clone();
        self.has_variant_of(launch) && Launch { variant, ..self.launch.clone() } == *launch
    }

    /// Whether its launch variant is one that this launch may use.
    pub(crate) fn has_variant_of(&self, launch: &Launch) -> bool {
        let fits = match &launch.variant {
            VariantChoice::Any => !matches!(self.launch.variant, VariantChoice::Only(_)),
            VariantChoice::Preferred(name)
            | VariantChoice::From(name)
            | VariantChoice::Only(name) => self.variant.as_ref() == Some(name),
        };
        fits || self.launch.variant == launch.variant
    }

    /// Whether it serves no client and no session yet.
    pub(crate) fn is_warm(&self) -> bool {
        self.slots.is_empty() && !self.stopping
    }

    /// Whether a request for a session id is pending.
    pub(crate) fn awaits_session_id(&self) -> bool {
        self.waiting.values().any(PendingRequest::is_answered_with_session_id)
    }
}

impl Agents {
    /// The process runs, and has its time to answer `initialize`.
    pub(crate) fn on_process_started(&mut self, cx: &mut HubContext, id: AgentId, pid: u32) {
        let Some(agent) = self.processes.get_mut(&id) else { return };
        agent.pid = Some(pid);
        let is_initialize = |it: &PendingRequest| matches!(it, PendingRequest::Initialize);
        let request = agent.waiting.iter().find(|(_, it)| is_initialize(it)).map(|(id, _)| *id);
        let Some(request) = request else { return };
        agent.start_deadline = agent.start_limits.initializing.map(|it| cx.now.plus(it));
        if let Some(at) = agent.start_deadline {
            cx.timers.set(at, HubTimer::AgentStart(id, request));
        }
    }

    /// Why this request of a start failed, if its time is over. A process that has started since the timer was set
    /// has more time.
    pub(crate) fn describe_overdue_start(
        &self,
        now: Time,
        id: AgentId,
        request: u64,
    ) -> Option<String> {
        let agent = self.processes.get(&id)?;
        let limits = agent.start_limits;
        let (limit, step) = match agent.waiting.get(&request)? {
            PendingRequest::Initialize if agent.start_deadline.is_none_or(|it| now < it) => {
                return None;
            }
            PendingRequest::Initialize if agent.pid.is_none() => {
                (limits.starting?, "the process did not start".to_owned())
            }
            PendingRequest::Initialize => {
                (limits.initializing?, format!("no reply to `{}`", Method::Initialize.name()))
            }
            PendingRequest::New(_) => {
                (limits.opening?, format!("no reply to `{}`", Method::SessionNew.name()))
            }
            PendingRequest::Reopen(_, it) => {
                (limits.opening?, format!("no reply to `{}`", it.method().name()))
            }
            _ => return None,
        };
        Some(format!("{step} within {}", describe_limit(limit)))
    }

    /// Stops a process whose start took too long.
    pub(crate) fn stop_overdue_agent(&mut self, cx: &mut HubContext, id: AgentId, why: String) {
        if let Some(agent) = self.processes.get_mut(&id).filter(|it| !it.stopping) {
            agent.overdue = Some(why);
        }
        self.stop_agent(cx, id);
    }

    /// The program never asks for permission before it acts.
    pub(crate) fn set_never_asks(&mut self, agent: AgentId) {
        if let Some(agent) = self.processes.get_mut(&agent) {
            agent.never_asks = true;
        }
    }

    /// The launch variant of the catalog that is started for an agent. If another one can be tried,
    /// this one has less time.
    pub(crate) fn set_variant(&mut self, id: AgentId, variant: Arc<str>, next: Option<Arc<str>>) {
        let Some(agent) = self.processes.get_mut(&id) else { return };
        if next.is_some() {
            let limit = &mut agent.start_limits.initializing;
            let max = limits::VARIANT_START_MS_MAX;
            *limit = Some(limit.map_or(max, |it| it.min(max)));
        }
        (agent.variant, agent.next_variant) = (Some(variant), next);
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
        owner: Option<SlotOwner>,
        start_limits: StartLimits,
    ) -> AgentId {
        let id = self.next_agent_id();
        let start_deadline = start_limits.starting.map(|it| cx.now.plus(it));
        let params = agent_initialize_params(initialize_params.as_deref());
        let mut agent = Agent {
            launch: launch.clone(),
            pid: None,
            phase: Phase::Initializing,
            slots: AgentSlots::default(),
            pending_initialize: Vec::new(),
            capabilities: PeerCapabilities::default(),
            prompt_capabilities: PromptCapabilities::default(),
            initialize_params,
            initialize_result: None,
            has_completed_turn: false,
            last_active_at: cx.now,
            stopping: false,
            start_limits,
            start_deadline,
            overdue: None,
            paused: false,
            waiting: BTreeMap::new(),
            early_updates: Vec::new(),
            kept: ByteOwner::default(),
            never_asks: false,
            sandbox: None,
            variant: None,
            next_variant: None,
            next_id: 0,
        };
        if let Some(owner) = owner {
            agent.slots.assign(owner);
        }
        let our_id = agent.expect(PendingRequest::Initialize);
        self.processes.insert(id, agent);
        let frame = Frame::request(&our_id.to_string(), Method::Initialize.name(), &params);
        cx.outputs.push_back(Output::Spawn { agent: id, launch });
        cx.outputs.push_back(Output::ToAgent { agent: id, text: frame.bytes().clone() });
        if let Some(at) = start_deadline {
            cx.timers.set(at, HubTimer::AgentStart(id, our_id));
        }
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

    /// The session whose log a request waited for, so that messages about the request do not overtake it.
    pub(crate) fn session_of_request(&self, agent: AgentId, hub_id: u64) -> Option<SessionId> {
        self.processes.get(&agent)?.waiting.get(&hub_id)?.session().cloned()
    }

    /// The running process that was inactive for the longest time, of those that fit.
    pub(crate) fn find_least_used(&self, fits: impl Fn(&Agent) -> bool) -> Option<AgentId> {
        let fitting = self.processes.iter().filter(|(_, it)| !it.stopping && fits(it));
        fitting.min_by_key(|(id, it)| (it.last_active_at, **id)).map(|(id, _)| *id)
    }

    pub(crate) fn stop_all(&mut self, cx: &mut HubContext) {
        let agents: Vec<AgentId> = self.processes.keys().copied().collect();
        for agent in agents {
            self.stop_agent(cx, agent);
        }
    }

    /// Kills an agent that was asked to stop and did not.
    pub(crate) fn kill_agent(&mut self, cx: &mut HubContext, id: AgentId) {
        let Some(agent) = self.processes.get_mut(&id) else { return };
        agent.stopping = true;
        cx.outputs.push_back(Output::StopAgent { agent: id, now: true });
    }
}

/// A limit as an error states it: `60 s`, `1500 ms`.
pub(crate) fn describe_limit(ms: u64) -> String {
    if ms.is_multiple_of(1_000) { format!("{} s", ms / 1_000) } else { format!("{ms} ms") }
}

/// The parameters of `initialize`: those of the client that the process is started for, in our protocol version.
fn agent_initialize_params(client: Option<&str>) -> String {
    let mut params = client
        .and_then(|it| serde_json::from_str::<Map<String, Value>>(it).ok())
        .unwrap_or_default();
    params.insert("protocolVersion".into(), PROTOCOL_VERSION.into());
    if !params.contains_key("clientInfo") {
        let info = json!({ "name": "jackfield", "version": env!("CARGO_PKG_VERSION") });
        params.insert("clientInfo".into(), info);
    }
    Value::from(params).to_string()
}

/// Whether messages of this kind are logged.
pub(crate) fn is_journaled(frame: &Frame) -> bool {
    frame.known_method().is_some_and(|it| it.row().durability == Durability::Journaled)
}

/// The error object of a response, or one that says that there was none.
pub(crate) fn error_of(frame: &Frame) -> String {
    let none = r#"{"code":-32603,"message":"the agent answered with neither result nor error"}"#;
    frame.error().unwrap_or(none).to_owned()
}
