//! The hub: dispatches one input at a time to the client, agent or session that it concerns.

use crate::{
    AgentId, Config, ConnId, Input, Note, Output, Seq, SessionId, Time,
    agent::Agents,
    context::HubContext,
    limits,
    log::Effect,
    peer::Clients,
    session::{Session, Sessions},
    storage::StorageState,
    tenant::TenantState,
    timer::HubTimer,
};
use jackfield_events::{SessionSummary, TenantName};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::collections::BTreeMap;

/// A session as it is in the journal: the summary at its last durable event.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub session: SessionId,
    pub state: SessionSummary,
}

#[derive(Debug)]
pub struct Hub {
    pub(crate) sessions: Sessions,
    pub(crate) parts: HubParts,
    /// [`Output::Stopped`] was sent.
    stopped: bool,
}

/// Everything that a session works with, without the other sessions.
#[derive(Debug)]
pub(crate) struct HubParts {
    pub(crate) cx: HubContext,
    pub(crate) clients: Clients,
    pub(crate) agents: Agents,
    /// Tenants whose clients have connected.
    pub(crate) tenants: BTreeMap<TenantName, TenantState>,
    pub(crate) storage: StorageState,
}

impl Hub {
    /// Starts with the sessions of the journal. Turns and requests that were open belonged to agents that have ended:
    /// they are ended in the log, exactly once.
    pub fn new(config: Config, now: Time, recovered: impl IntoIterator<Item = Recovered>) -> Hub {
        let mut cx = HubContext::new(config, now);
        let session = |mut it: Recovered| {
            cx.shared_texts.share_all(&mut it.state);
            (it.session.clone(), Session::recovered(it.session, it.state))
        };
        let (cut, whole): (Vec<_>, Vec<_>) =
            recovered.into_iter().partition(|it| it.state.importing);
        let sessions = whole.into_iter().map(session).collect();
        // Imports that the end of the last daemon cut off: no client knows them.
        cx.outputs.extend(cut.into_iter().map(|it| Output::Delete { session: it.session }));
        let mut hub = Hub {
            sessions: Sessions { by_id: sessions, ..Sessions::default() },
            parts: HubParts {
                cx,
                clients: Clients::default(),
                agents: Agents::default(),
                tenants: BTreeMap::new(),
                storage: StorageState::default(),
            },
            stopped: false,
        };
        hub.sessions.index_all_keys(&mut hub.parts.cx);
        hub.sessions.end_interrupted_turns(&mut hub.parts.cx);
        hub
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        assert!(self.parts.cx.outputs.is_empty(), "drain the outputs before the next input");
        self.parts.cx.now = self.parts.cx.now.max(now);
        match input {
            Input::ClientOpened { conn, peer } => {
                self.parts.clients.add_connection(&self.parts.cx, conn, peer);
            }
            Input::ClientSpoke { conn, frame } => self.on_client(conn, &frame),
            Input::ClientSentInvalidFrame { conn, fault } => {
                self.parts.clients.answer_invalid_frame(&mut self.parts.cx, conn, &fault);
            }
            Input::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            Input::ClientFinished { conn } => {
                self.parts.clients.on_client_finished(&mut self.parts.cx, conn);
            }
            Input::ClientGone { conn } => self.on_client_gone(conn),
            Input::AgentStarted { agent, pid } => self.parts.agents.set_pid(agent, pid),
            Input::AgentNeverAsks { agent } => self.parts.agents.set_never_asks(agent),
            Input::AgentSpoke { agent, frame } => {
                self.on_agent(agent, frame);
                self.pay(agent);
            }
            Input::AgentSentOversized { agent, line } => self.on_oversized(agent, &line),
            Input::AgentGone { agent, exit } => self.on_agent_gone(agent, &exit),
            Input::AgentsChanged { agents, pools } => {
                (self.parts.cx.config.agents, self.parts.cx.config.pools) = (agents, pools);
                self.parts.agents.forget_warm_shapes(&mut self.parts.cx);
            }
            Input::SettingsChanged { default_agent, sleep, liveness } => {
                self.parts.cx.config.default_agent = default_agent;
                (self.parts.cx.config.sleep, self.parts.cx.config.liveness) = (sleep, liveness);
            }
            Input::Durable { session, upto } => self.on_durable(&session, upto),
            Input::AppendFailed { session, why } => self.on_append_failed(&session, why),
            Input::Read { conn, session, after, events } => {
                self.with_session(&session, |it, parts| it.on_read(parts, conn, after, &events));
            }
            Input::ReadFailed { conn, session, after, why, damaged: true } => self
                .with_session(&session, |it, parts| it.on_damaged_read(parts, conn, after, &why)),
            Input::ReadFailed { conn, session, .. } => {
                let at = self.parts.cx.now.plus(limits::APPEND_RETRY_MS);
                self.parts.cx.timers.set(at, HubTimer::ReadRetry(session, conn));
            }
            Input::Recalled { session, after, events } => {
                self.on_recalled(&session, after, &events);
            }
            Input::RecallFailed { session, why } => self.on_recall_failed(&session, &why),
            Input::Copied { to, state } => self.on_copied(&to, *state),
            Input::CopyFailed { to, why } => self.on_copy_failed(&to, &why),
            Input::Adopted { session, state, from } => {
                self.sessions.on_taken_over(&mut self.parts.cx, &session, *state, from);
            }
            Input::LetGo { session } => self.on_session_release(&session),
            Input::Elsewhere { tenants } => self.on_elsewhere(&tenants),
            Input::PolicyChanged { policies } => self.parts.cx.config.policies = policies,
            Input::Pressure => self.on_pressure(),
            Input::Served { agent, frame } => self.on_served(agent, &frame),
            Input::Tick => self.on_tick(),
            Input::Stop => self.on_stop(),
        }
        self.finish_input();
    }

