//! What a host says of itself.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

/// The name of a host, and of one start of it: a host that was started again is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostName {
    pub name: Arc<str>,
    pub incarnation: Arc<str>,
}

impl HostName {
    /// As the owner of a log is called.
    pub fn parse(owner: &str) -> Option<HostName> {
        let (name, incarnation) = owner.split_once('/')?;
        Some(HostName { name: name.into(), incarnation: incarnation.into() })
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.incarnation)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub host: HostName,
    pub version: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Directories that it shares with all who say the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<PathBuf>,
    /// The agents it knows by name.
    pub agents: Vec<String>,
    /// Processes that it may still start; without a number there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u32>,
    /// Sessions that it owns, and agents that run.
    pub sessions: u32,
    pub live: u32,
    /// What each tenant has there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenants: BTreeMap<Arc<str>, Share>,
    /// It takes nothing new.
    #[serde(default)]
    pub draining: bool,
    /// It has ended on purpose: this is its last word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// What a tenant has on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Sessions that are awake.
    pub sessions: usize,
    /// Agents that are alive.
    pub agents: usize,
}
