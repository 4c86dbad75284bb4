//! Tenants in the gateway: a client that is bound to a tenant can only name and see sessions of
//! that tenant, and its host connections are bound to the same tenant. The hosts enforce everything
//! else.

use super::input::SessionPage;
use jackfield_events::TenantName;
use jackfield_hub::{Tenant, is_known_to};
use jackfield_protocol::{Fault, Frame, is_planted};
use std::collections::BTreeMap;

/// The tenant of one client. A client without a tenant is the operator.
#[derive(Debug, Default)]
pub(super) struct TenantBinding {
    /// The tenant, and the frame that binds each host connection to it.
    bound: Option<(Tenant, Frame)>,
}

impl TenantBinding {
    /// The tenant that a frame names, if it is valid.
    pub(super) fn parse(frame: &Frame) -> Option<TenantBinding> {
        let tenant = Tenant::of_binding(frame)?;
        Some(TenantBinding { bound: Some((tenant, frame.clone())) })
    }

    pub(super) fn tenant(&self) -> Option<&Tenant> {
        self.bound.as_ref().map(|(tenant, _)| tenant)
    }

    pub(super) fn name(&self) -> Option<&TenantName> {
        self.tenant().map(|it| &it.name)
    }

    pub(super) fn frame(&self) -> Option<&Frame> {
        self.bound.as_ref().map(|(_, frame)| frame)
    }

    /// A session that the client may not see is reported as missing.
    pub(super) fn check_session_visible(&self, frame: &Frame) -> Result<(), Fault> {
        match frame.session_id() {
            Some(session)
                if !is_planted("gateway-relays-foreign-session")
                    && !is_known_to(self.name().map(TenantName::as_str), &session) =>
            {
                Err(Fault::SessionNotFound { session: session.into_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Removes the sessions that the client may not see.
    pub(super) fn visible_sessions(&self, mut page: SessionPage) -> SessionPage {
        page.sessions.retain(|it| {
            is_planted("gateway-lists-foreign-sessions")
                || is_known_to(self.name().map(TenantName::as_str), &it.session)
        });
        page
    }
}

/// The number of connected clients, by tenant.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    all: usize,
    by_tenant: BTreeMap<TenantName, usize>,
}

impl ClientCounts {
    pub(super) fn add_client(&mut self) {
        self.all += 1;
    }

    pub(super) fn bind_client(&mut self, tenant: &TenantName) {
        *self.by_tenant.entry(tenant.clone()).or_default() += 1;
    }

    pub(super) fn remove_client(&mut self, tenant: Option<&TenantName>) {
        self.all -= 1;
        if let Some(tenant) = tenant
            && let Some(count) = self.by_tenant.get_mut(tenant)
        {
            *count -= 1;
            if *count == 0 {
                self.by_tenant.remove(tenant);
            }
        }
    }

    /// The number of clients that a client of this tenant may see.
    pub(super) fn count_visible_to(&self, tenant: Option<&TenantName>) -> usize {
        tenant.map_or(self.all, |it| self.by_tenant.get(it).copied().unwrap_or(0))
    }
}
