//! Profiles: what agents may reach, as data. The built-in ones are in `built_in.toml`; users add and
//! override profiles with `[sandbox.NAME]` tables in `policy.toml`.

mod amounts;
mod parse;
mod parse_network;
mod profile_set;

pub use parse::ProfileError;
pub use profile_set::ProfileSet;

use crate::plan::{PathAccess, ResourceLimits};

/// The profiles that always exist.
pub const BUILT_IN_PROFILES: [&str; 3] = ["read-only", "workspace", "open"];

/// What agents with this profile may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxProfile {
    pub name: String,
    /// Of two entries for the same path the later one applies; of two for the same file that with the
    /// longer path.
    pub paths: Vec<ProfilePath>,
    /// Names of the environment variables that the agent gets; `*` matches any text.
    pub env: Vec<String>,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
    /// Keeps files read-only that other programs execute or obey, such as Git hooks.
    pub protect_files: bool,
}

impl SandboxProfile {
    /// Whether the profile limits nothing, so that an agent needs no sandbox.
    pub fn is_unrestricted(&self) -> bool {
        let permits_all = |it: &ProfilePath| it.access == PathAccess::Writable;
        self.paths.iter().any(|it| it.path == "/")
            && self.paths.iter().all(permits_all)
            && self.env.iter().any(|it| it == "*")
            && self.network == NetworkAccess::All
            && self.limits == ResourceLimits::default()
            && !self.protect_files
    }
}

/// One path of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePath {
    /// Absolute, or it begins with `~` (the home directory) or `.` (each directory of the session).
    pub path: String,
    pub access: PathAccess,
}

/// Which hosts an agent may connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkAccess {
    None,
    /// These, those of the agent's model provider, and those that the user permits when asked.
    Hosts(HostLists),
    All,
}

/// What a profile says about hosts, as patterns such as `*.example.com` and `example.com:8080`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLists {
    pub allowed: Vec<String>,
    /// Allowed, and their names may have addresses of this machine or of a private network.
    pub private: Vec<String>,
    /// These win over all others, and the user is not asked about them.
    pub refused: Vec<String>,
    pub headers: Vec<HostHeader>,
}

/// A header that the proxy adds to requests to a host, so that the agent does not have the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostHeader {
    /// A name with an optional port.
    pub host: String,
    /// The name of the header.
    pub name: String,
    /// A file with the value, which begins with `/` or `~/`.
    pub value_file: String,
}

impl HostLists {
    /// Adds the lists of a profile that extends this one.
    fn extend(&mut self, more: HostLists) {
        self.allowed.extend(more.allowed);
        self.private.extend(more.private);
        self.refused.extend(more.refused);
        self.headers.extend(more.headers);
    }

    /// All hosts that need no question.
    pub fn permitted(&self) -> impl Iterator<Item = &String> {
        self.allowed.iter().chain(&self.private)
    }
}

/// Whether a name matches a pattern in which `*` stands for any text.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(tail) = name.strip_prefix(prefix) else { return false };
    (0..=tail.len())
        .filter(|it| tail.is_char_boundary(*it))
        .any(|start| matches_name(rest, &tail[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, name, expected) in [
            ("PATH", "PATH", true),
            ("PATH", "PATHS", false),
            ("LC_*", "LC_ALL", true),
            ("LC_*", "LC_", true),
            ("LC_*", "XLC_A", false),
            ("XDG_*_HOME", "XDG_CONFIG_HOME", true),
            ("XDG_*_HOME", "XDG_RUNTIME_DIR", false),
            ("*", "anything", true),
            ("*é", "éé", true),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn only_open_is_unrestricted() {
        let set = ProfileSet::built_in();
        let unrestricted = |name: &str| set.find(name).unwrap().is_unrestricted();
        assert_eq!(BUILT_IN_PROFILES.map(unrestricted), [false, false, true]);
    }
}
