//! Slots of an agent process: one for each session that it serves or is about to serve, and one for each client
//! that it was started for and that has not opened a session. The configuration limits the sessions per process.
//! A process without slots is stopped.

use super::{Agent, PendingRequest};
use crate::{
    AgentId, ConnId, Hub, Launch, Output, SessionId,
    agent::Agents,
    context::HubContext,
    peer::Clients,
    session::{Session, Sessions},
    session_name::tenant_of,
};
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotOwner {
    /// A client that has not opened a session yet.
    Client(ConnId),
    /// A session that is being opened, restored or served.
    Session(SessionId),
}

/// The occupied slots in the order of assignment. A warm process has none.
#[derive(Debug, Default)]
pub(crate) struct AgentSlots {
    pub(crate) spares: Vec<ConnId>,
    pub(crate) sessions: Vec<SessionId>,
    /// How many sessions have had a slot here.
    had: usize,
}

impl AgentSlots {
    pub(super) fn assign(&mut self, seat: SlotOwner) {
        match seat {
            SlotOwner::Client(conn) => self.spares.push(conn),
            SlotOwner::Session(session) => {
                self.had += 1;
                self.sessions.push(session);
            }
        }
    }

    fn vacate(&mut self, seat: &SlotOwner) {
        match seat {
            SlotOwner::Client(conn) => self.spares.retain(|it| it != conn),
            SlotOwner::Session(session) => self.sessions.retain(|it| it != session),
        }
    }

    fn taken(&self) -> usize {
        self.spares.len() + self.sessions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken() == 0
    }

    /// Whether this is the only slot owner.
    pub(crate) fn is_alone(&self, session: &SessionId) -> bool {
        self.spares.is_empty() && self.sessions.iter().all(|it| it == session)
    }

    /// The only session that was ever served here. Then all messages of the process concern it.
    pub(crate) fn only(&self) -> Option<&SessionId> {
        self.sessions.first().filter(|_| self.had == 1)
    }

    /// Whether no session was ever served here.
    pub(crate) fn is_unused(&self) -> bool {
        self.had == 0
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.sessions.contains(session)
    }
}

impl Agents {
    /// A client gives up its slot. A process without slots is stopped.
    pub(crate) fn leave_spare(&mut self, cx: &mut HubContext, agent: AgentId, conn: ConnId) {
        let Some(it) = self.processes.get_mut(&agent) else { return };
        if it.slots.sessions.is_empty() && it.slots.spares.iter().all(|it| *it == conn) {
            return self.stop_agent(cx, agent);
        }
        it.slots.vacate(&SlotOwner::Client(conn));
    }

    /// The slot of a client becomes that of its session.
    pub(crate) fn give_spare_to_session(&mut self, agent: AgentId, conn: ConnId, id: &SessionId) {
        if let Some(it) = self.processes.get_mut(&agent) {
            it.slots.vacate(&SlotOwner::Client(conn));
            it.slots.assign(SlotOwner::Session(id.clone()));
        }
    }

    /// A session was not opened: its slot becomes that of its client for the next try.
    pub(crate) fn return_to_spare(&mut self, agent: AgentId, conn: ConnId, id: &SessionId) {
        if let Some(it) = self.processes.get_mut(&agent) {
            it.slots.vacate(&SlotOwner::Session(id.clone()));
            it.slots.assign(SlotOwner::Client(conn));
            it.slots.had -= 1;
        }
    }

    /// Tells a process to close a session that is not needed any more.
    pub(crate) fn close_agent_session(
        &mut self,
        cx: &mut HubContext,
        agent: AgentId,
        agent_session_id: &str,
        works: bool,
    ) {
        let Some(it) = self.processes.get_mut(&agent).filter(|it| it.is_ready()) else { return };
        let params = serde_json::json!({ "sessionId": agent_session_id }).to_string();
        let cancel = works.then(|| Frame::notification(Method::SessionCancel.name(), &params));
        let close = it.capabilities.close.then(|| {
            let our_id = it.expect(PendingRequest::Unwanted).to_string();
            Frame::request(&our_id, Method::SessionClose.name(), &params)
        });
        for frame in cancel.into_iter().chain(close) {
            cx.outputs.push_back(Output::ToAgent { agent, text: frame.bytes().clone() });
        }
    }
}

