//! Tenants of a world: in some worlds clients belong to one, and must not know of the others' sessions.

use super::World;
use jackfield_hub::{ConnId, SessionId, Tenant, tenant_of};
use jackfield_test_support::rng::Rng;
use std::sync::Arc;

/// Both there can be.
const NAMES: [&str; 2] = ["ash", "birch"];

/// Which there are, with their quotas.
#[derive(Debug, Default)]
pub(super) struct Tenants(Vec<Arc<Tenant>>);

impl Tenants {
    /// In most worlds there are none.
    pub(super) fn new(rng: &mut Rng) -> Tenants {
        if !rng.chance(40) {
            return Tenants::default();
        }
        let mut tenant = |name: &str| Tenant {
            name: name.into(),
            sessions: rng.pick(&[None, None, Some(1), Some(2)]),
            agents: rng.pick(&[None, None, Some(1), Some(2)]),
            events_per_second: rng.pick(&[None, None, Some(20), Some(200)]),
            commands: rng.chance(50),
            roots: vec!["/x".into()],
        };
        Tenants(NAMES.map(|it| Arc::new(tenant(it))).into())
    }

    /// Whose client one is; nobody's is the operator's.
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

impl World {
    /// Whether a session is none that this client may know of.
    pub(super) fn is_strange(&self, conn: ConnId, session: &str) -> bool {
        let tenant = self.conns.get(&conn).and_then(|it| self.clients[it.client].tenant.as_ref());
        tenant.is_some_and(|it| tenant_of(session) != Some(&it.name))
    }

    /// One of the sessions that clients have heard of. Behind a relay connection stands a gateway, which asks for
    /// nothing that is not its client's; others try.
    pub(super) fn some_session(&mut self, conn: ConnId) -> Option<SessionId> {
        let it = &self.conns[&conn];
        let may_try = self.clients[it.client].tenant.is_some() && !it.relay;
        let tries = may_try && self.rng.chance(30);
        let known = self.known.iter().filter(|it| tries || !self.is_strange(conn, it));
        let known: Vec<SessionId> = known.cloned().collect();
        match known.len() {
            0 => None,
            len => Some(known[self.rng.index(len)].clone()),
        }
    }
}
