//! Makes the plan of one launch from a profile and facts.
//!
//! Precedence, from weak to strong, for rules with the same path: the paths of the profile (those of a
//! base first), programs, the agent's own folders, protected files, Jackfield's own folders. Of rules with
//! different paths the longer one applies, except that nothing inside Jackfield's own folders can be
//! permitted by a profile.

mod path_lookup;
mod protected_files;
mod rule_table;
#[cfg(test)]
mod tests;

pub use path_lookup::{DiskLookup, EntryKind, PathLookup};

use crate::plan::{EnforcementLayer, NetworkPlan, PathAccess, SandboxPlan};
use crate::profile::{NetworkAccess, SandboxProfile};
use rule_table::RuleTable;
use std::path::{Path, PathBuf};

/// What a plan needs to know about one launch.
#[derive(Debug, Clone)]
pub struct LaunchFacts {
    pub layer: EnforcementLayer,
    /// Without symbolic links: a directory that an agent has replaced by a link is refused.
    pub session_directories: Vec<PathBuf>,
    pub home: PathBuf,
    /// The directories of `PATH`.
    pub search_path: Vec<PathBuf>,
    pub temporary_directory: PathBuf,
    /// Folders in which the agent keeps its settings and conversations. They are writable.
    pub agent_folders: Vec<PathBuf>,
    /// Folders of the agent's program. They are readable, also inside `own_folders`.
    pub program_folders: Vec<PathBuf>,
    /// Names of the environment variables that the agent needs.
    pub agent_env: Vec<String>,
    /// Hosts that the agent needs, as in `network.hosts` of a profile.
    pub agent_hosts: Vec<String>,
    /// Jackfield's state, runtime and configuration folders. They are hidden.
    pub own_folders: Vec<PathBuf>,
    /// The socket of the network proxy.
    pub proxy_socket: Option<PathBuf>,
}

/// A plan could not be made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("the session's directory `{}` does not exist", path.display())]
    NoDirectory { path: PathBuf },
    #[error(
        "the session's directory `{}` is now a symbolic link to `{}`; start a session in that directory \
         if it is intended",
        path.display(), target.display()
    )]
    Replaced { path: PathBuf, target: PathBuf },
    #[error(
        "the session's directory `{}` contains the home directory, which profile `{profile}` hides; start \
         the session in a project's directory, or use the profile `open`",
        path.display()
    )]
    ContainsHome { path: PathBuf, profile: String },
    #[error("profile `{profile}` limits the network to hosts, and no proxy serves this launch")]
    NoProxy { profile: String },
}

/// The variable by which Jackfield recognizes the processes of an agent.
const MARK_VARIABLE: &str = "JACKFIELD_AGENT_MARK";
/// The user's own proxy. A process without direct connections gets other values.
const PROXY_VARIABLES: [&str; 2] = ["*_PROXY", "*_proxy"];
/// Names the servers of the resolver. On many systems it is a link to `/run`.
const RESOLVER_FILE: &str = "/etc/resolv.conf";
/// Top folders of a home directory that contain more than one toolchain.
const SHARED_FOLDERS: &[&str] = &[".local", ".config", ".cache", ".ssh", ".gnupg", ".mozilla"];

/// Makes the plan. All knowledge about the disk comes from `lookup`.
pub fn make_plan(
    profile: &SandboxProfile,
    facts: &LaunchFacts,
    lookup: &dyn PathLookup,
) -> Result<SandboxPlan, PlanError> {
    check_directories(profile, facts, lookup)?;
    let mut table = RuleTable::new(lookup, writable_areas(profile, facts, lookup));
    for entry in &profile.paths {
        for path in expand_path(&entry.path, facts) {
            table.add(&path, entry.access);
        }
    }
    add_programs(&mut table, facts, lookup);
    let roots = table.writable_paths();
    for folder in &facts.agent_folders {
        table.add_folder(folder);
    }
    table.add_temporary(&facts.temporary_directory);
    let mut unprotected = Vec::new();
    if profile.protect_files {
        for root in &roots {
            unprotected.extend(protected_files::protect(root, &mut table, lookup));
        }
    }
    let exceptions = [facts.session_directories.as_slice(), &facts.agent_folders].concat();
    table.hide_folders(&facts.own_folders, &exceptions);
    for folder in &facts.program_folders {
        table.reveal(folder);
    }
    let network = plan_network(profile, facts)?;
    if network == NetworkPlan::All {
        table.reveal(Path::new(RESOLVER_FILE));
    }
    let (paths, links) = table.into_rules();
    let mut env: Vec<String> = profile.env.iter().chain(&facts.agent_env).cloned().collect();
    env.push(MARK_VARIABLE.to_owned());
    if network == NetworkPlan::All {
        env.extend(PROXY_VARIABLES.map(str::to_owned));
    }
    Ok(SandboxPlan {
        profile: profile.name.clone(),
        layer: facts.layer,
        paths,
        links,
        env,
        network,
        proxies_loopback: proxies_loopback(profile, facts),
        limits: profile.limits,
        unprotected,
    })
}

