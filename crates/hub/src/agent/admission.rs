//! Limits the number of running agents.

use super::{Agent, Agents, PendingRequest};
use crate::{AgentId, ConnId, SessionId, Time, context::HubContext};
use jackfield_protocol::is_planted;

/// A start that waits until another process may run. Each is queued once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentStart {
    /// For the `initialize` of a client, which is answered with the capabilities of the agent.
    Client(ConnId, Box<str>),
    /// For a session that is being opened or restored.
    Session(SessionId),
}

impl Agents {
    pub(crate) fn has_free_place(&self, cx: &HubContext) -> bool {
        self.count_free_places(cx).is_none_or(|it| 0 < it)
    }

    /// The number of processes that may still be started; nothing without a limit.
    pub(crate) fn count_free_places(&self, cx: &HubContext) -> Option<usize> {
        let alive = self.processes.values().filter(|it| !it.stopping).count();
        Some(
            cx.config
                .sleep
                .max_live?
                .max(1)
                .saturating_add(usize::from(is_planted("one-agent-too-many")))
                .saturating_sub(alive),
        )
    }

    /// Stops a process that waits for its client to open a session; it can be started again.
    pub(crate) fn stop_idle_spare(&mut self, cx: &mut HubContext) -> bool {
        let idle = |it: &Agent| {
            let spare = it.slots.sessions.is_empty() && !it.slots.is_empty();
            spare && it.is_ready() && !it.waiting.values().any(PendingRequest::is_wanted)
        };
        let by_activity =
            |(id, it): &(&AgentId, &Agent)| -> (Time, AgentId) { (it.last_active_at, **id) };
        let spare = self.processes.iter().filter(|(_, it)| idle(it)).min_by_key(by_activity);
        let Some(spare) = spare.map(|(id, _)| *id) else { return false };
        self.stop_agent(cx, spare);
        true
    }
}
