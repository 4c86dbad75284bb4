//! The slot of a session in an agent process: it is assigned, sends requests, and is given up.

use super::{Session, SessionRestore, SessionStage};
use crate::{
    AgentId, ConnId, Output,
    agent::{Agent, PendingRequest, SlotOwner},
    limits,
    log::Effect,
    message::HubMessage,
    parts::HubParts,
    timer::HubTimer,
};
use jackfield_protocol::{Fault, Frame, acp::Method};

impl Session {
    /// The session has a process. If that is ready, the session is requested.
    pub(crate) fn assign_agent(&mut self, parts: &mut HubParts, agent: AgentId) {
        if matches!(self.stage, SessionStage::Asleep) {
            self.stage = SessionStage::Restoring(SessionRestore::default());
            self.restore_history = super::RestoreHistory::default();
        }
        (self.agent, self.last) = (Some(agent), None);
        self.mark_agent_used(parts, true);
        if parts.agents.processes.get(&agent).is_some_and(Agent::is_ready) {
            self.on_agent_ready(parts, agent);
        }
    }

    /// The agent of a session that is being opened or restored is ready.
    pub(crate) fn on_agent_ready(&mut self, parts: &mut HubParts, agent: AgentId) {
        match &self.stage {
            SessionStage::Opening(opening) => {
                let Some(process) = parts.agents.processes.get(&agent) else { return };
                match opening.agent_params(parts, process) {
                    Ok(params) => {
                        let pending = PendingRequest::New(self.id.clone());
                        self.send_agent_request(parts, agent, Method::SessionNew, &params, pending);
                    }
                    Err(fault) => {
                        self.leave_agent(parts, agent, "");
                        self.fail_opening(parts, &fault);
                    }
                }
            }
            SessionStage::Restoring(_) => {
                parts.cx.post(HubMessage::TryRestoreStep(self.id.clone()));
            }
            SessionStage::Importing(_) | SessionStage::Asleep | SessionStage::Bound => {}
        }
    }

