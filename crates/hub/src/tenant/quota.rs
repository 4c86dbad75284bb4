//! The quotas of a tenant: sessions that have an agent, and agent processes. What exceeds a quota is refused with the
//! number and the way out; nothing is ended.

use super::{Tenant, rate::RateLimit};
use crate::{
    Hub, SessionId,
    agent::Agent,
    session::{Session, SessionStage},
    session_name::{known_to, tenant_of},
};
use jackfield_events::TenantName;
use jackfield_protocol::{Fault, is_planted};
use std::{collections::BTreeMap, sync::Arc};

/// What a tenant uses. On other hosts of a fleet: in total, and on how many hosts its agents run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub sessions: usize,
    pub agents: usize,
    pub hosts: usize,
}

/// A tenant as its last client was bound.
#[derive(Debug)]
pub(crate) struct TenantState {
    pub(super) tenant: Arc<Tenant>,
    /// What it uses on other hosts.
    pub(super) elsewhere: Usage,
    pub(super) rate: RateLimit,
}

impl Hub {
    /// A client of this tenant has connected. Its permissions hold for the whole tenant.
    pub(crate) fn meet(&mut self, tenant: Arc<Tenant>) {
        let now = self.parts.cx.now;
        let known = self.parts.tenants.entry(tenant.name.clone());
        let known = known.or_insert_with(|| TenantState {
            tenant: tenant.clone(),
            elsewhere: Usage::default(),
            rate: RateLimit::full(&tenant, now),
        });
        known.tenant = tenant;
    }

    /// What tenants use on the other hosts of a fleet.
    pub(crate) fn on_elsewhere(&mut self, tenants: &BTreeMap<TenantName, Usage>) {
        for (name, known) in &mut self.parts.tenants {
            known.elsewhere = tenants.get(name).copied().unwrap_or_default();
        }
    }

    /// What each tenant uses here.
    pub fn usage(&self) -> BTreeMap<TenantName, Usage> {
        let mut usage: BTreeMap<TenantName, Usage> = BTreeMap::new();
        let awake = self.sessions.by_id.iter().filter(|(_, it)| is_awake(it));
        for tenant in awake.filter_map(|(id, _)| tenant_of(id)) {
            usage.entry(tenant.into()).or_default().sessions += 1;
        }
        let alive = self.parts.agents.processes.values().filter(|it| !it.stopping);
        for tenant in alive.filter_map(|it| self.parts.clients.tenant_of_agent(it)) {
            usage.entry(tenant.into()).or_default().agents += 1;
        }
        usage
    }

    /// Whether one more session of this tenant may have an agent.
    pub(crate) fn may_be_awake(&self, tenant: Option<&str>) -> Result<(), Fault> {
        let Some((known, max)) = self.bound(tenant, |it| it.sessions) else { return Ok(()) };
        let of_it = known_to(tenant, &self.sessions.by_id);
        let awake = of_it.filter(|(_, it)| is_awake(it)).count() + known.elsewhere.sessions;
        under(known, awake, max, "sessions that are awake")
    }

    /// Whether one more agent process of this tenant may run. A process that was asked to stop does not count.
    pub(crate) fn may_be_alive(&self, tenant: Option<&str>) -> Result<(), Fault> {
        let Some((known, max)) = self.bound(tenant, |it| it.agents) else { return Ok(()) };
        let of_it = |it: &&Agent| !it.stopping && self.parts.clients.tenant_of_agent(it) == tenant;
        let alive =
            self.parts.agents.processes.values().filter(of_it).count() + known.elsewhere.agents;
        under(known, alive, max, "agents that are alive")
    }

    fn bound(
        &self,
        tenant: Option<&str>,
        of: impl Fn(&Tenant) -> Option<usize>,
    ) -> Option<(&TenantState, usize)> {
        let known = self.parts.tenants.get(tenant?)?;
        Some((known, of(&known.tenant)?))
    }

    /// The sessions that a client may see: those of its tenant, or all.
    pub(crate) fn sessions_of(
        &self,
        conn: crate::ConnId,
    ) -> impl Iterator<Item = (&SessionId, &Session)> {
        // A session that is being opened is not listed.
        known_to(
            self.parts.clients.tenant_name(conn).filter(|_| !is_planted("list-foreign-sessions")),
            &self.sessions.by_id,
        )
        .filter(|(_, it)| !it.is_opening())
    }
}

fn is_awake(session: &Session) -> bool {
    matches!(
        session.stage,
        SessionStage::Opening(_) | SessionStage::Restoring(_) | SessionStage::Bound
    )
}

fn under(known: &TenantState, now: usize, max: usize, what: &str) -> Result<(), Fault> {
    if now < max + usize::from(is_planted("exceed-quota-by-one")) {
        return Ok(());
    }
    Err(quota_fault(&known.tenant.name, now, max, what))
}

pub fn quota_fault(tenant: &str, now: usize, max: usize, what: &str) -> Fault {
    let why = format!(
        "tenant `{tenant}` has {now} {what}, and may have {max}: close a session, or wait until one sleeps"
    );
    Fault::Quota { why }
}
