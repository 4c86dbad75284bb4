//! The sandbox of a process, as the driver reports it.

use super::{Agent, Agents};
use crate::{AgentId, Launch};
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
    pub(crate) fn set_sandbox(&mut self, agent: AgentId, profile: Arc<str>) {
        if let Some(agent) = self.processes.get_mut(&agent) {
            agent.sandbox = Some(profile);
        }
    }

    /// The sandbox profile of a process; none if it runs without limits.
    pub(crate) fn sandbox_of(&self, agent: AgentId) -> Option<Arc<str>> {
        self.processes.get(&agent)?.sandbox.clone()
    }
}
