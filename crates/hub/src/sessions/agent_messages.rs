//! Messages of agents: each goes to the session that it concerns, or to the clients of the process.

use super::Sessions;
use crate::{
    AgentId, ConnId, Note, SessionId,
    agent::{PendingRequest, error_of, is_journaled},
    limits,
    log::Effect,
    parts::HubParts,
    peer::RequestRoute,
    session::{Session, SessionStage},
};
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method};
use std::collections::BTreeSet;

impl Sessions {
    pub(crate) fn on_agent_message(&mut self, parts: &mut HubParts, agent: AgentId, frame: Frame) {
        let Some(it) = parts.agents.processes.get_mut(&agent) else { return };
        it.last_active_at = parts.cx.now;
        match frame.kind() {
            Kind::Response => self.on_agent_response(parts, agent, &frame),
            Kind::Notification => self.on_agent_notification(parts, agent, frame),
            Kind::Request => self.on_agent_request(parts, agent, &frame),
        }
    }

    fn on_agent_response(&mut self, parts: &mut HubParts, id: AgentId, frame: &Frame) {
        let hub_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let Some(agent) = parts.agents.processes.get_mut(&id) else { return };
        let Some(pending) = hub_id.and_then(|it| agent.waiting.remove(&it)) else { return };
        if agent.stopping && pending.is_start() {
            return; // It was asked to stop; its end answers the waiting requests.
        }
        let active = match pending.session() {
            Some(session) => vec![session.clone()],
            None => self.served_by(parts, id),
        };
        for session in &active {
            self.with(session, |it| it.mark_activity(&mut parts.cx));
        }
        let has_session_id = pending.is_answered_with_session_id();
        if pending.is_start() && !matches!(pending, PendingRequest::Initialize) {
            parts.agents.on_agent_came_up(id);
        }
        match pending {
            PendingRequest::Initialize => self.on_initialize_response(parts, id, frame),
            PendingRequest::New(session) => self.on_session_opened(parts, id, &session, frame),
            PendingRequest::Reopen(session, method) => {
                let name = frame.session_id();
                let name = name.filter(|it| self.is_free_name(parts, id, &session, it));
                self.with(&session, |it| {
                    it.on_reopened(parts, id, method, frame, name.as_deref());
                });
            }
            PendingRequest::Setting(session, name) => {
                self.with(&session, |it| it.on_setting_response(parts, id, &name, frame));
            }
            PendingRequest::Prompt(session, turn) => {
                self.with(&session, |it| it.on_prompt_response(parts, turn, frame));
            }
            PendingRequest::Client { conn, id: request, session: None, .. } => {
                let answer = self.with_hub_session_id(parts, id, frame.with_id(&request));
                parts.clients.finish_request(conn, &request);
                parts.clients.send(&mut parts.cx, conn, answer.bytes().clone());
            }
            PendingRequest::Client {
                conn, id: request, session: Some(session), setting, ..
            } => {
                if let Some(it) = self.by_id.get_mut(&session) {
                    it.on_client_response(parts, conn, &request, setting, frame);
                } else {
                    let fault = Fault::SessionNotFound { session: session.to_string() };
                    parts.clients.answer_request(&mut parts.cx, conn, &request, Err(&fault));
                }
            }
            PendingRequest::Unwanted => {
                if let Some(name) = frame.session_id() {
                    parts.agents.close_agent_session(&mut parts.cx, id, &name, false);
                }
            }
        }
        if has_session_id {
            parts.agents.drop_unclaimed_updates(&mut parts.cx, id);
        }
    }

