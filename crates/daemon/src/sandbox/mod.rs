//! Agents in a sandbox: which profile applies, the plan of one start, and the network proxy of the process.
//!
//! The crate `sandbox` makes plans and enforces them, the crate `network-proxy` decides about hosts. This module
//! knows the folders of this daemon and what the agent needs.

mod agent_links;
mod host_answers;
mod host_asks;
mod launch_needs;
mod profile_check;
mod proxy_thread;

pub use host_answers::{HostAnswers, StoredHostAnswer};
pub(crate) use host_asks::{AskingSession, HostAsks};
pub(crate) use launch_needs::LaunchNeeds;
pub use profile_check::{
    CheckScope, CheckedLayer, LayerState, ProfileCheck, ProfileCheckError, check_profile,
};
pub(crate) use proxy_thread::ProxyMessage;

use crate::{agent_files::FileVersion, paths::Paths};
use agent_links::WritableDirectories;
use jackfield_events::{RawJson, SandboxApplied};
use jackfield_hub::{AgentId, SandboxRequest};
use jackfield_network_proxy::{CredentialInjection, ProxyConfig, system_tls_config};
use jackfield_private_files as private_files;
use jackfield_sandbox::{
    os::{LayerSupport, choose_layer, delete_left_directories, layer_support},
    plan::{EnforcementLayer, NetworkPlan, PathAccess, SandboxPlan},
    planning::{DiskLookup, LaunchFacts, make_plan},
    profile::{HostLists, NetworkAccess, ProfileSet, SandboxProfile},
    subcommand::run_args,
};
use proxy_thread::ProxyThread;
use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::mpsc::Sender;

/// The profile of agents for which none is configured.
const DEFAULT_PROFILE: &str = "open";

/// The sandboxes of all agents of this daemon.
pub(crate) struct AgentSandboxes {
    paths: Paths,
    /// The program of the daemon, which also carries out plans.
    program: PathBuf,
    profiles: ProfileSet,
    /// The version of `policy.toml` that the profiles were read from.
    policy_version: Option<FileVersion>,
    proxies: ProxyThread,
}

/// The sandbox of one agent. Its terminals run in sandboxes with the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentSandbox {
    pub(crate) profile: Arc<str>,
    plan: SandboxPlan,
    /// The hosts that need no question.
    hosts: Vec<String>,
    program: String,
}

impl AgentSandbox {
    /// The command that runs `argv` in the sandbox.
    pub(crate) fn wrap_command(&self, argv: Vec<String>) -> Vec<String> {
        let program = std::iter::once(self.program.clone());
        program.chain(run_args(&self.plan)).chain(argv).collect()
    }

    pub(crate) fn plan(&self) -> &SandboxPlan {
        &self.plan
    }

    /// The description of the sandbox in the logs of the agent's sessions.
    pub(crate) fn to_event(&self) -> SandboxApplied {
        let plan = serde_json::to_string(&self.plan).expect("a plan is JSON");
        let (profile, hosts) = (self.profile.clone(), self.hosts.clone());
        SandboxApplied { profile, hosts, plan: RawJson::trusted(plan) }
    }
}

impl AgentSandboxes {
    /// Questions about hosts and refused connections are sent to `messages`.
    pub(crate) fn new(
        paths: Paths,
        program: PathBuf,
        messages: Sender<(AgentId, ProxyMessage)>,
    ) -> AgentSandboxes {
        remove_old_sockets(&paths);
        for folder in temporary_folders() {
            delete_left_directories(&folder);
        }
        let (profiles, proxies) = (ProfileSet::built_in(), ProxyThread::new(messages));
        let mut sandboxes =
            AgentSandboxes { paths, program, profiles, policy_version: None, proxies };
        if let Err(why) = sandboxes.refresh_profiles() {
            tracing::error!(why, "invalid sandbox profiles; using the built-in ones");
        }
        sandboxes
    }

