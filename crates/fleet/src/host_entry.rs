//! The entry of a host in the list of hosts.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// Identifies one start of a host: a host that was restarted has the same name and a new
/// incarnation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostInstance {
    pub name: Arc<str>,
    pub incarnation: Arc<str>,
}

impl HostInstance {
    /// Parses the owner of a log, `NAME/INCARNATION`.
    pub fn parse(owner: &str) -> Option<HostInstance> {
        let (name, incarnation) = owner.split_once('/')?;
        Some(HostInstance { name: name.into(), incarnation: incarnation.into() })
    }
}

impl fmt::Display for HostInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.incarnation)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    pub host: HostInstance,
    pub version: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The directories that it shares with all hosts that list the same path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<PathBuf>,
    /// The names of the agents that it can start.
    pub agents: Vec<String>,
    /// The number of processes that it may still start; `None` if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u32>,
    /// The number of sessions that it owns.
    pub sessions: u32,
    /// The number of running agents.
    pub live: u32,
    /// The usage of each tenant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenants: BTreeMap<Arc<str>, TenantUsage>,
    /// The host accepts no new sessions.
    #[serde(default)]
    pub draining: bool,
    /// The host has ended regularly. This is its last entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// The usage of a tenant on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantUsage {
    /// The number of active sessions.
    pub sessions: usize,
    /// The number of running agents.
    pub agents: usize,
}