impl Sessions {
    /// Whether a process already serves another session with the same id of the agent.
    fn has_namesake(&self, agent: &Agent, session: &Session) -> bool {
        let name = session.agent_session_id();
        !name.is_empty() && self.find_by_agent_session_id(agent, name).is_some()
    }

    /// The session of a process with this id of the agent.
    pub(crate) fn find_by_agent_session_id(&self, agent: &Agent, name: &str) -> Option<SessionId> {
        let is_it = |id: &&SessionId| self.by_id.get(*id).is_some_and(|it| it.is_called(name));
        agent.slots.sessions.iter().find(is_it).cloned()
    }
}

impl Clients {
    /// The tenant of a process: that of its slot owners. A warm process has none.
    pub(crate) fn tenant_of_agent<'a>(&'a self, agent: &'a Agent) -> Option<&'a str> {
        match (agent.slots.sessions.first(), agent.slots.spares.first()) {
            (Some(session), _) => tenant_of(session),
            (None, Some(conn)) => self.tenant_name(*conn),
            (None, None) => None,
        }
    }

    /// The tenant of a slot owner.
    pub(crate) fn tenant_of_slot_owner<'a>(&'a self, seat: &'a SlotOwner) -> Option<&'a str> {
        match seat {
            SlotOwner::Client(conn) => self.tenant_name(*conn),
            SlotOwner::Session(id) => tenant_of(id),
        }
    }
}

impl Hub {
    /// Finds a free slot in a running process: the one that served the session before, because it may still have its files
    /// open, else the one with the fewest slots in use.
    pub(crate) fn take_seat(
        &mut self,
        launch: &Launch,
        hello: Option<&str>,
        seat: &SlotOwner,
    ) -> Option<AgentId> {
        let agent = self.free_seat(launch, hello, seat)?;
        self.parts.agents.processes.get_mut(&agent)?.slots.assign(seat.clone());
        Some(agent)
    }

    pub(crate) fn free_seat(
        &self,
        launch: &Launch,
        hello: Option<&str>,
        seat: &SlotOwner,
    ) -> Option<AgentId> {
        let seats = self.parts.cx.config.sessions_per_process(&launch.name);
        if seats == 1 {
            return None;
        }
        let session = match seat {
            SlotOwner::Session(id) => self.sessions.by_id.get(id),
            SlotOwner::Client(_) => None,
        };
        let tenant = self.parts.clients.tenant_of_slot_owner(seat);
        let fits = |it: &Agent| {
            let taken = it.slots.taken();
            let room = !it.stopping
                && 0 < taken
                && taken < seats + usize::from(is_planted("one-session-too-many-per-agent"));
            let alike = it.launch == *launch && it.initialize_params.as_deref() == hello;
            // A process could leak what one tenant says to another.
            room && alike
                && (self.parts.clients.tenant_of_agent(it) == tenant
                    || is_planted("share-agent-between-tenants"))
        };
        let last = session.and_then(|it| it.last);
        let fitting = self.parts.agents.processes.iter().filter(|(_, it)| fits(it));
        let fitting =
            fitting.filter(|(_, it)| session.is_none_or(|of| !self.sessions.has_namesake(it, of)));
        let order = |(id, it): &(&AgentId, &Agent)| (last != Some(**id), it.slots.taken(), **id);
        fitting.min_by_key(order).map(|(id, _)| *id)
    }

    /// Whether a process may use this id for the session: no other session that it serves has it.
    pub(crate) fn is_free_name(&self, agent: AgentId, id: &SessionId, name: &str) -> bool {
        let other = self
            .parts
            .agents
            .processes
            .get(&agent)
            .and_then(|it| self.sessions.find_by_agent_session_id(it, name));
        !name.is_empty() && other.is_none_or(|it| it == *id)
    }

