//! Slots of an agent process: one for each session that it serves or is about to serve, and one for each client
//! that it was started for and that has not opened a session. The configuration limits the sessions per process.
//! A process without slots is stopped.

use super::{Agent, Agents, PendingRequest};
use crate::{
    AgentId, ConnId, Output, SessionId, context::HubContext, peer::Clients, session_name::tenant_of,
};
use jackfield_protocol::{Frame, acp::Method};

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
    pub(crate) fn assign(&mut self, owner: SlotOwner) {
        match owner {
            SlotOwner::Client(conn) => self.spares.push(conn),
            SlotOwner::Session(session) => {
                self.had += 1;
                self.sessions.push(session);
            }
        }
    }

    pub(crate) fn vacate(&mut self, owner: &SlotOwner) {
        match owner {
            SlotOwner::Client(conn) => self.spares.retain(|it| it != conn),
            SlotOwner::Session(session) => self.sessions.retain(|it| it != session),
        }
    }

    pub(crate) fn taken(&self) -> usize {
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
    pub(crate) fn tenant_of_slot_owner<'a>(&'a self, owner: &'a SlotOwner) -> Option<&'a str> {
        match owner {
            SlotOwner::Client(conn) => self.tenant_name(*conn),
            SlotOwner::Session(id) => tenant_of(id),
        }
    }
}
