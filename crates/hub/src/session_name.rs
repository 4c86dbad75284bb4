//! Names of sessions. The name of a tenant's session starts with the tenant: `acme.s-…`.

use crate::SessionId;
use std::collections::BTreeMap;

/// Separates the tenant from the rest of the name.
const DOT: char = '.';

/// The tenant of a session.
pub fn tenant_of(session: &str) -> Option<&str> {
    session.split_once(DOT).map(|(tenant, _)| tenant)
}

/// The name of a session of this tenant.
pub(crate) fn named_for(tenant: Option<&str>, name: &str) -> SessionId {
    match tenant {
        Some(tenant) => format!("{tenant}{DOT}{name}").into(),
        None => name.into(),
    }
}

/// **The rule**: a client of a tenant may know the sessions of this tenant and no others.
pub fn is_known_to(tenant: Option<&str>, session: &str) -> bool {
    tenant.is_none() || tenant_of(session) == tenant
}

/// The sessions of a tenant, or all. They are adjacent, because their names start alike.
pub(crate) fn known_to<'s, 't, T>(
    tenant: Option<&'t str>,
    sessions: &'s BTreeMap<SessionId, T>,
) -> impl Iterator<Item = (&'s SessionId, &'s T)> + use<'s, 't, T> {
    let from = tenant.map(|it| SessionId::from(format!("{it}{DOT}")));
    let from = from.unwrap_or_else(|| "".into());
    sessions.range(from..).take_while(move |(id, _)| is_known_to(tenant, id))
}