    /// Handles what any input may have caused.
    fn finish_input(&mut self) {
        while let Some(conn) = self.parts.clients.next_closed() {
            self.on_client_gone(conn);
        }
        if !self.parts.agents.starts.is_empty() {
            self.admit();
        }
        if 0 < self.parts.clients.finished {
            self.close_finished();
        }
        self.check_storage();
        self.after_stop();
    }

    /// Runs work on a session, if it exists.
    pub(crate) fn with_session(
        &mut self,
        id: &SessionId,
        work: impl FnOnce(&mut Session, &mut HubParts),
    ) {
        if let Some(session) = self.sessions.by_id.get_mut(id) {
            work(session, &mut self.parts);
        }
    }

    /// The journal has all events up to `upto`.
    fn on_durable(&mut self, id: &SessionId, upto: Seq) {
        self.with_session(id, |it, parts| it.release_events(parts, upto));
        self.ease_agent(id);
        self.on_all_written(id);
    }

    /// A client has read: its sessions may go on.
    fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        for session in self.parts.clients.count_written_bytes(&self.parts.cx, conn, bytes) {
            self.with_session(&session, |it, parts| it.resume_subscriber(&mut parts.cx, conn));
        }
    }

    /// Runs an effect of a session now, or when all its events are durable.
    pub(crate) fn after_log(&mut self, id: &SessionId, effect: Effect) {
        self.with_session(id, |it, parts| it.run_after_log(parts, effect));
    }

    /// Answers a request about a session, after the events before the answer.
    pub(crate) fn answer_in(&mut self, id: &SessionId, conn: ConnId, frame: &Frame) {
        self.parts.clients.finish_request(conn, frame.id().expect("an answer has an id"));
        self.after_log(id, Effect::ToClient { conn, text: frame.bytes().clone() });
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.parts.cx.outputs.pop_front()
    }

    /// When the hub needs the next [`Input::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.parts.cx.timers.next()
    }

    /// Whether no agent runs and no client is connected, so that the daemon may end.
    pub fn is_idle(&self) -> bool {
        self.parts.clients.connections.is_empty()
            && self.parts.agents.processes.is_empty()
            && self.parts.agents.starts.is_empty()
    }

    /// All sessions.
    pub fn session_ids(&self) -> impl Iterator<Item = &SessionId> {
        self.sessions.by_id.keys()
    }

    /// The summary of a session.
    pub fn session(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.sessions.by_id.get(id).map(Session::summary)
    }

    /// The working directories of the sessions that an agent serves.
    pub fn folders_of(&self, agent: AgentId) -> impl Iterator<Item = &str> {
        let sessions =
            self.parts.agents.processes.get(&agent).into_iter().flat_map(|it| &it.slots.sessions);
        sessions.filter_map(|it| self.session(it)).map(|it| &*it.cwd)
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.parts.cx.timers.due(self.parts.cx.now) {
            match timer {
                HubTimer::AgentStart(agent, step) => self.on_start_deadline(agent, step),
                HubTimer::Wake(session) => self.pump(&session),
                HubTimer::Restore(session) => self.on_restore_time(&session),
                HubTimer::Cancel(session, turn, rung) => {
                    self.on_cancel_deadline(&session, turn, rung);
                }
                HubTimer::AskRule(session, ask) => self.on_ask_unanswered(&session, ask),
                HubTimer::AppendRetry(session) => self.append_again(&session),
                HubTimer::Summary(session) => {
                    self.with_session(&session, |it, parts| it.on_summary_due(&mut parts.cx));
                }
                HubTimer::ReadRetry(session, conn) => self.with_session(&session, |it, parts| {
                    it.request_read(&mut parts.cx, conn);
                }),
                HubTimer::Silence(session) => self.on_silence(&session),
                HubTimer::Idle(session) => self.on_idle(&session),
                HubTimer::Unattended(session) => self.on_unattended(&session),
                HubTimer::WarmIdle(agent) => {
                    self.parts.agents.on_warm_agent_idle(&mut self.parts.cx, agent);
                }
                HubTimer::Warm => self.parts.agents.start_warm_agents(&mut self.parts.cx),
                HubTimer::Rate(tenant) => self.on_rate(&tenant),
                HubTimer::StopGrace => self.stop_agents(),
            }
        }
    }

    /// Stops the hub: running turns are canceled and then interrupted, agents are stopped, and everything is stored.
    fn on_stop(&mut self) {
        if self.parts.cx.is_stopping {
            return self.stop_agents(); // Asked twice: now.
        }
        self.parts.cx.is_stopping = true;
        let running: Vec<SessionId> = self.sessions.running_sessions().collect();
        for session in &running {
            self.stop_turn(session);
        }
        let sessions: Vec<SessionId> = self.sessions.by_id.keys().cloned().collect();
        for session in &sessions {
            if !is_planted("forget-waiting-prompts-at-stop") {
                self.refuse_waiting(session, &Fault::Stopping);
            }
        }
        self.refuse_starts();
        if running.is_empty() {
            self.stop_agents();
        } else {
            self.parts
                .cx
                .timers
                .set(self.parts.cx.now.plus(limits::STOP_GRACE_MS), HubTimer::StopGrace);
        }
    }

    fn stop_agents(&mut self) {
        let agents: Vec<AgentId> = self.parts.agents.processes.keys().copied().collect();
        for agent in agents {
            self.parts.agents.stop_agent(&mut self.parts.cx, agent);
        }
    }

    /// Reports the end once it is reached. Stops the agents when the last turn has ended.
    pub(crate) fn after_stop(&mut self) {
        if !self.parts.cx.is_stopping || self.stopped {
            return;
        }
        if self.parts.agents.processes.is_empty() {
            let goes = |it: &Session| it.release.is_some() && !it.is_opening();
            let is_stuck = self.parts.storage.is_stuck();
            let is_done = |it: &Session| (it.log.is_all_durable() || is_stuck) && !goes(it);
            if self.sessions.by_id.values().all(is_done) && self.sessions.forks.is_empty() {
                let events = self.sessions.count_pending_events();
                if 0 < events {
                    self.parts.cx.note(Note::EventsUnwritten { events });
                }
                self.sessions.store_due_summaries(&mut self.parts.cx);
                self.stopped = true;
                self.parts.cx.outputs.push_back(Output::Stopped);
            }
        } else if self.sessions.running_sessions().next().is_none()
            && self.parts.agents.processes.values().any(|it| !it.stopping)
        {
            self.stop_agents();
        }
    }
}
