//! What a client of a tenant may name and request. Every frame of a client is checked here first, so a new method cannot
//! omit the check.

use super::Clients;
use crate::{
    ConnId, Hub, Output, SessionId,
    session_name::is_known_to,
    tenant::{Tenant, check_request, inside},
};
use jackfield_protocol::{Fault, Frame, acp::TenantRule};
use serde_json::Value;
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

impl Hub {
    /// Binds a new connection to a tenant. A connection that cannot be bound is closed, so that it is not taken for one of
    /// the operator.
    pub(crate) fn on_bind(&mut self, conn: ConnId, frame: &Frame) {
        let Some(it) = self.parts.clients.connections.get_mut(&conn) else { return };
        if it.tenant.is_some() || it.initialize_params.is_some() {
            return;
        }
        let Some(tenant) = Tenant::of_binding(frame) else {
            self.parts.cx.outputs.push_back(Output::CloseClient { conn });
            return self.on_client_gone(conn);
        };
        let tenant = Arc::new(tenant);
        it.tenant = Some(tenant.clone());
        self.meet(tenant);
    }

    /// Whether an imported session may belong to this client.
    pub(crate) fn may_keep(&self, conn: ConnId, id: &SessionId) -> Result<(), Fault> {
        let (Some(tenant), Some(session)) =
            (self.parts.clients.find_tenant(conn), self.sessions.by_id.get(id))
        else {
            return Ok(());
        };
        let params: Value =
            serde_json::from_str(session.summary().params.as_str()).unwrap_or_default();
        let more = params.get("additionalDirectories").and_then(Value::as_array);
        let more = more.into_iter().flatten().map(|it| it.as_str().unwrap_or_default());
        std::iter::once(session.summary().cwd.as_str())
            .chain(more)
            .try_for_each(|it| inside(tenant, it))
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
        "`{method}` concerns everybody and not only tenant `{}`: whoever runs this can do it",
        tenant.name
    );
    Fault::NotAllowed { why }
}
