//! When a session's agent was last heard in it, and when either was last used: what sleep and
//! liveness go by. A process that serves several sessions can be silent in one of them.

use crate::{Hub, SessionId, Time, timer::Timer};

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Since when nothing was heard that was due: the agent's last word, or what it was last asked.
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
    /// The agent said something. Returns whether a timer is missing; in a stream of words none is.
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
    /// The agent of a session was heard in it.
    pub(crate) fn beat(&mut self, id: &SessionId) {
        let now = self.cx.now;
        if self.sessions.get_mut(id).is_some_and(|it| it.pulse.beat(now)) {
            self.watch(id);
        }
    }

    /// Something that counts was said in a session: it is looked at when it falls silent.
    pub(super) fn watch(&mut self, id: &SessionId) {
        let now = self.cx.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        if !session.pulse.watched {
            session.pulse.watched = true;
            let at = now.plus(self.cx.config.liveness.soonest_ms());
            self.cx.timers.set(at, Timer::Silence(id.clone()));
        }
        if !session.pulse.counted {
            session.pulse.counted = true;
            if let Some(ms) = self.cx.config.sleep.idle_after_ms {
                self.cx.timers.set(now.plus(ms), Timer::Idle(id.clone()));
            }
        }
    }

    /// The agent of a session was told something. If it `owes` words for that, its silence counts
    /// from now on.
    pub(crate) fn told(&mut self, id: &SessionId, owes: bool) {
        let now = self.cx.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(agent) = session.agent.and_then(|it| self.agents.get_mut(&it)) else { return };
        agent.used = now;
        session.pulse.used = now;
        if owes {
            session.pulse.since = now;
            session.pulse.quiet = None;
        }
        self.watch(id);
    }

    pub(crate) fn look_again(&mut self, id: &SessionId, at: Time) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.pulse.watched = true;
        self.cx.timers.set(at, Timer::Silence(id.clone()));
    }

    pub(crate) fn count_again(&mut self, id: &SessionId, at: Time) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.pulse.counted = true;
        self.cx.timers.set(at, Timer::Idle(id.clone()));
    }
}
