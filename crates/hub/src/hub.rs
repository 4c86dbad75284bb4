//! The hub: one input at a time, dispatched to conn, agent or session, leaving outputs in order.

use crate::{
    AgentId, Config, ConnId, Input, Note, Output, Seq, SessionId, Time,
    agent::{Agent, Breaker, Shape, Start},
    budget::ByteOwner,
    context::Context,
    limits,
    log::{AppendedEvent, Texts},
    peer::Conn,
    session::{Fork, KeyIndex, Session},
    storage::StorageState,
    tenant::Tenancy,
    timer::Timer,
};
use bytes::Bytes;
use jackfield_events::{AgentName, EventBody, SessionSummary, TenantName};
use jackfield_protocol::{Fault, is_planted};
use std::collections::{BTreeMap, VecDeque};

/// A session as the journal holds it: the state at its last durable event.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub session: SessionId,
    pub state: SessionSummary,
}

#[derive(Debug)]
pub struct Hub {
    pub(crate) cx: Context,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) agents: BTreeMap<AgentId, Agent>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Sessions that are being copied, by the id of the copy.
    pub(crate) forks: BTreeMap<SessionId, Fork>,
    /// Which session has which request key.
    pub(crate) key_index: KeyIndex,
    /// Agent starts that wait for a free process slot, in order.
    pub(crate) starts: VecDeque<Start>,
    /// What warm processes are kept for.
    pub(crate) warm: Vec<Shape>,
    /// Circuit breakers of agents whose processes failed lately, by name.
    pub(crate) breakers: BTreeMap<AgentName, Breaker>,
    /// Tenants whose clients have connected.
    pub(crate) tenants: BTreeMap<TenantName, Tenancy>,
    pub(crate) storage: StorageState,
    next_agent: u64,
    stopped: bool,
    /// Clients that send nothing more and still wait for answers.
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
        let mut cx = Context::new(config, now);
        cx.shared_texts = texts;
        // Imports that the end of the last daemon cut off: no client knows them.
        cx.outputs.extend(cut.into_iter().map(|it| Output::Delete { session: it.session }));
        let mut hub = Hub {
            cx,
            conns: BTreeMap::new(),
            agents: BTreeMap::new(),
            sessions,
            forks: BTreeMap::new(),
            key_index: KeyIndex::default(),
            starts: VecDeque::new(),
            warm: Vec::new(),
            breakers: BTreeMap::new(),
            tenants: BTreeMap::new(),
            storage: StorageState::default(),
            next_agent: 0,
            stopped: false,
            finished: 0,
        };
        hub.index_all_keys();
        hub.settle_interrupted();
        hub
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        assert!(self.cx.outputs.is_empty(), "drain the outputs before the next input");
        self.cx.now = self.cx.now.max(now);
        match input {
            Input::ClientOpened { conn, peer } => {
                let outbox = self.cx.outbox_bytes.charge_unchecked(&ByteOwner::default(), 0);
                let known = self.conns.insert(conn, Conn::new(peer, outbox));
                assert!(known.is_none(), "a conn id is used once");
            }
            Input::ClientSpoke { conn, frame } => self.on_client(conn, &frame),
            Input::ClientSentInvalidFrame { conn, fault } => self.on_invalid_frame(conn, &fault),
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
                (self.cx.config.agents, self.cx.config.pools) = (agents, pools);
                self.forget_shapes();
            }
            Input::SettingsChanged { default_agent, sleep, liveness } => {
                self.cx.config.default_agent = default_agent;
                (self.cx.config.sleep, self.cx.config.liveness) = (sleep, liveness);
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
                let at = self.cx.now.plus(limits::APPEND_RETRY_MS);
                self.cx.timers.set(at, Timer::ReadRetry(session, conn));
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
            Input::PolicyChanged { policies } => self.cx.config.policies = policies,
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
        self.cx.outputs.pop_front()
    }

    /// When the hub wants [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.cx.timers.next()
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
        self.sessions.get(id).map(Session::summary)
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
        self.cx.outputs.push_back(Output::Note(note));
    }

    pub(crate) fn send(&mut self, id: ConnId, text: Bytes) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.outbox.resize(conn.outbox.bytes() + text.len());
        self.cx.outputs.push_back(Output::ToClient { conn: id, text });
    }

    /// Writes a fact down. It is heard when the journal has it.
    pub(crate) fn append(&mut self, id: &SessionId, body: EventBody) -> Seq {
        self.append_at(id, self.cx.now, body)
    }

    /// The same for a fact that has a time of its own.
    pub(crate) fn append_at(&mut self, id: &SessionId, at: Time, body: EventBody) -> Seq {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        let AppendedEvent { event, is_stored_now, summary, needs_summary_timer } =
            session.log.append_event(at, body);
        let seq = event.seq;
        if matches!(
            event.body,
            EventBody::Queued(_) | EventBody::Prompted(_) | EventBody::Withdrawn(_)
        ) {
            session.count_queue(&self.cx.retained_bytes);
        }
        if needs_summary_timer {
            let at = self.cx.now.plus(limits::SUMMARY_MS);
            self.cx.timers.set(at, Timer::Summary(id.clone()));
        }
        let may_have_key = matches!(
            event.body,
            EventBody::Opened(_) | EventBody::Queued(_) | EventBody::Prompted(_)
        );
        if is_stored_now {
            let not_durable = is_planted("publish-before-durable").then(|| event.clone());
            self.cx.outputs.push_back(Output::Append { session: id.clone(), event, summary });
            if let Some(event) = not_durable {
                self.publish(id, &event);
            }
        }
        if may_have_key {
            self.index_last_key(id);
        }
        seq
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.cx.timers.due(self.cx.now) {
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
        if self.cx.is_stopping {
            return self.stop_agents(); // Asked twice: now.
        }
        self.cx.is_stopping = true;
        let running: Vec<SessionId> = self.running().collect();
        for session in &running {
            self.stop_turn(session);
        }
        let sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for session in &sessions {
            if !is_planted("forget-waiting-prompts-at-stop") {
                self.refuse_waiting(session, &Fault::Stopping);
            }
        }
        self.refuse_starts();
        if running.is_empty() {
            self.stop_agents();
        } else {
            self.cx.timers.set(self.cx.now.plus(limits::STOP_GRACE_MS), Timer::StopGrace);
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
        if !self.cx.is_stopping || self.stopped {
            return;
        }
        if self.agents.is_empty() {
            let goes = |it: &Session| it.leaving.is_some() && !it.is_opening();
            let is_stuck = self.is_storage_stuck();
            let is_done = |it: &Session| (it.log.is_all_durable() || is_stuck) && !goes(it);
            if self.sessions.values().all(is_done) && self.forks.is_empty() {
                let events = self.unwritten_events();
                if 0 < events {
                    self.note(Note::EventsUnwritten { events });
                }
                self.summarize_all();
                self.stopped = true;
                self.cx.outputs.push_back(Output::Stopped);
            }
        } else if self.running().next().is_none() && self.agents.values().any(|it| !it.stopping) {
            self.stop_agents();
        }
    }
}
