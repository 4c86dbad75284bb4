//! Sleep: an agent that nobody needs for a while is stopped, and its session keeps everything else.
//! The next prompt wakes it.

use crate::{
    AgentId, Hub, SessionId,
    agent::{Agent, Purpose, Waiting},
    log::Body,
};

/// When agents that are not used are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sleep {
    /// An agent that was not used for so long is stopped, if it can take its session up again.
    pub idle_after_ms: Option<u64>,
    /// So many agents are alive at a time; who needs one more waits.
    pub max_live: Option<usize>,
}

impl Hub {
    /// Whether nothing would be lost if this agent were stopped, save for the time to start another.
    pub(crate) fn may_sleep(&self, agent: &Agent) -> bool {
        let Purpose::Session(id) = &agent.purpose else { return false };
        let Some(session) = self.sessions.get(id) else { return false };
        let works = session.turn.is_some() || !session.queue.is_empty();
        let waits = !session.parked.is_empty() || !session.asks.is_empty();
        let owes = agent.waiting.values().any(|it| !matches!(it, Waiting::Setting(..)));
        let comes_back = agent.can.resume || agent.can.load;
        let idle = !works && !waits && !owes && session.gate.is_clear();
        session.is_bound() && agent.is_ready() && comes_back && idle
    }

    /// An agent was not used for a while, or was at some time since.
    pub(crate) fn on_idle(&mut self, id: AgentId) {
        let Some(idle_after_ms) = self.config.sleep.idle_after_ms else { return };
        let Some(agent) = self.agents.get_mut(&id).filter(|it| !it.stopping) else { return };
        agent.pulse.recounted();
        let due = agent.pulse.used.plus(idle_after_ms);
        if self.now < due {
            return self.count_again(id, due);
        }
        let agent = &self.agents[&id];
        match agent.purpose.clone() {
            Purpose::Warm => self.on_warm_idle(id, idle_after_ms),
            Purpose::Session(session) if self.may_sleep(agent) => {
                self.put_to_sleep(&session, "nobody used it for a while");
            }
            Purpose::Session(session) => {
                // Whatever else keeps it ends with a word of or to the agent; the journal does not.
                let behind = self.sessions.get(&session).is_some_and(|it| !it.gate.is_clear());
                if behind {
                    self.count_again(id, self.now.plus(idle_after_ms));
                }
            }
            Purpose::Spare(_) => {}
        }
    }

    pub(crate) fn put_to_sleep(&mut self, id: &SessionId, why: &str) {
        self.append(id, Body::Slept { why: why.into() });
        self.release_agent(id);
        if let Some(session) = self.sessions.get_mut(id) {
            self.texts.share_all(&mut session.state);
        }
    }

    /// The machine is short of memory: the session that was not used for the longest time sleeps.
    pub(crate) fn on_pressure(&mut self) {
        self.free_one("the machine is short of memory");
    }
}
