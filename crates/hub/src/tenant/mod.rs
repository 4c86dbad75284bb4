//! Tenants that share a hub or a fleet.
//!
//! The name of a session starts with its tenant, `acme.s-…`, and nothing else says which tenant it belongs to. A
//! connection is bound to a tenant once, before its first message, by the listener that accepted it:
//! [`Tenant::binding`] is the message for that. A connection that is not bound belongs to the operator, who sees
//! everything.
//!
//! `peer/tenant_access.rs` checks every frame of a bound client. `request` lists what a request may carry to an agent,
//! `server_url` which addresses of MCP servers are allowed. `quota` limits what a tenant may have, `rate` how fast its
//! agents are read.

mod quota;
mod rate;
mod request;
mod server_url;
mod tenants;
#[cfg(test)]
mod tests;

pub use quota::quota_fault;
pub(crate) use request::{check as check_request, inside};
pub(crate) use tenants::Tenants;
pub use tenants::Usage;

use jackfield_events::TenantName;
use jackfield_protocol::{Frame, acp::Method};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// The maximum length of a name.
const NAME_CHARS_MAX: usize = 32;

/// A tenant, its permissions and its limits. Without a number there is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    #[serde(rename = "tenant")]
    pub name: TenantName,
    /// Sessions that have an agent at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// Agent processes that run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<usize>,
    /// Events of its agents. They are read more slowly; nothing is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<u32>,
    /// It may have any program started.
    #[serde(default)]
    pub commands: bool,
    /// Its sessions work in one of these directories, or below.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
}

impl Tenant {
    /// The frame that binds a connection. It is the first one, sent by the listener.
    pub fn binding(&self) -> Frame {
        let params =
            serde_json::to_string(self).expect("names, numbers and paths of text are JSON");
        Frame::notification(Method::ControlTenant.name(), &params)
    }

    /// The tenant in a binding; `None` if it is not valid.
    pub fn of_binding(frame: &Frame) -> Option<Tenant> {
        let tenant: Tenant = serde_json::from_str(frame.params()?).ok()?;
        is_tenant_name(&tenant.name).then_some(tenant)
    }

    /// Whether a directory is in one of the roots, by its name.
    pub(crate) fn may_work_in(&self, dir: &str) -> bool {
        let dir = Path::new(dir);
        let plain = dir.is_absolute() && dir.components().all(|it| it != Component::ParentDir);
        plain && self.roots.iter().any(|root| dir.starts_with(root))
    }
}

/// The rule for names, for error messages.
pub const TENANT_NAME_RULE: &str = "a tenant is called by 1 to 32 of `a` to `z`, digits and `-`";

/// Whether this is a valid name of a tenant.
pub fn is_tenant_name(name: &str) -> bool {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(fits)
}