    /// An agent answered `initialize`.
    fn on_initialize_response(&mut self, parts: &mut HubParts, id: AgentId, frame: &Frame) {
        let Some(result) = frame.result() else {
            let why = format!("`initialize` was refused: {}", error_of(frame));
            return self.refuse_agent(parts, id, &why);
        };
        if limits::SETUP_BYTES_MAX < result.len() {
            let why = format!(
                "its answer to `initialize` has {} bytes, and at most {} are kept",
                result.len(),
                limits::SETUP_BYTES_MAX
            );
            return self.refuse_agent(parts, id, &why);
        }
        let Some(agent) = parts.agents.processes.get_mut(&id) else { return };
        agent.set_initialized(result);
        let name = agent.launch.name.clone();
        for (conn, request) in std::mem::take(&mut agent.pending_initialize) {
            let result = parts.clients.describe_agent(conn, &name, result);
            parts.clients.answer_request(&mut parts.cx, conn, &request, Ok(&result));
        }
        if parts.agents.processes.get(&id).is_some_and(|it| it.slots.sessions.is_empty()) {
            parts.agents.on_agent_came_up(id); // No session needs more of it for now.
        }
        for session in self.served_by(parts, id) {
            self.with(&session, |it| it.on_agent_ready(parts, id));
        }
    }

    fn on_agent_notification(&mut self, parts: &mut HubParts, id: AgentId, frame: Frame) {
        if frame.is_method(Method::CancelRequest) {
            return self.on_request_withdrawn(parts, id, &frame);
        }
        if frame.is_control() {
            // Clients take such messages for messages of the hub.
            return parts.cx.note(Note::Unclaimed { agent: id });
        }
        let Some(agent) = parts.agents.processes.get(&id) else { return };
        if let Some(session) = self.find_named_session(parts, id, &frame) {
            let is_journaled = is_journaled(&frame);
            let unclaimed = self.with(&session, |it| it.on_update(parts, id, frame, is_journaled));
            if let Some(frame) = unclaimed {
                self.keep_early_update(parts, id, frame);
            }
        } else if agent.slots.is_unused() || frame.session_id().is_none() {
            self.send_to_all_clients(parts, id, &frame);
        } else if agent.awaits_session_id() {
            self.keep_early_update(parts, id, frame);
        } else {
            parts.cx.note(Note::Unclaimed { agent: id });
        }
    }

    /// Retains an update that an agent sends before it reports the id of the session. An agent that sends too many is
    /// stopped.
    fn keep_early_update(&mut self, parts: &mut HubParts, id: AgentId, frame: Frame) {
        if let Err(why) = parts.agents.keep_early_update(&parts.cx, id, frame) {
            let why = format!("it says too much before it has answered `session/new`: {why}");
            self.refuse_agent(parts, id, &why);
        }
    }

    /// The session that a frame concerns. A process that has had only one session means that one: it may use the ids of
    /// child sessions.
    fn find_named_session(
        &self,
        parts: &HubParts,
        agent: AgentId,
        frame: &Frame,
    ) -> Option<SessionId> {
        let agent = parts.agents.processes.get(&agent)?;
        match agent.slots.only() {
            Some(only) => Some(only.clone()),
            None => self.find_by_agent_session_id(agent, &frame.session_id()?),
        }
    }

    /// The frame with the session id of the hub, if it names a session of the agent.
    fn with_hub_session_id(&self, parts: &HubParts, agent: AgentId, frame: Frame) -> Frame {
        let session = self.find_named_session(parts, agent, &frame);
        match session.and_then(|it| self.by_id.get(&it)) {
            Some(session) => session.with_hub_session_id(frame),
            None => frame,
        }
    }

    /// Sends a message about no session once to each client of the process.
    fn send_to_all_clients(&mut self, parts: &mut HubParts, agent: AgentId, frame: &Frame) {
        let mut notified: BTreeSet<ConnId> = BTreeSet::new();
        for id in self.served_by(parts, agent) {
            let Some(session) = self.by_id.get_mut(&id) else { continue };
            for conn in session.subscribers.keys().copied().collect::<Vec<_>>() {
                if notified.insert(conn) {
                    let text = frame.bytes().clone();
                    session.run_after_log(parts, Effect::ToClient { conn, text });
                }
            }
        }
        let spares = parts.agents.processes.get(&agent).map(|it| it.slots.spares.clone());
        for conn in spares.into_iter().flatten().filter(|it| !notified.contains(it)) {
            parts.clients.send(&mut parts.cx, conn, frame.bytes().clone());
        }
    }

