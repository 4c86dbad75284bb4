//! The hub: one input at a time, dispatched to conn, agent or session, leaving outputs in order.

use crate::{
    AgentId, ByteLimits, Config, ConnId, Input, Note, Output, Seq, SessionId, Time,
    agent::{Agent, Breaker, Shape, Start},
    budget::{ByteBudget, ByteOwner},
    id::Names,
    limits,
    log::Texts,
    peer::Conn,
    session::{Fork, KeyIndex, Session},
    storage::StorageState,
    tenant::Tenancy,
    timer::{Timer, Timers},
};
use bytes::Bytes;
use jackfield_events::{
    AgentName, EventBody, SessionEvent, SessionSummary, SummaryUpdate, TenantName,
};
use jackfield_wire::Fault;
use std::collections::{BTreeMap, VecDeque};

/// A session as the journal holds it: the state at its last durable event.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub session: SessionId,
    pub state: SessionSummary,
}

#[derive(Debug)]
pub struct Hub {
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) agents: BTreeMap<AgentId, Agent>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Sessions that are being copied, by the name of the copy.
    pub(crate) forks: BTreeMap<SessionId, Fork>,
    /// Where keys of requests are known.
    pub(crate) key_index: KeyIndex,
    pub(crate) timers: Timers,
    /// Starts that wait for a place, in order.
    pub(crate) starts: VecDeque<Start>,
    /// What warm processes are kept for.
    pub(crate) warm: Vec<Shape>,
    /// Agents whose processes failed lately, by name.
    pub(crate) breakers: BTreeMap<AgentName, Breaker>,
    /// Those whose clients were here.
    pub(crate) tenants: BTreeMap<TenantName, Tenancy>,
    /// Bytes of messages that sessions, agents and clients keep.
    pub(crate) kept: ByteBudget,
    /// Bytes that the logs of all sessions hold until they are durable.
    pub(crate) held: ByteBudget,
    /// Bytes that all clients have not taken.
    pub(crate) outboxes: ByteBudget,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) stopping: bool,
    pub(crate) storage: StorageState,
    pub(crate) names: Names,
    /// What sleeping sessions have in common.
    pub(crate) texts: Texts,
    next_agent: u64,
    stopped: bool,
    /// Clients that have said all they will say and still wait for answers.
    pub(crate) finished: usize,
}

