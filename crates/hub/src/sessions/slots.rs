//! Which session has which slot of an agent process, and what follows from that: free slots, the session ids of agents,
//! and when the output of a process is read again.

use super::Sessions;
use crate::{
    AgentId, Launch, Output, SessionId,
    agent::{Agent, PendingRequest, SlotOwner, describe_limit},
    parts::HubParts,
    session::Session,
};
use jackfield_events::{ForkOrigin, SessionSummary};
use jackfield_protocol::{Fault, Frame, is_planted};

impl Sessions {
    /// Finds a free slot in a running process: the one that served the session before, because it may still have its files
    /// open, else the one with the fewest slots in use.
    pub(super) fn take_free_slot(
        &self,
        parts: &mut HubParts,
        launch: &Launch,
        initialize_params: Option<&str>,
        owner: &SlotOwner,
    ) -> Option<AgentId> {
        let agent = self.find_free_slot(parts, launch, initialize_params, owner)?;
        parts.agents.processes.get_mut(&agent)?.slots.assign(owner.clone());
        Some(agent)
    }

    pub(super) fn find_free_slot(
        &self,
        parts: &HubParts,
        launch: &Launch,
        initialize_params: Option<&str>,
        owner: &SlotOwner,
    ) -> Option<AgentId> {
        let slots = parts.cx.config.sessions_per_process(&launch.name);
        if slots == 1 {
            return None;
        }
        let session = match owner {
            SlotOwner::Session(id) => self.by_id.get(id),
            SlotOwner::Client(_) => None,
        };
        let tenant = parts.clients.tenant_of_slot_owner(owner);
        let fits = |it: &Agent| {
            let taken = it.slots.taken();
            let has_room = !it.stopping
                && 0 < taken
                && taken < slots + usize::from(is_planted("one-session-too-many-per-agent"));
            let is_alike =
                it.is_started_as(launch) && it.initialize_params.as_deref() == initialize_params;
            // A process could leak what one tenant says to another.
            has_room
                && is_alike
                && (parts.clients.tenant_of_agent(it) == tenant
                    || is_planted("share-agent-between-tenants"))
        };
        let last = session.and_then(|it| it.last);
        let fitting = parts.agents.processes.iter().filter(|(_, it)| fits(it));
        let fitting =
            fitting.filter(|(_, it)| session.is_none_or(|of| !self.has_session_id_of(it, of)));
        let order = |(id, it): &(&AgentId, &Agent)| (last != Some(**id), it.slots.taken(), **id);
        fitting.min_by_key(order).map(|(id, _)| *id)
    }

    /// Whether a process already serves another session with the same id of the agent.
    fn has_session_id_of(&self, agent: &Agent, session: &Session) -> bool {
        let name = session.agent_session_id();
        !name.is_empty() && self.find_by_agent_session_id(agent, name).is_some()
    }

    /// The session of a process with this id of the agent.
    pub(super) fn find_by_agent_session_id(&self, agent: &Agent, name: &str) -> Option<SessionId> {
        let has_name = |id: &&SessionId| self.by_id.get(*id).is_some_and(|it| it.is_called(name));
        agent.slots.sessions.iter().find(has_name).cloned()
    }

    /// Whether a process may use this id for the session: no other session that it serves has it.
    pub(super) fn is_free_name(
        &self,
        parts: &HubParts,
        agent: AgentId,
        id: &SessionId,
        name: &str,
    ) -> bool {
        let agent = parts.agents.processes.get(&agent);
        let other = agent.and_then(|it| self.find_by_agent_session_id(it, name));
        !name.is_empty() && other.is_none_or(|it| it == *id)
    }

    /// The sessions that a process serves or is about to serve.
    pub(crate) fn served_by(&self, parts: &HubParts, agent: AgentId) -> Vec<SessionId> {
        let slots = parts.agents.processes.get(&agent).map(|it| &it.slots.sessions);
        let is_served =
            |id: &&SessionId| self.by_id.get(*id).is_some_and(|it| it.agent == Some(agent));
        slots.into_iter().flatten().filter(is_served).cloned().collect()
    }