fn check_directories(
    profile: &SandboxProfile,
    facts: &LaunchFacts,
    lookup: &dyn PathLookup,
) -> Result<(), PlanError> {
    let home = lookup.resolve(&facts.home).unwrap_or_else(|| facts.home.clone());
    let hides_home = profile.paths.iter().rev().find(|it| it.path == "~");
    let hides_home = hides_home.is_some_and(|it| it.access == PathAccess::Hidden);
    for path in &facts.session_directories {
        let path = path.clone();
        match lookup.resolve(&path) {
            None => return Err(PlanError::NoDirectory { path }),
            Some(target) if target != path => return Err(PlanError::Replaced { path, target }),
            Some(_) if hides_home && home.starts_with(&path) => {
                return Err(PlanError::ContainsHome { path, profile: profile.name.clone() });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The directories in which an agent can create symbolic links.
fn writable_areas(
    profile: &SandboxProfile,
    facts: &LaunchFacts,
    lookup: &dyn PathLookup,
) -> Vec<PathBuf> {
    let of_profile = profile.paths.iter().filter(|it| it.access == PathAccess::Writable);
    let of_profile = of_profile.flat_map(|it| expand_path(&it.path, facts));
    let all = of_profile.chain(facts.agent_folders.iter().cloned());
    let mut areas: Vec<PathBuf> = all.filter_map(|it| lookup.resolve(&it)).collect();
    areas.extend(facts.session_directories.iter().cloned());
    areas
}

/// The absolute paths of an entry of a profile.
fn expand_path(path: &str, facts: &LaunchFacts) -> Vec<PathBuf> {
    if let Some(rest) = path.strip_prefix('~') {
        return vec![join(&facts.home, rest)];
    }
    match path.strip_prefix('.') {
        Some(rest) => facts.session_directories.iter().map(|it| join(it, rest)).collect(),
        None => vec![PathBuf::from(path)],
    }
}

fn join(base: &Path, rest: &str) -> PathBuf {
    let rest = rest.trim_matches('/');
    if rest.is_empty() { base.to_owned() } else { base.join(rest) }
}

/// Makes the directories of `PATH` readable. A toolchain has its libraries beside its programs, so of a
/// hidden folder such as `~/.nvm` everything is readable.
fn add_programs(table: &mut RuleTable<'_>, facts: &LaunchFacts, lookup: &dyn PathLookup) {
    let home = lookup.resolve(&facts.home).unwrap_or_else(|| facts.home.clone());
    for folder in &facts.search_path {
        let top = folder.strip_prefix(&home).ok().and_then(|it| it.components().next());
        let top = top.and_then(|it| it.as_os_str().to_str());
        let is_toolchain = |it: &&str| it.starts_with('.') && !SHARED_FOLDERS.contains(it);
        match top.filter(is_toolchain) {
            Some(top) => table.reveal(&home.join(top)),
            None => table.reveal(folder),
        }
    }
}

fn plan_network(profile: &SandboxProfile, facts: &LaunchFacts) -> Result<NetworkPlan, PlanError> {
    match (&profile.network, &facts.proxy_socket) {
        (NetworkAccess::None, _) => Ok(NetworkPlan::None),
        (NetworkAccess::All, _) => Ok(NetworkPlan::All),
        (NetworkAccess::Hosts(_), Some(socket)) => {
            Ok(NetworkPlan::Proxy { socket: socket.clone() })
        }
        (NetworkAccess::Hosts(_), None) => {
            Err(PlanError::NoProxy { profile: profile.name.clone() })
        }
    }
}

fn proxies_loopback(profile: &SandboxProfile, facts: &LaunchFacts) -> bool {
    let NetworkAccess::Hosts(hosts) = &profile.network else { return false };
    let is_loopback = |host: &String| {
        let name = host.split_once(':').map_or(host.as_str(), |(name, _)| name);
        name == "localhost" || name.starts_with("127.") || host.starts_with("[::1]")
    };
    hosts.permitted().chain(&facts.agent_hosts).any(is_loopback)
}
