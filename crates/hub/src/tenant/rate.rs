//! Limits how fast the agents of a tenant are read. Nothing is dropped: an agent that exceeds the rate is not read for some
//! time, so its pipe fills and it waits.

use super::{Tenant, TenantState};
use crate::{AgentId, Hub, Output, Time, timer::HubTimer};
use jackfield_events::TenantName;
use std::collections::BTreeSet;

/// In thousandths of an event, so that a millisecond counts.
const EVENT: i64 = 1000;

/// The remaining credit of a tenant, and the agents that wait for more. One second of credit can be saved.
#[derive(Debug)]
pub(super) struct RateLimit {
    credit: i64,
    at: Time,
    held: BTreeSet<AgentId>,
}

impl RateLimit {
    pub(super) fn full(tenant: &Tenant, now: Time) -> RateLimit {
        let credit = tenant.events_per_second.map_or(0, |it| i64::from(it) * EVENT);
        RateLimit { credit, at: now, held: BTreeSet::new() }
    }

    fn fill(&mut self, now: Time, per_second: i64) {
        let since = i64::try_from(now.since(self.at)).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(since.saturating_mul(per_second));
        (self.credit, self.at) = (self.credit.min(per_second * EVENT), now);
    }

    /// When the debt is paid.
    fn due(&self, per_second: i64) -> Time {
        let missing = (-self.credit).max(1);
        self.at.plus(u64::try_from((missing + per_second - 1) / per_second).unwrap_or(1))
    }
}

impl TenantState {
    /// Its rate here. Hosts on which its agents run share it evenly.
    fn per_second(&self) -> Option<i64> {
        let hosts = i64::try_from(self.elsewhere.hosts + 1).unwrap_or(i64::MAX);
        self.tenant.events_per_second.map(|it| (i64::from(it) / hosts).max(1))
    }
}

impl Hub {
    /// Charges a message of an agent to its tenant, and pauses the agent when the credit is used up.
    pub(crate) fn pay(&mut self, id: AgentId) {
        if self.parts.tenants.is_empty() {
            return; // The way of every frame where there are no tenants.
        }
        let Some(agent) = self.parts.agents.processes.get(&id) else { return };
        let name = self
            .parts
            .clients
            .tenant_of_agent(agent)
            .and_then(|it| self.parts.tenants.get_key_value(it));
        let Some(name) = name.map(|(name, _)| name.clone()) else { return };
        let known = self.parts.tenants.get_mut(&name).expect("found above");
        let Some(per_second) = known.per_second() else { return };
        known.rate.fill(self.parts.cx.now, per_second);
        known.rate.credit -= EVENT;
        if 0 <= known.rate.credit || !known.rate.held.insert(id) {
            return;
        }
        let due = known.rate.due(per_second);
        self.parts.cx.timers.set(due, HubTimer::Rate(name));
        self.parts.cx.outputs.push_back(Output::PauseAgent { agent: id });
    }

    /// Whether an agent is paused because of the rate limit of its tenant.
    pub(crate) fn is_held(&self, id: AgentId) -> bool {
        self.parts.tenants.values().any(|it| it.rate.held.contains(&id))
    }

    /// There may be credit again: paused agents are read, unless the journal is behind.
    pub(crate) fn on_rate(&mut self, name: &TenantName) {
        let Some(known) = self.parts.tenants.get_mut(name) else { return };
        if let Some(per_second) = known.per_second() {
            known.rate.fill(self.parts.cx.now, per_second);
            if known.rate.credit < 0 {
                let due = known.rate.due(per_second);
                return self.parts.cx.timers.set(due, HubTimer::Rate(name.clone()));
            }
        }
        for id in std::mem::take(&mut known.rate.held) {
            if self.parts.agents.processes.get(&id).is_some_and(|it| !it.paused) {
                self.parts.cx.outputs.push_back(Output::ResumeAgent { agent: id });
            }
        }
    }
}
