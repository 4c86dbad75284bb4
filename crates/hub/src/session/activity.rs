//! When a session was last active, for suspending idle agents and for reporting silent ones. A process that serves
//! several sessions can be silent in one of them.

use super::Session;
use crate::{Time, context::HubContext, parts::HubParts, timer::HubTimer};

#[derive(Debug, Default)]
pub(crate) struct SessionActivity {
    /// Since when a message of the agent is due: its last message, or the last one that expects a reply.
    pub(crate) since: Time,
    /// When the agent last sent or received a message.
    pub(crate) last_active_at: Time,
    /// The start of a silence that was reported.
    pub(crate) quiet: Option<Time>,
    /// The timer for silence is set.
    watched: bool,
    counted: bool,
}

impl SessionActivity {
    /// The agent sent something. Returns whether a timer must be set.
    pub(crate) fn mark(&mut self, now: Time) -> bool {
        self.since = now;
        self.last_active_at = now;
        self.quiet = None;
        !(self.watched && self.counted)
    }

    /// The timer for silence has fired.
    pub(crate) fn looked(&mut self) {
        self.watched = false;
    }

    /// The timer for idle sessions has fired.
    pub(crate) fn recounted(&mut self) {
        self.counted = false;
    }
}

impl Session {
    /// The agent said something in this session.
    pub(crate) fn mark_activity(&mut self, cx: &mut HubContext) {
        if self.activity.mark(cx.now) {
            self.watch_activity(cx);
        }
    }

    /// Sets the timers that check whether the session is silent or idle, unless they are set.
    pub(super) fn watch_activity(&mut self, cx: &mut HubContext) {
        if !self.activity.watched {
            self.schedule_silence_check(cx, cx.now.plus(cx.config.liveness.soonest_ms()));
        }
        if !self.activity.counted {
            self.activity.counted = true;
            if let Some(ms) = cx.config.sleep.idle_after_ms {
                cx.timers.set(cx.now.plus(ms), HubTimer::Idle(self.id.clone()));
            }
        }
    }

    /// Something was sent to the agent. If it `expects_reply`, its silence counts from now on.
    pub(crate) fn mark_agent_used(&mut self, parts: &mut HubParts, expects_reply: bool) {
        let now = parts.cx.now;
        let agent = self.agent.and_then(|it| parts.agents.processes.get_mut(&it));
        let Some(agent) = agent else { return };
        agent.last_active_at = now;
        self.activity.last_active_at = now;
        if expects_reply {
            self.activity.since = now;
            self.activity.quiet = None;
        }
        self.watch_activity(&mut parts.cx);
    }

    pub(crate) fn schedule_silence_check(&mut self, cx: &mut HubContext, at: Time) {
        self.activity.watched = true;
        cx.timers.set(at, HubTimer::Silence(self.id.clone()));
    }

    pub(crate) fn schedule_idle_check(&mut self, cx: &mut HubContext, at: Time) {
        self.activity.counted = true;
        cx.timers.set(at, HubTimer::Idle(self.id.clone()));
    }
}
