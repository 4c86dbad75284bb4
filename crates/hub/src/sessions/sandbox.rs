//! Connections that the sandbox of an agent refused.

use super::Sessions;
use crate::{AgentId, parts::HubParts};
use jackfield_events::{ConnectionRefused, EventBody};

impl Sessions {
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