    /// Tries the next restore step of a session.
    pub(super) fn try_restore_step(&mut self, parts: &mut HubParts, id: &SessionId) {
        let Some(summary) = self.by_id.get(id).map(Session::summary) else { return };
        let is_at_fork_point =
            summary.forked.as_ref().is_some_and(|it| self.is_at_fork_point(it, summary));
        self.with(id, |it| it.try_next_step(parts, is_at_fork_point));
    }

    /// An agent forks the current state of its session, so nothing may have happened there since.
    fn is_at_fork_point(&self, origin: &ForkOrigin, fork: &SessionSummary) -> bool {
        self.by_id.get(&*origin.session).is_some_and(|it| {
            let source = it.summary();
            origin.whole
                && source.turns == fork.turns
                && source.open_turn.is_none()
                && source.agent_session == origin.agent_session
        })
    }

    /// An agent has not answered a request of its start in time. If it serves other sessions, only this one gives up;
    /// otherwise it is stopped.
    pub(crate) fn on_start_deadline(&mut self, parts: &mut HubParts, id: AgentId, request: u64) {
        let Some(agent) = parts.agents.processes.get(&id) else { return };
        let Some(pending) = agent.waiting.get(&request) else { return };
        let now = parts.cx.now;
        let Some(why) = parts.agents.describe_overdue_start(now, id, request) else { return };
        match pending.session().filter(|it| agent.slots.has(it) && !agent.slots.is_alone(it)) {
            Some(session) => {
                let session = session.clone();
                self.with(&session, |it| it.on_agent_unresponsive(parts, id, why));
            }
            None if agent.next_variant().is_some() && !agent.stopping => {
                self.refuse_agent(parts, id, &why);
            }
            None => parts.agents.stop_overdue_agent(&mut parts.cx, id, why),
        }
    }

    /// An agent has not answered a client's request for a setting in time. The client gets an error, and the answer is
    /// ignored if it still comes.
    pub(crate) fn on_setting_deadline(&mut self, parts: &mut HubParts, id: AgentId, request: u64) {
        let Some(limit) = parts.cx.config.liveness.setting_ms_max else { return };
        let Some(agent) = parts.agents.processes.get_mut(&id) else { return };
        let is_setting =
            |it: &PendingRequest| matches!(it, PendingRequest::Client { setting: Some(_), .. });
        if !agent.waiting.get(&request).is_some_and(is_setting) {
            return;
        }
        let Some(PendingRequest::Client { conn, id, session, setting: Some(setting), .. }) =
            agent.waiting.remove(&request)
        else {
            return;
        };
        let fault = Fault::NoReply {
            agent: agent.launch.name.to_string(),
            method: setting.method().unwrap_or_default().into_owned(),
            limit: describe_limit(limit),
        };
        match session.and_then(|it| self.by_id.get_mut(&it)) {
            Some(session) => session.answer_after_log(parts, conn, &Frame::error_for(&id, &fault)),
            None => parts.clients.answer_request(&mut parts.cx, conn, &id, Err(&fault)),
        }
    }

    /// Resumes reading an agent, unless one of its sessions still has too many pending events.
    pub(super) fn resume_agent(&self, parts: &mut HubParts, id: AgentId) {
        let low = parts.cx.config.limits.held_bytes_low;
        let is_behind =
            |id: &SessionId| self.by_id.get(id).is_some_and(|it| low <= it.log.pending_bytes());
        let behind = self.served_by(parts, id).iter().any(is_behind);
        let agent = parts.agents.processes.get_mut(&id).filter(|it| it.paused && !behind);
        let Some(agent) = agent else { return };
        agent.paused = false;
        if !parts.tenants.is_paused(id) {
            parts.cx.outputs.push_back(Output::ResumeAgent { agent: id });
        }
    }
}
