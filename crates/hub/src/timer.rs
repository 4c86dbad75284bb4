//! Timers. A timer that no longer applies still fires; its handler checks that and does nothing.

use crate::{AgentId, SessionId, Time};
use jackfield_events::TenantName;
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HubTimer {
    /// This agent should have answered this step of its start by now.
    AgentStart(AgentId, u64),
    /// The pause before this session's agent is started again is over.
    Wake(SessionId),
    /// A session that wakes has waited long enough for what it waits for.
    Restore(SessionId),
    /// This turn was asked to stop, this hard, and has not.
    Cancel(SessionId, u64, u64),
    /// This ask has waited as long as its session lets it.
    AskRule(SessionId, u64),
    /// Try the appends of this session again.
    AppendRetry(SessionId),
    /// The summary of this session has changed a moment ago.
    Summary(SessionId),
    /// A journal read failed; this client's reading of this session goes on.
    ReadRetry(SessionId, crate::ConnId),
    /// The agent of this session may have been silent in it for too long.
    Silence(SessionId),
    /// This session's agent may not have been used in it for long.
    Idle(SessionId),
    /// Nobody may have needed this session here for a while.
    Unattended(SessionId),
    /// Nobody may have taken this warm process for long.
    WarmIdle(AgentId),
    /// The pause before a warm process is started again is over.
    Warm,
    /// The agents of this tenant may be read again.
    Rate(TenantName),
    /// The turns that still run when the daemon stops have had their time.
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
