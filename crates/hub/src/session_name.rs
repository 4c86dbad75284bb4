//! Names of sessions. The name of a tenant's session starts with the tenant: `acme.s-…`.

use crate::{SessionId, id::is_session_name};
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

/// Whether a text is a session id in the form of the hub, of this tenant.
pub(crate) fn is_session_id_of(tenant: Option<&str>, text: &str) -> bool {
    let name = text.split_once(DOT).map_or(text, |(_, name)| name);
    tenant_of(text) == tenant && is_session_name(name)
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
