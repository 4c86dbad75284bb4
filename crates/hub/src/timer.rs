//! Timers. A timer that no longer applies still fires; its handler checks that and does nothing.

use crate::{AgentId, SessionId, Time};
use jackfield_events::TenantName;
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HubTimer {
    /// The deadline of a request during the start of an agent.
    AgentStart(AgentId, u64),
    /// The deadline of a client's request that changes a setting.
    Setting(AgentId, u64),
    /// The delay before the agent of this session is restarted is over.
    Wake(SessionId),
    /// The deadline of the current restore step.
    Restore(SessionId),
    /// The deadline of a stage of canceling this turn.
    Cancel(SessionId, u64, u64),
    /// The deadline of this request to the user.
    AskRule(SessionId, u64),
    /// Retry the appends of this session.
    AppendRetry(SessionId),
    /// The summary of this session is due.
    Summary(SessionId),
    /// Retry a failed read for this client.
    ReadRetry(SessionId, crate::ConnId),
    /// Retry a failed read of a page of a log.
    LogPage(u64),
    /// Notify watchers of what changed.
    Changes,
    /// Check whether the agent is silent for too long in this session.
    Silence(SessionId),
    /// Check whether this session is idle for long enough to be suspended.
    Idle(SessionId),
    /// Check whether no client uses this session here, so that it can be released.
    Unattended(SessionId),
    /// Check whether this warm process is unused for too long.
    WarmIdle(AgentId),
    /// The delay before a warm process is restarted is over.
    Warm,
    /// The rate limit of this tenant permits reading its agents again.
    Rate(TenantName),
    /// The deadline of running turns after the hub was asked to stop.
    StopGrace,
}

#[derive(Debug)]
pub struct Timers<T>(BTreeSet<(Time, T)>);

impl<T> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers(BTreeSet::new())
    }
}

impl<T: Ord> Timers<T> {
    pub fn set(&mut self, at: Time, timer: T) {
        self.0.insert((at, timer));
    }

    pub fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    pub fn due(&mut self, now: Time) -> Option<T> {
        let (at, _) = self.0.first()?;
        if now < *at {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
