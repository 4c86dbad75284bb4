//! When an agent was last heard and last used: what sleep and liveness go by.

use crate::{AgentId, Hub, Time, timer::Timer};

#[derive(Debug)]
pub(crate) struct Pulse {
    /// Since when nothing was heard that was due: its last word, or what it was last asked.
    pub(crate) since: Time,
    /// Its last word, or the last one to it.
    pub(crate) used: Time,
    /// The silence that began then was found too long, and said.
    pub(crate) quiet: Option<Time>,
    /// A timer will look at it.
    watched: bool,
    counted: bool,
}

impl Pulse {
    pub(crate) fn new(now: Time) -> Pulse {
        Pulse { since: now, used: now, quiet: None, watched: false, counted: false }
    }

    /// It said something. Returns whether a timer is missing; in a stream of words none is.
    pub(crate) fn beat(&mut self, now: Time) -> bool {
        self.since = now;
        self.used = now;
        self.quiet = None;
        !(self.watched && self.counted)
    }

    /// The timer that looks at its silence has fired.
    pub(crate) fn looked(&mut self) {
        self.watched = false;
    }

    /// The timer that looks whether it is of use has fired.
    pub(crate) fn recounted(&mut self) {
        self.counted = false;
    }
}

impl Hub {
    /// Something that counts was said to an agent or by it: it is looked at when it falls silent.
    pub(crate) fn watch(&mut self, id: AgentId) {
        let now = self.now;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        if !agent.pulse.watched {
            agent.pulse.watched = true;
            let at = now.plus(self.config.liveness.soonest_ms());
            self.timers.set(at, Timer::Silence(id));
        }
        if !agent.pulse.counted {
            agent.pulse.counted = true;
            if let Some(ms) = self.config.sleep.idle_after_ms {
                self.timers.set(now.plus(ms), Timer::Idle(id));
            }
        }
    }

    /// An agent was told something. If it `owes` words for that, its silence counts from now on.
    pub(crate) fn told(&mut self, id: AgentId, owes: bool) {
        let now = self.now;
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.pulse.used = now;
        if owes {
            agent.pulse.since = now;
            agent.pulse.quiet = None;
        }
        self.watch(id);
    }

    pub(crate) fn look_again(&mut self, id: AgentId, at: Time) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.pulse.watched = true;
        self.timers.set(at, Timer::Silence(id));
    }

    pub(crate) fn count_again(&mut self, id: AgentId, at: Time) {
        let Some(agent) = self.agents.get_mut(&id) else { return };
        agent.pulse.counted = true;
        self.timers.set(at, Timer::Idle(id));
    }
}
