//! Sleep: an agent that nobody needs for a while is stopped, and its session keeps everything else.
//! The next prompt wakes it.

use crate::{
    AgentId, Hub, SessionId,
    agent::{Agent, Waiting},
};
use jackfield_events::{AgentSuspended, EventBody};
use jackfield_protocol::is_planted;

/// When agents that are not used are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sleep {
    /// An agent that was not used for so long is stopped, if it can take its session up again.
    pub idle_after_ms: Option<u64>,
    /// So many agents are alive at a time; who needs one more waits.
    pub max_live: Option<usize>,
}

impl Hub {
    /// Whether nothing would be lost if this process were stopped, save for the time to start
    /// another.
    pub(crate) fn may_all_sleep(&self, agent: &Agent) -> bool {
        let sessions = &agent.seats.sessions;
        !sessions.is_empty() && sessions.iter().all(|it| self.may_sleep(it, agent))
    }

    /// The same for one session that it serves.
    fn may_sleep(&self, id: &SessionId, agent: &Agent) -> bool {
        let Some(session) = self.sessions.get(id) else { return false };
        let works = session.turn.is_some() || !session.queue.is_empty();
        let is_asking = !session.asks.is_empty() && !is_planted("stop-agent-with-open-request");
        let waits = !session.parked.is_empty() || is_asking;
        let owes = agent.waiting.values().any(|it| match it {
            Waiting::Setting(..) | Waiting::Unwanted => false,
            other => other.session().is_none_or(|it| it == id),
        });
        let comes_back = agent.can.resume || agent.can.load;
        let is_busy = (works || owes) && !is_planted("stop-agent-with-pending-answer");
        let idle = !is_busy && !waits && session.log.is_all_durable();
        session.is_bound() && agent.is_ready() && comes_back && idle
    }

    /// An agent was not used in a session for a while, or was at some time since.
    pub(crate) fn on_idle(&mut self, id: &SessionId) {
        let Some(idle_after_ms) = self.cx.config.sleep.idle_after_ms else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.pulse.recounted();
        let (due, behind) = (session.pulse.used.plus(idle_after_ms), !session.log.is_all_durable());
        let agent = session.agent.and_then(|it| self.agents.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        if self.cx.now < due {
            self.count_again(id, due);
        } else if self.may_sleep(id, agent) {
            self.put_to_sleep(id, "nobody used it for a while");
        } else if behind {
            // Whatever else keeps it ends with a word of or to the agent; the journal does not.
            self.count_again(id, self.cx.now.plus(idle_after_ms));
        }
    }

    fn put_to_sleep(&mut self, id: &SessionId, why: &str) {
        self.append(id, EventBody::Slept(AgentSuspended { why: why.into() }));
        self.rest(id);
    }

    /// The same for all that a process serves. It ends first: who wakes waits for that. A client
    /// that waits there to open a session is given another process then.
    pub(crate) fn put_all_to_sleep(&mut self, agent: AgentId, why: &str) {
        let sessions = self.served_by(agent);
        for id in &sessions {
            self.append(id, EventBody::Slept(AgentSuspended { why: why.into() }));
        }
        self.stop_agent(agent);
        for id in &sessions {
            self.rest(id);
        }
    }

    fn rest(&mut self, id: &SessionId) {
        self.release_agent(id);
        if let Some(session) = self.sessions.get_mut(id) {
            session.log.share_texts(&mut self.cx.shared_texts);
        }
    }

    /// The machine is short of memory: the session that was not used for the longest time sleeps.
    pub(crate) fn on_pressure(&mut self) {
        self.free_one("the machine is short of memory");
    }
}
