//! The sandbox of a process, as the driver reports it.

use super::{Agent, Agents};
use crate::{AgentId, Launch};
use jackfield_events::SandboxApplied;
use std::sync::Arc;

impl Agent {
    /// Whether its sandbox is the one that a session with this launch gets. The directories of a session are part of it.
    pub(crate) fn has_sandbox_for(&self, launch: &Launch) -> bool {
        let has_directories = self.launch.cwd == launch.cwd
            && self.launch.sandbox.directories == launch.sandbox.directories;
        let is_limited = self.sandbox.is_some() || self.launch.sandbox.profile.is_some();
        self.launch.sandbox.profile == launch.sandbox.profile && (!is_limited || has_directories)
    }
}

impl Agents {
    pub(crate) fn set_sandbox(&mut self, agent: AgentId, sandbox: Arc<SandboxApplied>) {
        if let Some(agent) = self.processes.get_mut(&agent) {
            agent.sandbox = Some(sandbox);
        }
    }

    /// The sandbox of a process; none if it runs without limits.
    pub(crate) fn sandbox_of(&self, agent: AgentId) -> Option<&SandboxApplied> {
        self.processes.get(&agent)?.sandbox.as_deref()
    }

    /// The sandbox profile of a process; none if it runs without limits.
    pub(crate) fn sandbox_profile_of(&self, agent: AgentId) -> Option<Arc<str>> {
        Some(self.sandbox_of(agent)?.profile.clone())
    }
}
