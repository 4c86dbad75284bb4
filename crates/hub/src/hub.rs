//! The hub: dispatches one input at a time to the client, agent or session that it concerns.

use crate::{
    AgentId, Config, ConnId, Gauges, Input, Note, Output, Seq, SessionId, Time, Usage,
    context::HubContext, limits, parts::HubParts, session::Session, sessions::Sessions,
    timer::HubTimer,
};
use jackfield_events::{AgentSessionId, SessionSummary, TenantName};
use jackfield_policy::RuleEffect;
use jackfield_protocol::{Fault, is_planted};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// A session as it is in the journal: the summary at its last durable event.
#[derive(Debug, Clone)]
pub struct Recovered {
    pub session: SessionId,
    pub state: SessionSummary,
}

/// A session whose agent runs in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxedSession {
    pub id: SessionId,
    pub agent_session_id: AgentSessionId,
    pub profile: Arc<str>,
}

#[derive(Debug)]
pub struct Hub {
    pub(crate) sessions: Sessions,
    pub(crate) parts: HubParts,
    /// [`Output::Stopped`] was sent.
    stopped: bool,
}

impl Hub {
    /// Starts with the sessions of the journal. Turns and requests that were open belonged to agents that have ended:
    /// they are ended in the log, exactly once.
    pub fn new(config: Config, now: Time, recovered: impl IntoIterator<Item = Recovered>) -> Hub {
        let mut cx = HubContext::new(config, now);
        let (cut, whole): (Vec<_>, Vec<_>) =
            recovered.into_iter().partition(|it| it.state.importing);
        // Imports that the end of the last daemon cut off: no client knows them.
        cx.outputs.extend(cut.into_iter().map(|it| Output::Delete { session: it.session }));
        let sessions: Vec<Session> = whole
            .into_iter()
            .map(|mut it: Recovered| {
                cx.shared_texts.share_all(&mut it.state);
                Session::recovered(it.session, it.state)
            })
            .collect();
        let sessions = Sessions::recovered(&mut cx, sessions);
        Hub { sessions, parts: HubParts::new(cx), stopped: false }
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        assert!(self.parts.cx.outputs.is_empty(), "drain the outputs before the next input");
        self.parts.cx.now = self.parts.cx.now.max(now);
        self.dispatch_input(input);
        self.sessions.handle_messages(&mut self.parts);
        self.finish_input();
    }