    /// Whether a process serves only this session.
    pub(crate) fn has_own_process(&self, id: &SessionId) -> bool {
        let agent = self.sessions.by_id.get(id).and_then(|it| it.agent);
        agent
            .and_then(|it| self.parts.agents.processes.get(&it))
            .is_some_and(|it| it.slots.is_alone(id))
    }

    /// A session gives up its slot. A process without other slots is stopped and keeps the slot until it has ended, because
    /// restoring the session waits for that. A process that serves others is told to cancel and close this session.
    pub(crate) fn leave(&mut self, agent: AgentId, id: &SessionId, agent_session_id: &str) {
        let Some(it) = self.parts.agents.processes.get_mut(&agent) else { return };
        if it.stopping || it.slots.is_alone(id) {
            if self.sessions.by_id.get(id).is_some_and(|it| it.release.is_some()) {
                // The process may end when the session is not known here any more.
                self.want_nothing(agent, id);
            }
            return self.parts.agents.stop_agent(&mut self.parts.cx, agent);
        }
        it.slots.vacate(&SlotOwner::Session(id.clone()));
        let works = self.want_nothing(agent, id);
        if let Some(session) = self.sessions.by_id.get_mut(id) {
            session.last = Some(agent);
        }
        if !agent_session_id.is_empty() {
            self.parts.agents.close_agent_session(
                &mut self.parts.cx,
                agent,
                agent_session_id,
                works,
            );
        }
        self.ease(agent);
    }

    /// Forgets the session, and requests about it at processes that still end.
    pub(crate) fn forsake(&mut self, id: &SessionId) {
        let had_it = self
            .parts
            .agents
            .processes
            .iter()
            .filter(|(_, it)| it.slots.has(id))
            .map(|(agent, _)| *agent);
        for agent in had_it.collect::<Vec<_>>() {
            self.want_nothing(agent, id);
        }
    }

    /// Drops all pending requests about a session at a process. Returns whether it works on a prompt there.
    fn want_nothing(&mut self, agent: AgentId, id: &SessionId) -> bool {
        let fault = Fault::Interrupted { why: "the session has let go of its agent".into() };
        // Messages that still wait for the log are not sent.
        let unsaid = self.sessions.by_id.get_mut(id).map(|it| it.log.withdraw_agent_frames(agent));
        let unsaid = unsaid.unwrap_or_default();
        let Some(it) = self.parts.agents.processes.get_mut(&agent) else { return false };
        let its = it.waiting.iter_mut().filter(|(_, it)| it.session() == Some(id));
        let its =
            its.map(|(our_id, it)| (*our_id, std::mem::replace(it, PendingRequest::Unwanted)));
        let mut works = false;
        for (our_id, waiting) in its.collect::<Vec<_>>() {
            let name = our_id.to_string();
            if unsaid.iter().any(|it| it.id() == Some(&*name)) {
                self.parts
                    .agents
                    .processes
                    .get_mut(&agent)
                    .and_then(|it| it.waiting.remove(&our_id));
            } else {
                works |= matches!(waiting, PendingRequest::Prompt(..));
            }
            if let PendingRequest::Client { conn, id: client_request_id, .. } = waiting
                && !self.is_left_to_ask_again(id, conn, &client_request_id)
            {
                self.answer_in(id, conn, &Frame::error_for(&client_request_id, &fault));
            }
        }
        works
    }

    /// The sessions that a process serves or is about to serve.
    pub(crate) fn served_by(&self, agent: AgentId) -> Vec<SessionId> {
        let seats = self.parts.agents.processes.get(&agent).map(|it| &it.slots.sessions);
        let is_its = |id: &&SessionId| {
            self.sessions.by_id.get(*id).is_some_and(|it| it.agent == Some(agent))
        };
        seats.into_iter().flatten().filter(is_its).cloned().collect()
    }
}
