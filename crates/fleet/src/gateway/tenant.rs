//! Tenants in the gateway: a client that is bound to a tenant can only name and see sessions of
//! that tenant, and its host connections are bound to the same tenant. The hosts enforce everything
//! else.

use super::{Gateway, SessionPage};
use jackfield_hub::{ConnId, Tenant, is_known_to, quota_fault};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

impl Gateway {
    /// Binds a client that has not sent anything else yet. If the binding is invalid the client is
    /// closed, since it must not continue with the operator's rights.
    pub(super) fn bind_tenant(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        if client.tenant.is_some() || !client.host_conns.is_empty() {
            return;
        }
        match Tenant::of_binding(frame) {
            Some(tenant) => client.tenant = Some((Arc::new(tenant), frame.clone())),
            None => self.close_client(conn),
        }
    }

    pub(super) fn tenant_name(&self, conn: ConnId) -> Option<&str> {
        self.tenant(conn).map(|it| &*it.name)
    }

    fn tenant(&self, conn: ConnId) -> Option<&Arc<Tenant>> {
        self.clients.get(&conn)?.tenant.as_ref().map(|(tenant, _)| tenant)
    }

    /// A session that the client may not see is reported as missing.
    pub(super) fn check_session_visible(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        match frame.session_id() {
            Some(session)
                if !is_planted("gateway-relays-foreign-session")
                    && !is_known_to(self.tenant_name(conn), &session) =>
            {
                Err(Fault::SessionNotFound { session: session.into_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Removes the sessions that the client may not see.
    pub(super) fn visible_sessions(&self, conn: ConnId, mut page: SessionPage) -> SessionPage {
        page.sessions.retain(|it| {
            is_planted("gateway-lists-foreign-sessions")
                || is_known_to(self.tenant_name(conn), &it.session)
        });
        page
    }

    /// The number of connected clients that this client may see.
    pub(super) fn count_visible_clients(&self, conn: ConnId) -> usize {
        let tenant = self.tenant_name(conn);
        let is_visible = |it: &&ConnId| tenant.is_none() || self.tenant_name(**it) == tenant;
        self.clients.keys().filter(is_visible).count()
    }

    /// Whether the tenant of a client may have one more awake session in the fleet, by the last
    /// reports of the hosts and the sessions that these do not include yet.
    pub(super) fn check_session_quota(&self, conn: ConnId) -> Result<(), Fault> {
        let Some(tenant) = self.tenant(conn) else { return Ok(()) };
        let Some(max) = tenant.sessions else { return Ok(()) };
        let reported = self.hosts.values().filter_map(|it| it.tenants.get(&tenant.name));
        let placed = self.placed.count_of_tenant(&tenant.name);
        let awake = reported.sum::<usize>() + placed;
        if awake < max {
            return Ok(());
        }
        Err(quota_fault(&tenant.name, awake, max, "sessions that are awake"))
    }
}