    fn dispatch_input(&mut self, input: Input) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        match input {
            Input::ClientOpened { conn, peer } => {
                parts.clients.add_connection(&parts.cx, conn, peer);
            }
            Input::ClientSpoke { conn, frame } => self.on_client_message(conn, &frame),
            Input::ClientSentInvalidFrame { conn, fault } => {
                parts.clients.answer_invalid_frame(&mut parts.cx, conn, &fault);
            }
            Input::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            Input::ClientFinished { conn } => {
                parts.clients.on_client_finished(&mut parts.cx, conn);
            }
            Input::ClientGone { conn } => sessions.on_client_gone(parts, conn),
            Input::AgentStarted { agent, pid } => {
                parts.agents.on_process_started(&mut parts.cx, agent, pid);
            }
            Input::AgentNeverAsks { agent } => parts.agents.set_never_asks(agent),
            Input::AgentVariantChosen { agent, variant, next } => {
                parts.agents.set_variant(agent, variant, next);
            }
            Input::AgentSandboxed { agent, sandbox: it } => parts.agents.set_sandbox(agent, it),
            Input::ConnectionRefused { agent, refused: it } => {
                sessions.on_connection_refused(parts, agent, &it);
            }
            Input::HostAsked { agent, request } => sessions.on_host_asked(parts, agent, &request),
            Input::AgentSpoke { agent, frame } => {
                sessions.on_agent_message(parts, agent, frame);
                parts.charge_agent_message(agent);
            }
            Input::AgentSentOversized { agent, line } => {
                sessions.on_oversized_message(parts, agent, &line);
            }
            Input::AgentGone { agent, exit } => sessions.on_agent_gone(parts, agent, &exit),
            Input::AgentsChanged { agents, pools } => parts.change_agents(agents, pools),
            Input::SettingsChanged { default_agent, sleep, liveness, mcp } => {
                parts.cx.config.change_settings(default_agent, sleep, liveness, mcp);
            }
            Input::Durable { session, upto } => self.on_durable(&session, upto),
            Input::AppendFailed { session, why } => sessions.on_append_failed(parts, &session, why),
            Input::Read { conn, session, after, events } => {
                sessions.with(&session, |it| it.on_read(parts, conn, after, &events));
            }
            Input::ReadFailed { conn, session, after, why, damaged: true } => {
                sessions.with(&session, |it| it.on_damaged_read(parts, conn, after, &why));
            }
            Input::ReadFailed { conn, session, .. } => parts.cx.schedule_read_retry(session, conn),
            Input::PageRead { page, events } => sessions.on_log_page_read(parts, page, events),
            Input::Recalled { session, after, events } => {
                sessions.with(&session, |it| it.on_recalled(parts, after, &events));
            }
            Input::RecallFailed { session, why } => {
                sessions.with(&session, |it| it.on_recall_failed(parts, &why));
            }
            Input::Copied { to, state } => sessions.on_copied(parts, &to, *state),
            Input::CopyFailed { to, why } => sessions.on_copy_failed(parts, &to, &why),
            Input::Adopted { session, state, from } => {
                sessions.on_taken_over(&mut parts.cx, &session, *state, from);
            }
            Input::ReleaseSession { session } => sessions.on_release_requested(parts, &session),
            Input::TenantUsageReported { tenants } => parts.tenants.set_usage_elsewhere(&tenants),
            Input::PolicyChanged { policies } => parts.cx.config.policies = policies,
            Input::Pressure => sessions.on_memory_pressure(parts),
            Input::Served { agent, frame } => sessions.on_request_served(parts, agent, &frame),
            Input::ListenersChanged { conn, request, result } => {
                parts.clients.answer_request(&mut parts.cx, conn, &request, result.as_deref());
            }
            Input::Tick => self.on_tick(),
            Input::Stop => self.on_stop(),
        }
    }

    /// Handles what any input may have caused.
    fn finish_input(&mut self) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        while let Some(conn) = parts.clients.next_closed() {
            sessions.on_client_gone(parts, conn);
            sessions.handle_messages(parts);
        }
        if !parts.agents.starts.is_empty() {
            sessions.run_queued_starts(parts);
            sessions.handle_messages(parts);
        }
        if 0 < parts.clients.finished {
            sessions.close_finished_clients(parts);
            sessions.handle_messages(parts);
        }
        sessions.check_storage(parts);
        sessions.schedule_changes(parts);
        self.check_stop();
    }

    /// The journal has all events up to `upto`.
    fn on_durable(&mut self, id: &SessionId, upto: Seq) {
        let parts = &mut self.parts;
        self.sessions.with(id, |it| {
            it.release_events(parts, upto);
            it.limit_pending_events(parts);
            it.on_all_durable(parts);
        });
    }

    /// A client has read: its sessions may go on.
    fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        let parts = &mut self.parts;
        for session in parts.clients.count_written_bytes(&parts.cx, conn, bytes) {
            self.sessions.with(&session, |it| it.resume_subscriber(&mut parts.cx, conn));
        }
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
        self.sessions.iter().map(|it| &it.id)
    }

    /// The summary of a session.
    pub fn session(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.sessions.get(id).map(Session::summary)
    }

    /// The session of an agent in a sandbox, if it serves exactly one.
    pub fn sandboxed_session_of(&self, agent: AgentId) -> Option<SandboxedSession> {
        let session = self.only_session_of(agent)?;
        Some(SandboxedSession {
            id: session.id.clone(),
            agent_session_id: session.agent_session_id().clone(),
            profile: self.parts.agents.sandbox_profile_of(agent)?,
        })
    }

    /// The effect of the rules on a permission request in the only session of an agent; none if no rule matches.
    pub fn judge_request(&self, agent: AgentId, params: &Value) -> Option<RuleEffect> {
        self.only_session_of(agent)?.judge_tool_call(&self.parts.cx, params).effect
    }

    fn only_session_of(&self, agent: AgentId) -> Option<&Session> {
        let [session] = &*self.parts.agents.processes.get(&agent)?.slots.sessions else {
            return None;
        };
        self.sessions.get(session)
    }

    /// The working directories of the sessions that an agent serves.
    pub fn folders_of(&self, agent: AgentId) -> impl Iterator<Item = &str> {
        let sessions =
            self.parts.agents.processes.get(&agent).into_iter().flat_map(|it| &it.slots.sessions);
        sessions.filter_map(|it| self.session(it)).map(|it| &*it.cwd)
    }

    pub fn gauges(&self) -> Gauges {
        self.sessions.gauges(&self.parts)
    }

    /// What each tenant uses here.
    pub fn usage(&self) -> BTreeMap<TenantName, Usage> {
        self.sessions.usage(&self.parts)
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.parts.cx.timers.due(self.parts.cx.now) {
            self.on_timer(timer);
            self.sessions.handle_messages(&mut self.parts);
        }
    }

    fn on_timer(&mut self, timer: HubTimer) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        match timer {
            HubTimer::AgentStart(agent, request) => {
                sessions.on_start_deadline(parts, agent, request);
            }
            HubTimer::Setting(agent, request) => {
                sessions.on_setting_deadline(parts, agent, request);
            }
            HubTimer::Wake(id) => sessions.with(&id, |it| it.advance(parts)),
            HubTimer::Restore(id) => sessions.with(&id, |it| it.on_restore_timer(parts)),
            HubTimer::Cancel(id, turn, step) => {
                sessions.with(&id, |it| it.on_cancel_deadline(parts, turn, step));
            }
            HubTimer::AskRule(id, ask) => {
                sessions.with(&id, |it| it.on_user_request_timeout(parts, ask));
            }
            HubTimer::AppendRetry(id) => sessions.with(&id, |it| it.retry_appends(parts)),
            HubTimer::Summary(id) => sessions.with(&id, |it| it.on_summary_due(&mut parts.cx)),
            HubTimer::ReadRetry(id, conn) => {
                sessions.with(&id, |it| it.request_read(&mut parts.cx, conn));
            }
            HubTimer::LogPage(page) => sessions.continue_log_page(parts, page),
            HubTimer::Changes => sessions.send_changes(parts),
            HubTimer::Silence(id) => sessions.with(&id, |it| it.on_silence_timer(parts)),
            HubTimer::Idle(id) => sessions.with(&id, |it| it.on_idle_timer(parts)),
            HubTimer::Unattended(id) => sessions.with(&id, |it| it.on_unattended_timer(parts)),
            HubTimer::WarmIdle(agent) => parts.agents.on_warm_agent_idle(&mut parts.cx, agent),
            HubTimer::Warm => parts.agents.start_warm_agents(&mut parts.cx),
            HubTimer::Rate(tenant) => parts.on_rate_timer(&tenant),
            HubTimer::StopGrace => parts.agents.stop_all(&mut parts.cx),
        }
    }

    /// Stops the hub: running turns are canceled and then interrupted, agents are stopped, and everything is stored.
    fn on_stop(&mut self) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        if parts.cx.is_stopping {
            return parts.agents.stop_all(&mut parts.cx); // Asked twice: now.
        }
        parts.cx.is_stopping = true;
        let has_turn = |it: &&mut Session| it.turn.is_some();
        sessions.iter_mut().filter(has_turn).for_each(|it| it.cancel_turn_at_agent(parts));
        if !is_planted("forget-waiting-prompts-at-stop") {
            sessions.iter_mut().for_each(|it| it.refuse_waiting(parts, &Fault::Stopping));
        }
        sessions.refuse_queued_starts(parts);
        if sessions.iter().any(|it| it.turn.is_some()) {
            let deadline = parts.cx.now.plus(limits::STOP_GRACE_MS);
            parts.cx.timers.set(deadline, HubTimer::StopGrace);
        } else {
            parts.agents.stop_all(&mut parts.cx);
        }
    }

    /// Reports the end once it is reached. Stops the agents when the last turn has ended.
    fn check_stop(&mut self) {
        let (sessions, parts) = (&mut self.sessions, &mut self.parts);
        if !parts.cx.is_stopping || self.stopped {
            return;
        }
        if !parts.agents.processes.is_empty() {
            let has_turn = sessions.iter().any(|it| it.turn.is_some());
            if !has_turn && parts.agents.processes.values().any(|it| !it.stopping) {
                parts.agents.stop_all(&mut parts.cx);
            }
            return;
        }
        let is_stuck = parts.storage.is_stuck();
        let is_done = |it: &Session| {
            let is_releasing = it.release.is_some() && !it.is_opening();
            (it.log.is_all_durable() || is_stuck) && !is_releasing
        };
        if sessions.has_forks() || !sessions.iter().all(is_done) {
            return;
        }
        let events = sessions.count_pending_events();
        if 0 < events {
            parts.cx.note(Note::EventsUnwritten { events });
        }
        sessions.store_due_summaries(&mut parts.cx);
        self.stopped = true;
        parts.cx.outputs.push_back(Output::Stopped);
    }
}
