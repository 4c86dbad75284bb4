//! The tenants of a world: in some worlds clients belong to a tenant and must not learn of sessions of others.

use super::HubWorld;
use jackfield_hub::{ConnId, SessionId, Tenant, tenant_of};
use jackfield_test_support::rng::Rng;
use std::sync::Arc;

/// The names of the tenants.
const NAMES: [&str; 2] = ["ash", "birch"];

/// The tenants of a world with their quotas.
#[derive(Debug, Default)]
pub(super) struct SimulatedTenants(Vec<Arc<Tenant>>);

impl SimulatedTenants {
    /// Most worlds have no tenants.
    pub(super) fn new(rng: &mut Rng) -> SimulatedTenants {
        if !rng.chance(40) {
            return SimulatedTenants::default();
        }
        let mut tenant = |name: &str| Tenant {
            name: name.into(),
            sessions: rng.pick(&[None, None, Some(1), Some(2)]),
            agents: rng.pick(&[None, None, Some(1), Some(2)]),
            events_per_second: rng.pick(&[None, None, Some(20), Some(200)]),
            commands: rng.chance(50),
            roots: vec!["/x".into()],
        };
        SimulatedTenants(NAMES.map(|it| Arc::new(tenant(it))).into())
    }

    /// Picks the tenant of a client; `None` is the operator.
    pub(super) fn pick(&self, rng: &mut Rng) -> Option<Arc<Tenant>> {
        if self.0.is_empty() || rng.chance(25) {
            return None;
        }
        Some(self.0[rng.index(self.0.len())].clone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.0.iter()
    }
}

impl HubWorld {
    /// Whether the session belongs to another tenant than the client.
    pub(super) fn is_foreign(&self, conn: ConnId, session: &str) -> bool {
        let tenant = self.conns.get(&conn).and_then(|it| self.clients[it.client].tenant.as_ref());
        tenant.is_some_and(|it| tenant_of(session) != Some(&it.name))
    }

    /// Picks a session that clients know. A relay connection belongs to a gateway, which only uses sessions of its
    /// client's tenant; other clients also try foreign ones.
    pub(super) fn pick_session_for(&mut self, conn: ConnId) -> Option<SessionId> {
        let it = &self.conns[&conn];
        let may_try = self.clients[it.client].tenant.is_some() && !it.relay;
        let tries = may_try && self.rng.chance(30);
        let known = self.known_sessions.iter().filter(|it| tries || !self.is_foreign(conn, it));
        let known: Vec<SessionId> = known.cloned().collect();
        match known.len() {
            0 => None,
            len => Some(known[self.rng.index(len)].clone()),
        }
    }
}