    /// The profile of an agent, by the current `policy.toml`; `None` if it limits nothing.
    pub(crate) fn find_profile(
        &mut self,
        request: &SandboxRequest,
    ) -> Result<Option<SandboxProfile>, String> {
        let name = request.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
        if let Err(why) = self.refresh_profiles()
            && (name != DEFAULT_PROFILE || self.may_limit_default())
        {
            return Err(why);
        }
        let profile = self.profiles.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.profiles.names().collect();
            format!("there is no sandbox profile `{name}`; there are {}", names.join(", "))
        })?;
        Ok((!profile.is_unrestricted()).then(|| profile.clone()))
    }

    /// The sandbox that an agent is started in. `directories` are those of its session, besides the working directory.
    pub(crate) fn prepare(
        &mut self,
        agent: AgentId,
        profile: SandboxProfile,
        directories: &[PathBuf],
        needs: &LaunchNeeds<'_>,
    ) -> Result<AgentSandbox, String> {
        let layer = find_layer(needs.layer)?;
        let agent_folders = needs.agent_folders(&self.paths);
        create_folders(&agent_folders)?;
        let socket = self.proxy_socket(agent);
        let writable = WritableDirectories::new(self.paths.writable_directories());
        let facts = LaunchFacts {
            layer,
            session_directories: needs.resolve_directories(directories, &writable)?,
            home: needs.home(),
            search_path: needs.search_path(),
            temporary_directory: needs.temporary_directory(),
            agent_folders,
            program_folders: needs.program_folders(&self.paths, &self.program),
            agent_env: needs.env_names(),
            agent_hosts: needs.hosts(),
            own_folders: self.own_folders(),
            proxy_socket: Some(socket.clone()),
        };
        let plan = make_plan(&profile, &facts, &DiskLookup).map_err(|it| it.to_string())?;
        remember_writable(&writable, &plan)?;
        let mut hosts = Vec::new();
        if let (NetworkPlan::Proxy { .. }, NetworkAccess::Hosts(lists)) =
            (&plan.network, &profile.network)
        {
            let config = proxy_config(lists, needs)?;
            hosts.extend(config.rules.allowed.iter().map(|it| it.pattern.to_string()));
            self.start_proxy(agent, &socket, config)?;
        }
        let program = self.program.to_string_lossy().into_owned();
        Ok(AgentSandbox { profile: profile.name.into(), plan, hosts, program })
    }

    /// An agent has ended.
    pub(crate) fn on_gone(&mut self, agent: AgentId) {
        let socket = self.proxy_socket(agent);
        self.proxies.stop(agent, &socket);
    }

    /// The answers of the user that apply to all processes of a profile.
    pub(crate) fn host_answers(&self) -> HostAnswers {
        HostAnswers::new(self.paths.host_answers())
    }

    fn start_proxy(
        &mut self,
        agent: AgentId,
        socket: &Path,
        config: ProxyConfig,
    ) -> Result<(), String> {
        let failed = |it: std::io::Error| {
            format!(
                "the network proxy of the sandbox cannot be served on `{}`: {it}",
                socket.display()
            )
        };
        private_files::create_dir(&self.paths.runtime).map_err(failed)?;
        self.proxies.start(agent, socket, config).map_err(failed)
    }

    /// A command without the daemon has agents with the same numbers, and the same folder.
    fn proxy_socket(&self, agent: AgentId) -> PathBuf {
        let name = format!("{SOCKET_PREFIX}{}-{}.sock", std::process::id(), agent.0);
        self.paths.runtime.join(name)
    }

    fn own_folders(&self) -> Vec<PathBuf> {
        [&self.paths.config, &self.paths.state, &self.paths.runtime].map(Clone::clone).to_vec()
    }

    /// Whether the default profile has limits, or may have them in a file that cannot be read as a whole: only a file
    /// with its name changes it.
    fn may_limit_default(&self) -> bool {
        let text = fs::read_to_string(self.paths.policy_file());
        let is_named = text.map_or(true, |it| it.contains(DEFAULT_PROFILE));
        is_named || self.profiles.find(DEFAULT_PROFILE).is_none_or(|it| !it.is_unrestricted())
    }

    /// Reads the profiles again if `policy.toml` has changed. With an invalid file no sandbox is made: it would not be
    /// the one that the user described.
    fn refresh_profiles(&mut self) -> Result<(), String> {
        let path = self.paths.policy_file();
        let version = FileVersion::read(&path);
        if version == self.policy_version {
            return Ok(());
        }
        self.profiles = read_profiles(&self.paths)?;
        self.policy_version = version;
        Ok(())
    }
}

fn proxy_config(lists: &HostLists, needs: &LaunchNeeds<'_>) -> Result<ProxyConfig, String> {
    let mut config = ProxyConfig::new(needs.host_rules(lists)?);
    let headers = needs.injected_headers(lists)?;
    if !headers.is_empty() {
        let tls = system_tls_config().map_err(|it| {
            format!("the certificates of this machine cannot be used for injected headers: {it}")
        })?;
        config.injection = Some(CredentialInjection { headers, tls });
    }
    Ok(config)
}

/// The profiles of `policy.toml`, or the built-in ones without such a file.
fn read_profiles(paths: &Paths) -> Result<ProfileSet, String> {
    let path = paths.policy_file();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
    };
    ProfileSet::parse(&text).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("`{}` has invalid sandbox profiles: {}", path.display(), errors.join("; "))
    })
}

