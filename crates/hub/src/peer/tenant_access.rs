//! What a client of a tenant may name and request. Every frame of a client is checked here first, so a new method cannot
//! omit the check.

use super::Clients;
use crate::{
    ConnId,
    session_name::is_known_to,
    tenant::{Tenant, check_request, inside},
};
use jackfield_protocol::{Fault, Frame, acp::TenantRule};
use std::sync::Arc;

impl Clients {
    /// The tenant of a connection.
    pub(crate) fn find_tenant(&self, conn: ConnId) -> Option<&Arc<Tenant>> {
        self.connections.get(&conn)?.tenant.as_ref()
    }

    /// The name of the tenant, with which its sessions start.
    pub(crate) fn tenant_name(&self, conn: ConnId) -> Option<&str> {
        self.find_tenant(conn).map(|it| &*it.name)
    }

    /// Whether a client may know that this session exists.
    pub(crate) fn may_see_session(&self, conn: ConnId, session: &str) -> bool {
        is_known_to(self.tenant_name(conn), session)
    }

    /// Refuses a frame that names a session of another tenant, as if it did not exist, or that requests what the tenant may
    /// not have.
    pub(crate) fn check_tenant_rules(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        let Some(tenant) = self.find_tenant(conn) else { return Ok(()) };
        if let Some(named) = frame.session_id().filter(|it| !self.may_see_session(conn, it)) {
            return Err(Fault::SessionNotFound { session: named.into_owned() });
        }
        let method = frame.method().unwrap_or_default();
        match rule_for(frame) {
            TenantRule::Refused => Err(operators(tenant, &method)),
            // An exported session names a program to start, and a directory.
            TenantRule::Commands if !tenant.commands => {
                Err(no_commands(tenant, "import a session"))
            }
            TenantRule::Process if !tenant.commands => Err(operators(tenant, &method)),
            _ => check_request(tenant, &method, frame),
        }
    }
}

/// The rule of the method table. An unknown method that names no session is for the agent process, which tenants share.
fn rule_for(frame: &Frame) -> TenantRule {
    match frame.known_method() {
        Some(method) => method.row().tenant,
        None if frame.session_id().is_none() && !frame.is_control() => TenantRule::Process,
        None => TenantRule::Allowed,
    }
}

fn no_commands(tenant: &Tenant, what: &str) -> Fault {
    let name = &tenant.name;
    let why = format!(
        "tenant `{name}` may not {what}: it uses the agents that are known here by name; `commands = true` \
         would let it"
    );
    Fault::NotAllowed { why }
}

fn operators(tenant: &Tenant, method: &str) -> Fault {
    let why = format!(
        "`{method}` affects all tenants, and tenant `{}` may not use it: only the operator of this host can",
        tenant.name
    );
    Fault::NotAllowed { why }
}

/// Whether a tenant may have an imported session that works in these directories.
pub(crate) fn check_imported_dirs<'a>(
    tenant: &Tenant,
    mut dirs: impl Iterator<Item = &'a str>,
) -> Result<(), Fault> {
    dirs.try_for_each(|it| inside(tenant, it))
}
