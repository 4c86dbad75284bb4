//! Tenants: several who share a hub, or a fleet, and know nothing of each other.
//!
//! A session's name begins with its tenant, `acme.s-…`, and nothing else says whose it is: the log, the
//! list and the archive need no more. A connection is bound to a tenant once, before it says anything, by
//! whoever let it in: [`Tenant::binding`] is what it says then. Who is not bound is the operator, and sees
//! everything.
//!
//! `peer/tenant_access.rs` checks every frame of a bound client: which sessions it may name, and what it may
//! ask for. `request` lists what a request may carry to an agent, `server_url` the
//! addresses of MCP servers. `quota` is how much a tenant may have, `rate` how fast its agents are
//! read.

mod quota;
mod rate;
mod request;
mod server_url;
#[cfg(test)]
mod tests;

pub(crate) use quota::TenantState;
pub use quota::Usage;
pub use quota::quota_fault;
pub(crate) use request::{check as check_request, inside};

use jackfield_events::TenantName;
use jackfield_protocol::{Frame, acp::Method};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// What is said on a connection to bind it.
const NAME_CHARS_MAX: usize = 32;

/// A tenant, what it may do, and how much it may have; without a number there is no bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    #[serde(rename = "tenant")]
    pub name: TenantName,
    /// Sessions that are awake at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// Agent processes that are alive at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<usize>,
    /// What its agents may say. They are read more slowly, and nothing is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<u32>,
    /// May have programs of its own choice started.
    #[serde(default)]
    pub commands: bool,
    /// Its sessions work in one of these, or below.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
}

impl Tenant {
    /// The frame that binds a connection: the first on it, said by whoever let the client in.
    pub fn binding(&self) -> Frame {
        let params =
            serde_json::to_string(self).expect("names, numbers and paths of text are JSON");
        Frame::notification(Method::ControlTenant.name(), &params)
    }

    /// The tenant that a binding names; `None` if it is none, or names nobody.
    pub fn of_binding(frame: &Frame) -> Option<Tenant> {
        let tenant: Tenant = serde_json::from_str(frame.params()?).ok()?;
        is_tenant_name(&tenant.name).then_some(tenant)
    }

    /// Whether a directory is, by its name, in one of the roots.
    pub(crate) fn may_work_in(&self, dir: &str) -> bool {
        let dir = Path::new(dir);
        let plain = dir.is_absolute() && dir.components().all(|it| it != Component::ParentDir);
        plain && self.roots.iter().any(|root| dir.starts_with(root))
    }
}

/// What is said to whoever calls one otherwise.
pub const TENANT_NAME_RULE: &str = "a tenant is called by 1 to 32 of `a` to `z`, digits and `-`";

/// Whether a tenant may be called this.
pub fn is_tenant_name(name: &str) -> bool {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(fits)
}