/// The configured layer if it works, else the best one. Each layer that does not work is explained.
fn find_layer(configured: Option<EnforcementLayer>) -> Result<EnforcementLayer, String> {
    let is_wanted = |it: &&LayerSupport| configured.is_none_or(|layer| layer == it.layer);
    let support: Vec<LayerSupport> = layer_support().iter().filter(is_wanted).cloned().collect();
    choose_layer(&support).ok_or_else(|| {
        let describe = |it: &LayerSupport| {
            let problem = it.state.as_ref().err()?;
            Some(format!("{} does not work here: {}; {}", it.layer, problem.reason, problem.hint))
        };
        let problems: Vec<String> = support.iter().filter_map(describe).collect();
        format!(
            "the sandbox cannot be enforced on this machine. {}. The profile `open` starts agents without a sandbox",
            problems.join(". ")
        )
    })
}

/// Creates missing folders of an agent: in the hidden home directory it could only create temporary ones. A name with an
/// ending is a file, which the agent has to create outside.
fn create_folders(folders: &[PathBuf]) -> Result<(), String> {
    for folder in folders.iter().filter(|it| it.extension().is_none() && !it.exists()) {
        private_files::create_dir(folder).map_err(|it| {
            format!("cannot create the agent's folder `{}`: {it}", folder.display())
        })?;
    }
    Ok(())
}

/// Later sessions do not follow links in these directories.
fn remember_writable(directories: &WritableDirectories, plan: &SandboxPlan) -> Result<(), String> {
    let writable = plan.paths.iter().filter(|it| it.access == PathAccess::Writable);
    directories.add(writable.map(|it| it.path.as_path())).map_err(|it| {
        format!("the directories that the agent can write to cannot be remembered: {it}")
    })
}

const SOCKET_PREFIX: &str = "proxy-";

/// The folders that the built-in profiles replace by temporary ones. With Landlock, a sandbox that was killed leaves a
/// directory in them.
fn temporary_folders() -> Vec<PathBuf> {
    let caches = std::env::home_dir().map(|it| it.join(".cache"));
    let system = ["/tmp", "/var/tmp"].map(PathBuf::from);
    [std::env::temp_dir()].into_iter().chain(system).chain(caches).collect()
}

/// Removes the sockets of processes that were killed: no process listens on them.
fn remove_old_sockets(paths: &Paths) {
    let entries = fs::read_dir(&paths.runtime).into_iter().flatten().flatten();
    for entry in entries {
        let is_proxy = entry.file_name().as_encoded_bytes().starts_with(SOCKET_PREFIX.as_bytes());
        if is_proxy && UnixStream::connect(entry.path()).is_err() {
            let _gone = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandboxes(folder: &Path, policy: &str) -> AgentSandboxes {
        let paths = Paths::below(folder);
        fs::create_dir_all(&paths.config).unwrap();
        fs::write(paths.policy_file(), policy).unwrap();
        let (questions, _asked) = tokio::sync::mpsc::channel(1);
        AgentSandboxes::new(paths, "/jackfield".into(), questions)
    }

    fn request(profile: Option<&str>) -> SandboxRequest {
        SandboxRequest { profile: profile.map(Into::into), ..SandboxRequest::default() }
    }

    /// Whether an agent with this profile starts without a sandbox, or why it does not start, with this `policy.toml`.
    fn is_unrestricted(policy: &str, profile: Option<&str>) -> Result<bool, String> {
        let folder = tempfile::tempdir().unwrap();
        let found = sandboxes(folder.path(), policy).find_profile(&request(profile));
        found.map(|it| it.is_none())
    }

    #[test]
    fn invalid_profiles_refuse_only_agents_with_limits() {
        let invalid = "[sandbox.workspace]\ncolor = 1\n";
        assert_eq!(is_unrestricted(invalid, None), Ok(true));
        assert_eq!(is_unrestricted(invalid, Some("open")), Ok(true));
        let refused = is_unrestricted(invalid, Some("workspace")).unwrap_err();
        assert!(refused.contains("invalid sandbox profiles"), "{refused}");
        // The file may limit the profile.
        let refused = is_unrestricted("[sandbox.open]\nhide = [1]\n", None).unwrap_err();
        assert!(refused.contains("invalid sandbox profiles"), "{refused}");
    }

    /// What is decided about one start uses one version of the file.
    #[test]
    fn profile_is_that_of_the_current_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut sandboxes = sandboxes(folder.path(), "");
        let workspace = request(Some("workspace"));
        assert!(sandboxes.find_profile(&workspace).unwrap().is_some());
        let open = "[sandbox.mine]\nextends = \"open\"\n";
        fs::write(sandboxes.paths.policy_file(), open).unwrap();
        assert!(sandboxes.find_profile(&request(Some("mine"))).unwrap().is_none());
    }
}