impl Hub {
    /// Starts from what the journal holds. Turns that were running and asks that were open belong
    /// to agents that are gone: they are ended here, in the log, exactly once.
    pub fn new(config: Config, now: Time, recovered: impl IntoIterator<Item = Recovered>) -> Hub {
        let mut texts = Texts::default();
        let session = |mut it: Recovered| {
            texts.share_all(&mut it.state);
            (it.session, Session::recovered(it.state))
        };
        let (cut, whole): (Vec<_>, Vec<_>) =
            recovered.into_iter().partition(|it| it.state.importing);
        let sessions = whole.into_iter().map(session).collect();
        let names = Names::new(config.seed);
        let limits = config.limits;
        let held =
            ByteLimits { own_max: usize::MAX, own_min: 0, all_max: limits.held_bytes_all_max };
        let outboxes = ByteLimits {
            own_max: usize::MAX,
            own_min: limits::OUTBOX_BYTES_MIN.min(limits.outbox_bytes_low),
            all_max: limits.outbox_bytes_all_max,
        };
        let delete = |it: Recovered| Output::Delete { session: it.session };
        let mut hub = Hub {
            config,
            now,
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            sessions,
            forks: BTreeMap::new(),
            key_index: KeyIndex::default(),
            timers: Timers::default(),
            starts: VecDeque::new(),
            warm: Vec::new(),
            breakers: BTreeMap::new(),
            tenants: BTreeMap::new(),
            kept: ByteBudget::new(limits.kept),
            held: ByteBudget::new(held),
            outboxes: ByteBudget::new(outboxes),
            // An import that the end of the last daemon cut short: nobody was told of it.
            outputs: cut.into_iter().map(delete).collect(),
            stopping: false,
            storage: StorageState::default(),
            names,
            texts,
            next_agent: 0,
            stopped: false,
            finished: 0,
        };
        hub.index_all_keys();
        hub.settle_interrupted();
        hub
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        assert!(self.outputs.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        match input {
            Input::ClientOpened { conn, peer } => {
                let outbox = self.outboxes.charge_unchecked(&ByteOwner::default(), 0);
                let known = self.conns.insert(conn, Conn::new(peer, outbox));
                assert!(known.is_none(), "a conn id is used once");
            }
            Input::ClientSpoke { conn, frame } => self.on_client(conn, &frame),
            Input::ClientBabbled { conn, fault } => self.on_babble(conn, &fault),
            Input::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            Input::ClientFinished { conn } => self.on_client_finished(conn),
            Input::ClientGone { conn } => self.on_client_gone(conn),
            Input::AgentStarted { agent, pid } => {
                if let Some(agent) = self.agents.get_mut(&agent) {
                    agent.pid = Some(pid);
                }
            }
            Input::AgentNeverAsks { agent } => {
                if let Some(agent) = self.agents.get_mut(&agent) {
                    agent.never_asks = true;
                }
            }
            Input::AgentSpoke { agent, frame } => {
                self.on_agent(agent, frame);
                self.pay(agent);
            }
            Input::AgentSentOversized { agent, line } => self.on_oversized(agent, &line),
            Input::AgentGone { agent, exit } => self.on_agent_gone(agent, &exit),
            Input::AgentsChanged { agents, pools } => {
                (self.config.agents, self.config.pools) = (agents, pools);
                self.forget_shapes();
            }
            Input::SettingsChanged { default_agent, sleep, liveness } => {
                self.config.default_agent = default_agent;
                (self.config.sleep, self.config.liveness) = (sleep, liveness);
            }
            Input::Durable { session, upto } => self.on_durable(&session, upto),
            Input::AppendFailed { session, why } => self.on_append_failed(&session, why),
            Input::Read { conn, session, after, events } => {
                self.on_read(conn, &session, after, &events);
            }
            Input::ReadFailed { conn, session, after, why, damaged: true } => {
                self.on_damaged_read(&session, conn, after, &why);
            }
            Input::ReadFailed { conn, session, .. } => {
                let at = self.now.plus(limits::APPEND_RETRY_MS);
                self.timers.set(at, Timer::ReadRetry(session, conn));
            }
            Input::Recalled { session, after, events } => {
                self.on_recalled(&session, after, &events);
            }
            Input::RecallFailed { session, why } => self.on_recall_failed(&session, &why),
            Input::Copied { to, state } => self.on_copied(&to, *state),
            Input::CopyFailed { to, why } => self.on_copy_failed(&to, &why),
            Input::Adopted { session, state, from } => self.on_adopted(&session, *state, from),
            Input::LetGo { session } => self.on_let_go(&session),
            Input::Elsewhere { tenants } => self.on_elsewhere(&tenants),
            Input::PolicyChanged { policies } => self.config.policies = policies,
            Input::Pressure => self.on_pressure(),
            Input::Served { agent, frame } => self.on_served(agent, &frame),
            Input::Tick => self.on_tick(),
            Input::Stop => self.on_stop(),
        }
        if !self.starts.is_empty() {
            self.admit();
        }
        if 0 < self.finished {
            self.close_finished();
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the hub wants [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Nothing runs and nobody is connected: the daemon may end itself when that lasts.
    pub fn is_idle(&self) -> bool {
        self.conns.is_empty() && self.agents.is_empty() && self.starts.is_empty()
    }

    /// All sessions that are known.
    pub fn session_ids(&self) -> impl Iterator<Item = &SessionId> {
        self.sessions.keys()
    }

    /// What is known of a session, for whoever tells people about it.
    pub fn session(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.sessions.get(id).map(|it| &it.state)
    }

    /// The working directories of the sessions that an agent serves.
    pub fn folders_of(&self, agent: AgentId) -> impl Iterator<Item = &str> {
        let sessions = self.agents.get(&agent).into_iter().flat_map(|it| &it.seats.sessions);
        sessions.filter_map(|it| self.session(it)).map(|it| &*it.cwd)
    }

    pub(crate) fn next_agent(&mut self) -> AgentId {
        self.next_agent += 1;
        AgentId(self.next_agent)
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.outputs.push_back(Output::Note(note));
    }

    pub(crate) fn send(&mut self, id: ConnId, text: Bytes) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.outbox.resize(conn.outbox.bytes() + text.len());
        self.outputs.push_back(Output::ToClient { conn: id, text });
    }

    /// Writes a fact down. It is heard when the journal has it.
    pub(crate) fn append(&mut self, id: &SessionId, body: EventBody) -> Seq {
        self.append_at(id, self.now, body)
    }

    /// The same for a fact that has a time of its own.
    pub(crate) fn append_at(&mut self, id: &SessionId, at: Time, body: EventBody) -> Seq {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        let event = SessionEvent { seq: session.gate.head().next(), at, body };
        let seq = event.seq;
        let worth = session.state.fold(&event);
        session.gate.hold(event.clone());
        if matches!(
            event.body,
            EventBody::Queued(_) | EventBody::Prompted(_) | EventBody::Withdrawn(_)
        ) {
            session.count_queue(&self.kept);
        }
        if worth == SummaryUpdate::Deferred && !std::mem::replace(&mut session.summary_is_due, true)
        {
            let at = self.now.plus(limits::SUMMARY_MS);
            self.timers.set(at, Timer::Summary(id.clone()));
        }
        let may_have_key = matches!(
            event.body,
            EventBody::Opened(_) | EventBody::Queued(_) | EventBody::Prompted(_)
        );
        if !session.stalled {
            let summary = (worth == SummaryUpdate::Immediate).then(|| session.state.to_summary());
            self.outputs.push_back(Output::Append { session: id.clone(), event, summary });
        }
        if may_have_key {
            self.index_last_key(id);
        }
        seq
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::AgentStart(agent, step) => self.on_start_deadline(agent, step),
                Timer::Wake(session) => self.pump(&session),
                Timer::Climb(session) => self.on_climb_time(&session),
                Timer::Cancel(session, turn, rung) => self.on_cancel_deadline(&session, turn, rung),
                Timer::AskRule(session, ask) => self.on_ask_unanswered(&session, ask),
                Timer::AppendRetry(session) => self.append_again(&session),
                Timer::Summary(session) => self.on_summary_due(&session),
                Timer::ReadRetry(session, conn) => self.read_on(&session, conn),
                Timer::Silence(session) => self.on_silence(&session),
                Timer::Idle(session) => self.on_idle(&session),
                Timer::Unattended(session) => self.on_unattended(&session),
                Timer::WarmIdle(agent) => self.on_warm_idle(agent),
                Timer::Warm => self.warm_up(),
                Timer::Rate(tenant) => self.on_rate(&tenant),
                Timer::StopGrace => self.stop_agents(),
            }
        }
    }

    /// Ends: running turns are asked to stop, then interrupted; agents are stopped; all is written.
    fn on_stop(&mut self) {
        if self.stopping {
            return self.stop_agents(); // Asked twice: now.
        }
        self.stopping = true;
        let running: Vec<SessionId> = self.running().collect();
        for session in &running {
            self.stop_turn(session);
        }
        let sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for session in &sessions {
            self.refuse_waiting(session, &Fault::Stopping);
        }
        self.refuse_starts();
        if running.is_empty() {
            self.stop_agents();
        } else {
            self.timers.set(self.now.plus(limits::STOP_GRACE_MS), Timer::StopGrace);
        }
    }

    fn running(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().filter(|(_, it)| it.turn.is_some()).map(|(id, _)| id.clone())
    }

    fn stop_agents(&mut self) {
        let agents: Vec<AgentId> = self.agents.keys().copied().collect();
        for agent in agents {
            self.stop_agent(agent);
        }
        self.after_stop();
    }

    /// Says once that the end is reached; stops the agents early when the last turn has ended.
    pub(crate) fn after_stop(&mut self) {
        if !self.stopping || self.stopped {
            return;
        }
        if self.agents.is_empty() {
            let goes = |it: &Session| it.leaving.is_some() && !it.is_opening();
            let is_stuck = self.is_storage_stuck();
            let is_done = |it: &Session| (it.gate.is_clear() || is_stuck) && !goes(it);
            if self.sessions.values().all(is_done) && self.forks.is_empty() {
                let events = self.unwritten_events();
                if 0 < events {
                    self.note(Note::EventsUnwritten { events });
                }
                self.summarize_all();
                self.stopped = true;
                self.outputs.push_back(Output::Stopped);
            }
        } else if self.running().next().is_none() && self.agents.values().any(|it| !it.stopping) {
            self.stop_agents();
        }
    }
}
