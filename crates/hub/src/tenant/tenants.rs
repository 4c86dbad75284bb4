//! The tenants whose clients have connected: their quotas and rates.

use super::{Tenant, quota::check_limit, rate::RateLimit};
use crate::{AgentId, Time, context::HubContext, timer::HubTimer};
use jackfield_events::TenantName;
use jackfield_protocol::Fault;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a tenant uses. On other hosts of a fleet: in total, and on how many hosts its agents run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub sessions: usize,
    pub agents: usize,
    pub hosts: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Tenants {
    by_name: BTreeMap<TenantName, TenantState>,
}

/// A tenant as its last client was bound.
#[derive(Debug)]
struct TenantState {
    tenant: Arc<Tenant>,
    /// What it uses on other hosts.
    elsewhere: Usage,
    rate: RateLimit,
}

impl TenantState {
    /// Its rate here. Hosts on which its agents run share it evenly.
    fn per_second(&self) -> Option<i64> {
        let hosts = i64::try_from(self.elsewhere.hosts + 1).unwrap_or(i64::MAX);
        self.tenant.events_per_second.map(|it| (i64::from(it) / hosts).max(1))
    }
}

impl Tenants {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A client of this tenant has connected. Its permissions hold for the whole tenant.
    pub(crate) fn register_tenant(&mut self, tenant: Arc<Tenant>, now: Time) {
        let known = self.by_name.entry(tenant.name.clone());
        let known = known.or_insert_with(|| TenantState {
            tenant: tenant.clone(),
            elsewhere: Usage::default(),
            rate: RateLimit::full(&tenant, now),
        });
        known.tenant = tenant;
    }

    /// Sets what tenants use on the other hosts of a fleet.
    pub(crate) fn set_usage_elsewhere(&mut self, tenants: &BTreeMap<TenantName, Usage>) {
        for (name, known) in &mut self.by_name {
            known.elsewhere = tenants.get(name).copied().unwrap_or_default();
        }
    }

    /// Whether one more session of this tenant may have an agent; `count` counts those here.
    pub(crate) fn check_session_quota(
        &self,
        tenant: Option<&str>,
        count: impl FnOnce() -> usize,
    ) -> Result<(), Fault> {
        let Some(known) = self.find_tenant(tenant) else { return Ok(()) };
        let Some(max) = known.tenant.sessions else { return Ok(()) };
        let count_now = count() + known.elsewhere.sessions;
        check_limit(&known.tenant.name, count_now, max, "sessions that are awake")
    }

    /// Whether one more agent process of this tenant may run; `count` counts those here.
    pub(crate) fn check_agent_quota(
        &self,
        tenant: Option<&str>,
        count: impl FnOnce() -> usize,
    ) -> Result<(), Fault> {
        let Some(known) = self.find_tenant(tenant) else { return Ok(()) };
        let Some(max) = known.tenant.agents else { return Ok(()) };
        let count_now = count() + known.elsewhere.agents;
        check_limit(&known.tenant.name, count_now, max, "agents that are alive")
    }

    fn find_tenant(&self, tenant: Option<&str>) -> Option<&TenantState> {
        self.by_name.get(tenant?)
    }

    /// Charges one message of an agent. Returns true if the agent must be paused.
    pub(crate) fn charge_message(
        &mut self,
        cx: &mut HubContext,
        tenant: &str,
        agent: AgentId,
    ) -> bool {
        let Some(known) = self.by_name.get_mut(tenant) else { return false };
        let Some(per_second) = known.per_second() else { return false };
        let Some(due) = known.rate.charge_message(cx.now, per_second, agent) else { return false };
        cx.timers.set(due, HubTimer::Rate(known.tenant.name.clone()));
        true
    }

    /// Whether an agent is paused because of the rate limit of its tenant.
    pub(crate) fn is_paused(&self, agent: AgentId) -> bool {
        self.by_name.values().any(|it| it.rate.is_paused(agent))
    }

    /// The paused agents of a tenant that has credit again.
    pub(crate) fn take_resumable_agents(
        &mut self,
        cx: &mut HubContext,
        tenant: &TenantName,
    ) -> BTreeSet<AgentId> {
        let Some(known) = self.by_name.get_mut(tenant) else { return BTreeSet::new() };
        if let Some(per_second) = known.per_second()
            && let Some(due) = known.rate.wait_for_credit(cx.now, per_second)
        {
            cx.timers.set(due, HubTimer::Rate(tenant.clone()));
            return BTreeSet::new();
        }
        known.rate.take_paused_agents()
    }
}