    /// Sends a request of the hub to the agent.
    pub(super) fn send_agent_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        method: Method,
        params: &str,
        pending: PendingRequest,
    ) {
        let is_start = pending.is_start();
        let Some(it) = parts.agents.processes.get_mut(&agent) else { return };
        let hub_id = it.expect(pending);
        if let Some(limit) = it.start_limits.opening.filter(|_| is_start) {
            let deadline = parts.cx.now.plus(limit);
            parts.cx.timers.set(deadline, HubTimer::AgentStart(agent, hub_id));
        }
        self.mark_agent_used(parts, is_start);
        let frame = Frame::request(&hub_id.to_string(), method.name(), params);
        parts.cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
    }

    /// Forwards a request of a client to the agent. Requests to a suspended session restore it and wait.
    pub(crate) fn forward_request(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        frame: Frame,
    ) -> Result<(), Fault> {
        if let (SessionStage::Bound, Some(agent)) = (&self.stage, self.agent) {
            self.send_client_request(parts, agent, conn, &frame);
            return Ok(());
        }
        if parts.cx.config.limits.parked_max <= self.parked.len() {
            return Err(Fault::Overloaded { what: "too many requests wait for the agent".into() });
        }
        let charge = parts.cx.retained_bytes.charge(&self.kept, frame.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        self.parked.push_back((conn, frame, charge));
        self.advance(parts);
        Ok(())
    }

    /// Sends a request of a client to the agent with a request id of the hub.
    pub(super) fn send_client_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        conn: ConnId,
        frame: &Frame,
    ) {
        let session = Some((&self.id, &self.summary().agent_session));
        if let Some(text) = parts.forward_request(agent, session, conn, frame) {
            self.run_after_log(parts, Effect::ToAgent { agent, text });
        }
    }

    /// Forwards a notification of a client to the agent, if there is one.
    pub(crate) fn forward_notification(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        frame: &Frame,
    ) {
        let Some(agent) = self.agent.filter(|_| self.is_bound()) else { return };
        if parts.cx.config.limits.held_bytes_max < self.log.pending_bytes()
            && limits::KEPT_BYTES_MIN < frame.bytes().len()
        {
            let what = "the journal is slower than the notifications of this client".to_owned();
            let fault = Fault::Overloaded { what };
            return parts.clients.answer_invalid_frame(&mut parts.cx, conn, &fault);
        }
        let text = frame.with_session_id(&self.summary().agent_session).bytes().clone();
        self.run_after_log(parts, Effect::ToAgent { agent, text });
    }

    /// Sends a request of the agent to one client.
    pub(crate) fn issue_direct_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        conn: ConnId,
        frame: &Frame,
    ) {
        let (clients, cx) = (&mut parts.clients, &mut parts.cx);
        if let Some(text) = clients.issue_direct_request(cx, agent, Some(&self.id), conn, frame) {
            self.run_after_log(parts, Effect::ToClient { conn, text });
        }
    }

    /// Pauses reading the agent if the journal cannot store its events fast enough, and resumes it later.
    pub(crate) fn limit_pending_events(&mut self, parts: &mut HubParts) {
        let limits = parts.cx.config.limits;
        let pending = self.log.pending_bytes();
        self.log.charge_pending_bytes(&parts.cx.pending_bytes);
        let are_all_full = parts.cx.pending_bytes.is_exceeded_by(pending);
        let Some(id) = self.agent else { return };
        let Some(agent) = parts.agents.processes.get_mut(&id) else { return };
        if !agent.paused && (limits.held_bytes_max < pending || are_all_full) {
            agent.paused = true;
            parts.cx.outputs.push_back(Output::PauseAgent { agent: id });
        } else if agent.paused && pending < limits.held_bytes_low {
            parts.cx.post(HubMessage::ResumeAgent(id));
        }
    }

    /// Whether a process serves only this session.
    pub(super) fn has_own_process(&self, parts: &HubParts) -> bool {
        let agent = self.agent.and_then(|it| parts.agents.processes.get(&it));
        agent.is_some_and(|it| it.slots.is_alone(&self.id))
    }

    /// Suspends the session and gives up its agent.
    pub(super) fn release_agent(&mut self, parts: &mut HubParts) {
        if let Some((agent, agent_session_id)) = self.mark_suspended(&mut parts.cx) {
            self.leave_agent(parts, agent, &agent_session_id);
        }
    }

    /// Gives up the slot. A process without other slots is stopped and keeps the slot until it has ended, because
    /// restoring the session waits for that. A process that serves others is told to cancel and close this session.
    pub(crate) fn leave_agent(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        agent_session_id: &str,
    ) {
        let Some(it) = parts.agents.processes.get_mut(&agent) else { return };
        if it.stopping || it.slots.is_alone(&self.id) {
            if self.release.is_some() {
                // The process may end when the session is not known here any more.
                self.drop_pending_requests(parts, agent);
            }
            return parts.agents.stop_agent(&mut parts.cx, agent);
        }
        it.slots.vacate(&SlotOwner::Session(self.id.clone()));
        let works = self.drop_pending_requests(parts, agent);
        self.last = Some(agent);
        if !agent_session_id.is_empty() {
            let (agents, cx) = (&mut parts.agents, &mut parts.cx);
            agents.close_agent_session(cx, agent, agent_session_id, works);
        }
        parts.cx.post(HubMessage::ResumeAgent(agent));
    }

    /// Gives up the slot before the session is removed, and drops its requests at processes that still end.
    pub(crate) fn leave_all_agents(&mut self, parts: &mut HubParts) {
        if let Some(agent) = self.agent {
            let agent_session_id = self.known_agent_session_id();
            self.leave_agent(parts, agent, &agent_session_id);
        }
        let had_session = parts.agents.processes.iter().filter(|(_, it)| it.slots.has(&self.id));
        for agent in had_session.map(|(agent, _)| *agent).collect::<Vec<_>>() {
            self.drop_pending_requests(parts, agent);
        }
    }

    /// Drops all pending requests about the session at a process. Returns whether it works on a prompt there.
    fn drop_pending_requests(&mut self, parts: &mut HubParts, agent: AgentId) -> bool {
        let fault = Fault::Interrupted { why: "the session has released its agent".into() };
        // Messages that still wait for the log are not sent.
        let unsent = self.log.withdraw_agent_frames(agent);
        let Some(it) = parts.agents.processes.get_mut(&agent) else { return false };
        let its = it.waiting.iter_mut().filter(|(_, it)| it.session() == Some(&self.id));
        let its = its.map(|(id, it)| (*id, std::mem::replace(it, PendingRequest::Unwanted)));
        let its: Vec<_> = its.collect();
        let mut works = false;
        for (hub_id, pending) in its {
            let name = hub_id.to_string();
            if unsent.iter().any(|it| it.id() == Some(&*name)) {
                let it = parts.agents.processes.get_mut(&agent);
                it.and_then(|it| it.waiting.remove(&hub_id));
            } else {
                works |= matches!(pending, PendingRequest::Prompt(..));
            }
            if let PendingRequest::Client { conn, id: client_id, .. } = pending
                && !self.leave_to_next_host(parts, conn, &client_id)
            {
                self.answer_after_log(parts, conn, &Frame::error_for(&client_id, &fault));
            }
        }
        works
    }
}
