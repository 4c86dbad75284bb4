//! What a profile promises about an attempt. It is read from the profile, not from a plan: a plan with an error
//! would promise what it does.

use super::{ProbeNeed, ProbeTargets, SandboxProbe};
use crate::plan::{EnforcementLayer, PathAccess};
use crate::profile::{NetworkAccess, ProfilePath, SandboxProfile, matches_name};
use serde::Serialize;
use std::path::Path;

/// What has to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedResult {
    Refused,
    Allowed,
}

/// What a profile promises on a layer; without a layer there is no sandbox. `None` if the attempt cannot be made
/// without leaving the machine.
pub fn expected_result(
    probe: &SandboxProbe,
    profile: &SandboxProfile,
    layer: Option<EnforcementLayer>,
    targets: &ProbeTargets,
) -> Option<ExpectedResult> {
    let Some(layer) = layer else { return Some(ExpectedResult::Allowed) };
    let is_permitted = match probe.need {
        ProbeNeed::Read(path) => is_readable(profile, &targets.resolve(path), targets),
        ProbeNeed::Write(path) => is_writable(profile, &targets.resolve(path), targets),
        ProbeNeed::WriteProtected { file, protected } => {
            is_writable(profile, &targets.resolve(file), targets)
                && (!profile.protect_files || names_writable(profile, protected))
        }
        ProbeNeed::Variable(name) => profile.env.iter().any(|it| matches_name(it, name)),
        ProbeNeed::Network => profile.network == NetworkAccess::All,
        ProbeNeed::Address(address) => match &profile.network {
            NetworkAccess::All => return None,
            NetworkAccess::Hosts(hosts)
                if hosts.allowed.iter().any(|it| it.starts_with(address)) =>
            {
                return None;
            }
            NetworkAccess::Hosts(_) | NetworkAccess::None => false,
        },
        ProbeNeed::ReadOwn(_) | ProbeNeed::NoSandbox => false,
    };
    let is_stopped = probe.refusing_part(layer).is_some();
    let is_refused = !is_permitted && is_stopped;
    Some(if is_refused { ExpectedResult::Refused } else { ExpectedResult::Allowed })
}

fn is_readable(profile: &SandboxProfile, path: &Path, targets: &ProbeTargets) -> bool {
    let access = find_entry(profile, path, targets).map(|it| it.access);
    matches!(access, Some(PathAccess::ReadOnly | PathAccess::Writable))
}

fn is_writable(profile: &SandboxProfile, path: &Path, targets: &ProbeTargets) -> bool {
    find_entry(profile, path, targets).is_some_and(|it| it.access == PathAccess::Writable)
}

/// The entry with the longest path that contains a file; of two with the same path the later one.
fn find_entry<'a>(
    profile: &'a SandboxProfile,
    path: &Path,
    targets: &ProbeTargets,
) -> Option<&'a ProfilePath> {
    let containing = profile.paths.iter().filter(|it| path.starts_with(targets.resolve(&it.path)));
    containing.max_by_key(|it| targets.resolve(&it.path).components().count())
}

/// Whether the profile permits writing to exactly this path, which ends its protection.
fn names_writable(profile: &SandboxProfile, path: &str) -> bool {
    let named = profile.paths.iter().rev().find(|it| it.path.trim_end_matches('/') == path);
    named.is_some_and(|it| it.access == PathAccess::Writable)
}

#[cfg(test)]
mod tests {
    use super::super::{OutsideTargets, PROBES, ProbeGroup};
    use super::*;
    use crate::profile::ProfileSet;
    use std::net::{Ipv4Addr, SocketAddr};

    fn targets() -> ProbeTargets {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        ProbeTargets {
            home: "/check/home".into(),
            project: "/check/project".into(),
            own_folder: "/check/own".into(),
            secret: String::new(),
            outside: OutsideTargets {
                process: 1,
                process_memory: 0,
                shared_memory: 0,
                unix_socket: "/check/own/socket".into(),
                datagram_socket: "/check/own/datagram".into(),
                abstract_socket: String::new(),
                tcp_server: server,
                udp_server: server,
            },
        }
    }

    /// The probes that a profile permits, besides those that the layer does not stop.
    fn permitted(policy: &str, name: &str) -> Vec<&'static str> {
        let set = ProfileSet::parse(policy).unwrap();
        let profile = set.find(name).unwrap();
        let layer = EnforcementLayer::Bubblewrap;
        let is_permitted = |it: &&SandboxProbe| {
            expected_result(it, profile, Some(layer), &targets()) == Some(ExpectedResult::Allowed)
        };
        PROBES.iter().filter(is_permitted).map(|it| it.name).collect()
    }

    #[test]
    fn built_in_profiles_permit_only_the_work_of_the_agent() {
        assert_eq!(permitted("", "read-only"), ["read-project"]);
        assert_eq!(permitted("", "workspace"), ["read-project", "write-project"]);
    }

    #[test]
    fn own_entries_change_what_is_promised() {
        let work = ["read-project", "write-project"];
        for (entry, added) in [
            ("read = [\"~/.aws\"]", &["read-cloud-credentials"][..]),
            ("write = [\"./.vscode\"]", &["write-editor-settings"]),
            ("env = [\"SANDBOX_*\"]", &["read-variable"]),
            ("hide = [\"./src\"]", &[]),
        ] {
            let policy = format!("[sandbox.workspace]\n{entry}\n");
            let found = permitted(&policy, "workspace");
            let expected = if entry.contains("./src") { vec![] } else { work.to_vec() };
            assert_eq!(found, [expected, added.to_vec()].concat(), "{entry}");
        }
        let unprotected = permitted("[sandbox.workspace]\nprotect_files = false\n", "workspace");
        let protected = PROBES.iter().filter(|it| it.group == ProbeGroup::ProtectedFiles);
        assert_eq!(unprotected.len(), 2 + protected.count());
    }

    #[test]
    fn permitted_addresses_are_not_tried() {
        for network in ["\"all\"", "{ hosts = [\"169.254.169.254:80\"] }"] {
            let policy = format!("[sandbox.workspace]\nnetwork = {network}\n");
            let set = ProfileSet::parse(&policy).unwrap();
            let probe = SandboxProbe::find("connect-link-local").unwrap();
            let layer = Some(EnforcementLayer::Landlock);
            let expected =
                expected_result(probe, set.find("workspace").unwrap(), layer, &targets());
            assert_eq!(expected, None, "{network}");
        }
    }
}
