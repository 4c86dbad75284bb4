//! Tenants, as the gateway minds them: a client that is bound names and is told of its own sessions only,
//! and each of its host connections is bound as it is. The hosts hold it to everything else.

use super::{Gateway, SessionPage};
use jackfield_hub::{ConnId, Tenant, is_known_to, quota_fault};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

impl Gateway {
    /// Binds a client that has said nothing yet. One that cannot be bound is hung up on: it must not go on
    /// as the operator's.
    pub(super) fn on_bind(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it spoke");
        if client.tenant.is_some() || !client.host_conns.is_empty() {
            return;
        }
        match Tenant::of_binding(frame) {
            Some(tenant) => client.tenant = Some((Arc::new(tenant), frame.clone())),
            None => self.hang_up(conn),
        }
    }

    pub(super) fn tenant_name(&self, conn: ConnId) -> Option<&str> {
        self.tenant(conn).map(|it| &*it.name)
    }

    fn tenant(&self, conn: ConnId) -> Option<&Arc<Tenant>> {
        self.clients.get(&conn)?.tenant.as_ref().map(|(tenant, _)| tenant)
    }

    /// Whoever names a session that is not for it to know hears what it would hear if there were none.
    pub(super) fn may_name(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        match frame.session_id() {
            Some(named)
                if !is_planted("gateway-relays-foreign-session")
                    && !is_known_to(self.tenant_name(conn), &named) =>
            {
                Err(Fault::SessionNotFound { session: named.into_owned() })
            }
            _ => Ok(()),
        }
    }

    /// What a client may be told of a page.
    pub(super) fn known_of(&self, conn: ConnId, mut page: SessionPage) -> SessionPage {
        page.sessions.retain(|it| {
            is_planted("gateway-lists-foreign-sessions")
                || is_known_to(self.tenant_name(conn), &it.session)
        });
        page
    }

    /// How many clients are connected that this one may know of.
    pub(super) fn fellows(&self, conn: ConnId) -> usize {
        let tenant = self.tenant_name(conn);
        let is_fellow = |it: &&ConnId| tenant.is_none() || self.tenant_name(**it) == tenant;
        self.clients.keys().filter(is_fellow).count()
    }

    /// Whether the tenant of a client may have one more session awake in the whole fleet, by the last reports
    /// of the hosts and the sessions that these do not count yet.
    pub(super) fn may_have_more(&self, conn: ConnId) -> Result<(), Fault> {
        let Some(tenant) = self.tenant(conn) else { return Ok(()) };
        let Some(max) = tenant.sessions else { return Ok(()) };
        let told = self.hosts.values().filter_map(|it| it.tenants.get(&tenant.name));
        let placed = self.placed.count_of(&tenant.name);
        let awake = told.sum::<usize>() + placed;
        if awake < max {
            return Ok(());
        }
        Err(quota_fault(&tenant.name, awake, max, "sessions that are awake"))
    }
}