    fn on_agent_request(&mut self, parts: &mut HubParts, id: AgentId, frame: &Frame) {
        if frame.is_control() {
            return parts.cx.refuse_agent_request(id, frame);
        }
        if let Some(request) = frame.request_id() {
            return self.send_to_requester(parts, id, request, frame);
        }
        let serves = |it: &&mut Session| it.agent == Some(id) && !it.is_opening();
        let session = self.find_named_session(parts, id, frame);
        let session = session.and_then(|it| self.by_id.get_mut(&it)).filter(serves);
        match session {
            Some(session) => session.on_agent_request(parts, id, frame),
            // It names no session, or one that is unknown or no longer served by this agent.
            None => parts.cx.refuse_agent_request(id, frame),
        }
    }

    /// Sends a request that concerns a request of a client to that client, because no other understands it.
    fn send_to_requester(
        &mut self,
        parts: &mut HubParts,
        id: AgentId,
        request: &str,
        frame: &Frame,
    ) {
        let Some((conn, client_id)) = self.find_requester(parts, id, request) else {
            return parts.cx.refuse_agent_request(id, frame);
        };
        let session = parts.agents.session_of_request(id, request.parse().unwrap_or(0));
        let splice = Splice { request_id: Some(&client_id), ..Splice::default() };
        let frame = frame.spliced(splice);
        if let Some(session) = session.and_then(|it| self.by_id.get_mut(&it)) {
            let frame = session.with_hub_session_id(frame);
            return session.issue_direct_request(parts, id, conn, &frame);
        }
        let frame = self.with_hub_session_id(parts, id, frame);
        let (clients, cx) = (&mut parts.clients, &mut parts.cx);
        if let Some(text) = clients.issue_direct_request(cx, id, None, conn, &frame) {
            clients.send(cx, conn, text);
        }
    }

    /// The client and its request that the agent has with this request id.
    fn find_requester(
        &self,
        parts: &HubParts,
        agent: AgentId,
        hub_id: &str,
    ) -> Option<(ConnId, Box<str>)> {
        let hub_id: u64 = hub_id.parse().ok()?;
        match parts.agents.processes.get(&agent)?.waiting.get(&hub_id)? {
            PendingRequest::New(session) => {
                let session = self.by_id.get(session)?;
                let SessionStage::Opening(opening) = &session.stage else { return None };
                Some((opening.conn, opening.request.clone()))
            }
            PendingRequest::Prompt(session, turn) => {
                let session = self.by_id.get(session)?;
                let driver = session.driver()?;
                let request = session.subscribers.get(&driver)?.owed.get(turn)?.first()?;
                Some((driver, request.clone()))
            }
            _ => parts.clients.find_request(&RequestRoute::Agent(agent, hub_id)),
        }
    }

    /// The agent withdrew its request.
    fn on_request_withdrawn(&mut self, parts: &mut HubParts, agent: AgentId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        for id in self.served_by(parts, agent) {
            if self.with(&id, |it| it.on_user_request_withdrawn(parts, agent, request)) {
                return;
            }
        }
        self.on_direct_request_withdrawn(parts, agent, request);
    }

    /// The daemon has served a request for a file or a terminal.
    pub(crate) fn on_request_served(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
    ) {
        if !parts.agents.processes.contains_key(&agent) {
            return;
        }
        for id in self.served_by(parts, agent) {
            if self.with(&id, |it| it.on_request_served(parts, agent, frame)) {
                return;
            }
        }
        let text = frame.bytes().clone();
        parts.cx.outputs.push_back(crate::Output::ToAgent { agent, text });
    }
}
