//! The live hosts, and the choice of a host for a new session by agent, labels, free processes and
//! load.

use super::{
    config::{Host, HostId},
    placed_sessions::PlacedSessions,
    placement_request::PlacementRequest,
};
use jackfield_hub::{Tenant, quota_fault};
use jackfield_protocol::Fault;
use std::collections::{BTreeMap, BTreeSet};

/// Why no host was chosen.
pub(super) enum PlacementError {
    /// A host may become available.
    Temporary(&'static str),
    Permanent(Fault),
}

#[derive(Debug, Default)]
pub(super) struct HostDirectory {
    by_name: BTreeMap<HostId, Host>,
    /// Hosts whose connection was lost and that have sent nothing since.
    suspects: BTreeSet<HostId>,
}

impl HostDirectory {
    /// Replaces the hosts with those of a new report.
    pub(super) fn apply_report(&mut self, hosts: Vec<Host>, placed: &mut PlacedSessions) {
        let hosts = hosts.into_iter().map(|it| (it.name.clone(), it)).collect();
        placed.apply_report(&self.by_name, &hosts);
        self.by_name = hosts;
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn names(&self) -> Vec<HostId> {
        self.by_name.keys().cloned().collect()
    }

    pub(super) fn incarnation_of(&self, host: &HostId) -> Option<u64> {
        self.by_name.get(host).map(|it| it.incarnation)
    }

    /// New sessions avoid the host until it sends a frame.
    pub(super) fn add_suspect(&mut self, host: HostId) {
        self.suspects.insert(host);
    }

    pub(super) fn remove_suspect(&mut self, host: &HostId) {
        self.suspects.remove(host);
    }

    pub(super) fn remove_unlisted_suspects(&mut self) {
        self.suspects.retain(|it| self.by_name.contains_key(it));
    }

    /// Whether a tenant may have one more awake session in the fleet, by the last reports of the
    /// hosts and the sessions that these do not include yet.
    pub(super) fn check_session_quota(
        &self,
        tenant: Option<&Tenant>,
        placed: &PlacedSessions,
    ) -> Result<(), Fault> {
        let Some(tenant) = tenant else { return Ok(()) };
        let Some(max) = tenant.sessions else { return Ok(()) };
        let reported = self.by_name.values().filter_map(|it| it.tenants.get(&tenant.name));
        let awake = reported.sum::<usize>() + placed.count_of_tenant(&tenant.name);
        if awake < max {
            return Ok(());
        }
        Err(quota_fault(&tenant.name, awake, max, "sessions that are awake"))
    }

    pub(super) fn choose_host(
        &self,
        request: &PlacementRequest,
        placed: &PlacedSessions,
    ) -> Result<HostId, PlacementError> {
        let mut available = self.by_name.values().filter(|it| !it.draining).peekable();
        if available.peek().is_none() {
            return Err(PlacementError::Temporary(if self.by_name.is_empty() {
                "no host is online; start one and try again"
            } else {
                "every host is draining; start another and try again"
            }));
        }
        let eligible = available.filter(|it| request.unmet_requirement(it).is_none());
        let preference = |it: &&Host| {
            let placed_here = placed.count_on(&it.name);
            let free = it.free_processes(request.agent.as_deref());
            let is_full = free.is_some_and(|free| free <= placed_here);
            let is_preferred = request.preferred_host.as_ref() == Some(&it.name);
            (
                self.suspects.contains(&it.name),
                is_full,
                !is_preferred,
                it.load + placed_here,
                it.name.clone(),
            )
        };
        eligible.min_by_key(preference).map(|it| it.name.clone()).ok_or_else(|| {
            let available = self.by_name.values().filter(|it| !it.draining);
            let unmet = available
                .filter_map(|it| Some(format!("`{}` {}", it.name, request.unmet_requirement(it)?)));
            let why = unmet.collect::<Vec<_>>().join(", ");
            PlacementError::Permanent(Fault::NoHost { why })
        })
    }
}
