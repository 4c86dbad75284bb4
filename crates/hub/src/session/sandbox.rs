//! The sandbox of a session's agent in the log.

use super::Session;
use crate::{AgentId, parts::HubParts};
use jackfield_events::EventBody;

impl Session {
    /// Logs the sandbox of the process that serves the session from now on.
    pub(super) fn log_sandbox(&mut self, parts: &mut HubParts, agent: AgentId) {
        if let Some(sandbox) = parts.agents.sandbox_of(agent).cloned() {
            self.append_event(&mut parts.cx, EventBody::Sandboxed(sandbox));
        }
    }
}
