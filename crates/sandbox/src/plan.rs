//! What one sandboxed process may do: the result of a profile and the facts of one launch.
//!
//! A plan contains no secret and nothing that is decided later, so it can be passed as JSON on a command
//! line, stored in a log and compared.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Everything that the enforcement of one launch needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// The name of the profile, for messages.
    pub profile: String,
    pub layer: EnforcementLayer,
    /// Rules for paths; of two rules for the same file the one with the longer path applies. The first
    /// rule is for `/`. Paths are absolute and have no symbolic links, `.` or `..`.
    pub paths: Vec<PathRule>,
    /// Symbolic links in hidden directories that lead to a path with a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<PathLink>,
    /// Names of the environment variables that the process keeps; `*` matches any text.
    #[serde(default)]
    pub env: Vec<String>,
    pub network: NetworkPlan,
    /// Whether connections to `localhost` also go through the proxy, because a host that the process needs
    /// is on this machine. Otherwise they stay inside the sandbox, where programs test their servers.
    #[serde(default)]
    pub proxies_loopback: bool,
    pub limits: ResourceLimits,
    /// Files that the profile protects, but that cannot be made read-only: they do not exist yet, or they
    /// are symbolic links. The process can create or replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprotected: Vec<PathBuf>,
}

impl SandboxPlan {
    /// The rule that applies to a path: the one with the longest path that contains it.
    pub fn find_rule(&self, path: &Path) -> Option<&PathRule> {
        let containing = self.paths.iter().filter(|it| path.starts_with(&it.path));
        containing.max_by_key(|it| it.path.components().count())
    }
}

/// What enforces a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnforcementLayer {
    /// Linux namespaces made by `bwrap`, and a system call filter.
    Bubblewrap,
    /// Landlock, and a system call filter whose supervisor makes the connections.
    Landlock,
    /// `sandbox-exec` of macOS.
    Seatbelt,
}

impl fmt::Display for EnforcementLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EnforcementLayer::Bubblewrap => "bubblewrap",
            EnforcementLayer::Landlock => "Landlock",
            EnforcementLayer::Seatbelt => "Seatbelt",
        })
    }
}

/// The access to a path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    pub path: PathBuf,
    pub access: PathAccess,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathLink {
    pub path: PathBuf,
    /// Without symbolic links.
    pub target: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathAccess {
    /// Does not exist, or is empty, for the process.
    Hidden,
    ReadOnly,
    Writable,
    /// An empty writable directory that ends with the process.
    Temporary,
}

/// The network of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPlan {
    /// No connection at all.
    None,
    /// Only connections to the proxy that is served on this Unix socket. The process reaches it as an
    /// HTTP proxy on a port of the loopback interface.
    Proxy { socket: PathBuf },
    /// The network of the machine.
    All,
}

/// Limits of the process tree where a control group is delegated, otherwise of each process; `None` is
/// unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub processes: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
}
