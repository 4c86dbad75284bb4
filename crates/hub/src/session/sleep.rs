//! Suspends sessions: an agent that was idle for some time is stopped. The next prompt restores the session.

use super::Session;
use crate::{
    agent::{Agent, PendingRequest},
    context::HubContext,
    parts::HubParts,
};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::is_planted;

impl Session {
    /// Whether this session of the process can be suspended.
    pub(crate) fn can_suspend(&self, agent: &Agent) -> bool {
        let works = self.turn.is_some() || !self.queue.is_empty();
        let is_asking = !self.asks.is_empty() && !is_planted("stop-agent-with-open-request");
        let waits = !self.parked.is_empty() || is_asking;
        let owes = agent.waiting.values().any(|it| match it {
            PendingRequest::Setting(..) | PendingRequest::Unwanted => false,
            other => other.session().is_none_or(|it| *it == self.id),
        });
        let comes_back = agent.capabilities.resume || agent.capabilities.load;
        let is_busy = (works || owes) && !is_planted("stop-agent-with-pending-answer");
        let idle = !is_busy && !waits && self.log.is_all_durable();
        self.is_bound() && agent.is_ready() && comes_back && idle
    }

    /// The idle timer of a session has fired.
    pub(crate) fn on_idle_timer(&mut self, parts: &mut HubParts) {
        let Some(idle_after_ms) = parts.cx.config.sleep.idle_after_ms else { return };
        self.activity.recounted();
        let (due, behind) =
            (self.activity.last_active_at.plus(idle_after_ms), !self.log.is_all_durable());
        let agent = self.agent.and_then(|it| parts.agents.processes.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        if parts.cx.now < due {
            self.schedule_idle_check(&mut parts.cx, due);
        } else if self.can_suspend(agent) {
            self.suspend(parts, "nobody used it for a while");
        } else if behind {
            // Everything else that keeps it busy ends with a message; a slow journal does not.
            let at = parts.cx.now.plus(idle_after_ms);
            self.schedule_idle_check(&mut parts.cx, at);
        }
    }

    fn suspend(&mut self, parts: &mut HubParts, why: &str) {
        self.append_suspended(&mut parts.cx, why);
        self.release_idle_agent(parts);
    }

    /// Logs that the agent is stopped because it is idle.
    pub(crate) fn append_suspended(&mut self, cx: &mut HubContext, why: &str) {
        self.append_event(cx, EventBody::Slept(AgentSuspended { why: why.into() }));
    }

    /// Gives up an agent that is idle. A session without an agent keeps little memory.
    pub(crate) fn release_idle_agent(&mut self, parts: &mut HubParts) {
        self.release_agent(parts);
        self.log.share_texts(&mut parts.cx.shared_texts);
    }
}
