//! Suspends sessions: an agent that was idle for some time is stopped. The next prompt restores the session.

use crate::{
    AgentId, Hub, SessionId,
    agent::{Agent, PendingRequest},
    session::Sessions,
};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::is_planted;

impl Sessions {
    /// Whether this process can be stopped without losing anything but the time to start another.
    pub(crate) fn can_suspend_agent(&self, agent: &Agent) -> bool {
        let sessions = &agent.slots.sessions;
        !sessions.is_empty() && sessions.iter().all(|it| self.can_suspend_session(it, agent))
    }

    /// Whether this session of the process can be suspended.
    fn can_suspend_session(&self, id: &SessionId, agent: &Agent) -> bool {
        let Some(session) = self.by_id.get(id) else { return false };
        let works = session.turn.is_some() || !session.queue.is_empty();
        let is_asking = !session.asks.is_empty() && !is_planted("stop-agent-with-open-request");
        let waits = !session.parked.is_empty() || is_asking;
        let owes = agent.waiting.values().any(|it| match it {
            PendingRequest::Setting(..) | PendingRequest::Unwanted => false,
            other => other.session().is_none_or(|it| it == id),
        });
        let comes_back = agent.capabilities.resume || agent.capabilities.load;
        let is_busy = (works || owes) && !is_planted("stop-agent-with-pending-answer");
        let idle = !is_busy && !waits && session.log.is_all_durable();
        session.is_bound() && agent.is_ready() && comes_back && idle
    }
}

impl Hub {
    /// The idle timer of a session has fired.
    pub(crate) fn on_idle(&mut self, id: &SessionId) {
        let Some(idle_after_ms) = self.parts.cx.config.sleep.idle_after_ms else { return };
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        session.activity.recounted();
        let (due, behind) =
            (session.activity.last_active_at.plus(idle_after_ms), !session.log.is_all_durable());
        let agent = session.agent.and_then(|it| self.parts.agents.processes.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        if self.parts.cx.now < due {
            self.with_session(id, |it, parts| it.schedule_idle_check(&mut parts.cx, due));
        } else if self.sessions.can_suspend_session(id, agent) {
            self.put_to_sleep(id, "nobody used it for a while");
        } else if behind {
            // Everything else that keeps it busy ends with a message; a slow journal does not.
            let at = self.parts.cx.now.plus(idle_after_ms);
            self.with_session(id, |it, parts| it.schedule_idle_check(&mut parts.cx, at));
        }
    }

    fn put_to_sleep(&mut self, id: &SessionId, why: &str) {
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Slept(AgentSuspended { why: why.into() }),
        );
        self.rest(id);
    }

    /// Suspends all sessions of a process. The process ends first, because restoring waits for that. A client that waits
    /// there to open a session gets another process.
    pub(crate) fn put_all_to_sleep(&mut self, agent: AgentId, why: &str) {
        let sessions = self.served_by(agent);
        for id in &sessions {
            self.sessions.append_event(
                &mut self.parts.cx,
                id,
                EventBody::Slept(AgentSuspended { why: why.into() }),
            );
        }
        self.parts.agents.stop_agent(&mut self.parts.cx, agent);
        for id in &sessions {
            self.rest(id);
        }
    }

    fn rest(&mut self, id: &SessionId) {
        self.release_agent(id);
        if let Some(session) = self.sessions.by_id.get_mut(id) {
            session.log.share_texts(&mut self.parts.cx.shared_texts);
        }
    }

    /// The machine is short of memory: suspends the session that was idle for the longest time.
    pub(crate) fn on_pressure(&mut self) {
        self.free_one("the machine is short of memory");
    }
}
