//! Limits how fast the agents of a tenant are read. Nothing is dropped: an agent that exceeds the rate is not read for some
//! time, so its pipe fills and it waits.

use super::Tenant;
use crate::{AgentId, Time};
use std::collections::BTreeSet;

/// In thousandths of an event, so that a millisecond counts.
const EVENT: i64 = 1000;

/// The remaining credit of a tenant, and the agents that wait for more. One second of credit can be saved.
#[derive(Debug)]
pub(super) struct RateLimit {
    credit: i64,
    at: Time,
    paused: BTreeSet<AgentId>,
}

impl RateLimit {
    pub(super) fn full(tenant: &Tenant, now: Time) -> RateLimit {
        let credit = tenant.events_per_second.map_or(0, |it| i64::from(it) * EVENT);
        RateLimit { credit, at: now, paused: BTreeSet::new() }
    }

    /// Charges one message. If the agent must be paused, returns when there is credit again.
    pub(super) fn charge_message(
        &mut self,
        now: Time,
        per_second: i64,
        agent: AgentId,
    ) -> Option<Time> {
        self.fill(now, per_second);
        self.credit -= EVENT;
        (self.credit < 0 && self.paused.insert(agent)).then(|| self.next_credit(per_second))
    }

    /// When there is credit again, if there is none now.
    pub(super) fn wait_for_credit(&mut self, now: Time, per_second: i64) -> Option<Time> {
        self.fill(now, per_second);
        (self.credit < 0).then(|| self.next_credit(per_second))
    }

    pub(super) fn is_paused(&self, agent: AgentId) -> bool {
        self.paused.contains(&agent)
    }

    pub(super) fn take_paused_agents(&mut self) -> BTreeSet<AgentId> {
        std::mem::take(&mut self.paused)
    }

    fn fill(&mut self, now: Time, per_second: i64) {
        let since = i64::try_from(now.since(self.at)).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(since.saturating_mul(per_second));
        (self.credit, self.at) = (self.credit.min(per_second * EVENT), now);
    }

    fn next_credit(&self, per_second: i64) -> Time {
        let missing = (-self.credit).max(1);
        self.at.plus(u64::try_from((missing + per_second - 1) / per_second).unwrap_or(1))
    }
}
