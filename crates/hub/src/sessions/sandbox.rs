//! Connections of sandboxed agents that need an answer of the user, or that were refused.

use super::Sessions;
use crate::{AgentId, parts::HubParts};
use jackfield_events::{ConnectionRefused, EventBody};
use jackfield_protocol::Frame;

impl Sessions {
    /// Asks about a host in the session of the agent. If there is no such session any more, the agent ends.
    pub(crate) fn on_host_asked(&mut self, parts: &mut HubParts, agent: AgentId, request: &Frame) {
        let process = parts.agents.processes.get(&agent);
        let session = process.and_then(|it| it.slots.sessions.first().cloned());
        match session.and_then(|it| self.by_id.get_mut(&it)) {
            Some(session) => session.open_host_request(parts, agent, request),
            None => parts.cx.refuse_agent_request(agent, request),
        }
    }

    /// Logs a refused connection in every session of the agent: which of them it was for is not known.
    pub(crate) fn on_connection_refused(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        refused: &ConnectionRefused,
    ) {
        let process = parts.agents.processes.get(&agent);
        let sessions = process.map(|it| it.slots.sessions.clone()).unwrap_or_default();
        for session in &sessions {
            self.with(session, |it| {
                it.append_event(&mut parts.cx, EventBody::HostRefused(refused.clone()));
            });
        }
    }
}
