//! Which agents can be started by name, and how. Decided at each start, on the machine as it is
//! then.

mod agent_env;
mod variant_choice;

use crate::{
    agent_files::{AgentFiles, FileVersion},
    config::{AgentSettings, Settings},
    paths::Paths,
};
use agent_env::compose_agent_env;
use jackfield_agents::find::{ChosenVariant, PROGRAM_DIRS, ProgramLocations};
use jackfield_catalog::{AgentSpec, Catalog, EnvRules, LaunchOptions, SandboxNeeds};
use jackfield_events::AgentName;
use jackfield_hub::{AgentPool, Launch, SandboxRequest, VariantChoice};
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The subcommand that makes the program an adapter.
const ADAPT_COMMAND: &str = "adapt";

/// Configured agents, the user's agent files and the built-in agents, in this order.
pub(crate) struct AgentRegistry {
    settings: Settings,
    paths: Paths,
    /// The program of the daemon, which is also the adapter.
    program: PathBuf,
    agent_files: AgentFiles,
    /// The version of `config.toml` that was read last.
    config_version: Option<FileVersion>,
}

/// Whether a process runs in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessLimits {
    None,
    Sandbox,
}

/// A command and its whole environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedLaunch {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The environment was sent by a client as a whole.
    pub(crate) has_client_env: bool,
    /// The program never asks for permission.
    pub(crate) never_asks: bool,
    /// The launch variant, unless it is a command.
    pub(crate) variant: Option<ResolvedVariant>,
}

impl ResolvedLaunch {
    pub(crate) fn set_variables(&mut self, variables: &BTreeMap<String, String>) {
        for (name, value) in variables {
            set_variable(&mut self.env, name, value.clone());
        }
    }

    /// A command that is not described by the catalog.
    fn of_command(
        argv: Vec<String>,
        env: Vec<(String, String)>,
        has_client_env: bool,
    ) -> ResolvedLaunch {
        ResolvedLaunch { argv, env, has_client_env, never_asks: false, variant: None }
    }
}

/// The launch variant of the catalog that is started, and the one to try if it fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedVariant {
    pub(crate) name: Arc<str>,
    pub(crate) next: Option<Arc<str>>,
}

impl AgentRegistry {
    pub(crate) fn new(settings: Settings, paths: Paths, program: PathBuf) -> AgentRegistry {
        let agent_files = AgentFiles::open(&paths.config);
        let config_version = FileVersion::read(&paths.config_file());
        AgentRegistry { settings, paths, program, agent_files, config_version }
    }

    /// Whether `config.toml` has changed since the last call.
    pub(crate) fn has_new_config(&mut self) -> bool {
        let version = FileVersion::read(&self.paths.config_file());
        std::mem::replace(&mut self.config_version, version.clone()) != version
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.paths.config_file()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        self.agent_files.catalog()
    }

    /// What an agent needs inside a sandbox, and its variables; nothing if its file is unknown.
    pub(crate) fn sandbox_needs(&self, agent: &str) -> (SandboxNeeds, EnvRules) {
        let needs = |it: &AgentSpec| (it.sandbox.clone(), it.env.clone());
        self.catalog().get(agent).map(needs).unwrap_or_default()
    }

    /// The agents, if the files have changed. Cheap if they have not.
    pub(crate) fn refresh(&mut self) -> Option<BTreeMap<AgentName, Launch>> {
        if !self.agent_files.refresh() {
            return None;
        }
        for error in self.catalog().errors() {
            tracing::warn!(%error, "invalid agent file");
        }
        Some(self.list_launches())
    }

    /// The agents as the hub needs them: the name, and a command if one is configured. An alias
    /// leads to the launch of its agent.
    pub(crate) fn list_launches(&self) -> BTreeMap<AgentName, Launch> {
        let mut launches = self.list_own_launches();
        for spec in self.catalog().iter() {
            let launch = launches[&*spec.id].clone();
            for alias in &spec.aliases {
                launches.entry(alias.as_str().into()).or_insert_with(|| launch.clone());
            }
        }
        launches
    }

    /// The agents by their own names.
    fn list_own_launches(&self) -> BTreeMap<AgentName, Launch> {
        let specs = self.catalog().iter().map(|it| (it.id.as_str(), Vec::new()));
        let invalid = self.agent_files.invalid_agents().map(|it| (it, Vec::new()));
        let command = |it: &AgentSettings| it.command.clone().unwrap_or_default();
        let configured = self.settings.agents.iter().map(|(name, it)| (name.as_str(), command(it)));
        let all = specs.chain(invalid).chain(configured).map(|(name, argv)| {
            let name = AgentName::from(name);
            let variant = VariantChoice::Any;
            let profile = self.settings.sandbox_of(&name).map(Into::into);
            let sandbox = SandboxRequest { profile, directories: Vec::new() };
            (name.clone(), Launch { name, argv, cwd: PathBuf::new(), env: None, variant, sandbox })
        });
        all.collect()
    }

    /// The agents that could be started now. No process is started to find out.
    pub(crate) fn list_startable(&self, process_env: &[(String, String)]) -> Vec<String> {
        let (launches, limits) = (self.list_own_launches().into_values(), ProcessLimits::None);
        let startable = launches
            .filter(|it| self.resolve_launch(it, limits, process_env.iter().cloned()).is_ok());
        startable.map(|it| it.name.to_string()).collect()
    }

    /// The process pools of agents: from the settings, else from the specs.
    pub(crate) fn pools(&self) -> BTreeMap<AgentName, AgentPool> {
        let pool_of_spec = |it: &AgentSpec| {
            let sessions_per_process = it.sessions_per_process.map_or(1, NonZeroUsize::get);
            let pool = AgentPool { sessions_per_process, ..AgentPool::default() };
            (it.id.as_str().into(), pool)
        };
        let mut pools: BTreeMap<AgentName, AgentPool> =
            self.catalog().iter().map(pool_of_spec).collect();
        for (name, mut pool) in self.settings.pools() {
            let spec_value = pools.get(&name).map(|it| it.sessions_per_process);
            if self.settings.agents[&*name].sessions_per_process.is_none() {
                pool.sessions_per_process = spec_value.unwrap_or(1);
            }
            pools.insert(name, pool);
        }
        pools
    }

    /// How an agent is started now, or why it cannot be. `process_env` is the daemon's environment;
    /// what a client sent takes precedence.
    pub(crate) fn resolve_launch(
        &self,
        launch: &Launch,
        limits: ProcessLimits,
        process_env: impl Iterator<Item = (String, String)>,
    ) -> Result<ResolvedLaunch, String> {
        let settings = self.settings.agents.get(&*launch.name);
        let is_configured = settings.and_then(|it| it.command.as_ref()) == Some(&launch.argv);
        let client_env = launch.env.as_ref().map_or(&[][..], |it| &it.0);
        if !launch.argv.is_empty() && !is_configured && launch.env.is_some() {
            // The command of a client gets the environment of the client.
            let (argv, env) = (launch.argv.clone(), client_env.to_vec());
            return Ok(ResolvedLaunch::of_command(argv, env, true));
        }
        let mut env: BTreeMap<String, String> = process_env.collect();
        env.extend(client_env.iter().cloned());
        if launch.argv.is_empty() {
            return self.resolve_by_name(launch, limits, settings, &env);
        }
        // A configured command gets what its settings grant. Any other command was sent by a client
        // that is not connected now; its environment follows the agent's spec.
        let spec = self.catalog().get(&launch.name).filter(|_| !is_configured);
        let env = compose_agent_env(env.into_iter(), spec.map(|it| &it.env), settings);
        Ok(ResolvedLaunch::of_command(launch.argv.clone(), env, false))
    }

    fn resolve_by_name(
        &self,
        launch: &Launch,
        limits: ProcessLimits,
        settings: Option<&AgentSettings>,
        env: &BTreeMap<String, String>,
    ) -> Result<ResolvedLaunch, String> {
        let name = &*launch.name;
        if let Some(error) = self.agent_files.find_error(name) {
            return Err(format_refusal(&error.to_string(), "correct or remove the file"));
        }
        let Some(spec) = self.catalog().get(name) else {
            // A session can outlive the file of its agent.
            let unknown_agent = format!("the catalog has no agent `{name}`");
            let (what, fix) = match settings {
                None => (unknown_agent, "put its file back into the folder `agents`"),
                Some(_) => (
                    format!("[agents.{name}] in config.toml has no `command`, and {unknown_agent}"),
                    "add a command, or correct the name: `jackfield agents` lists all",
                ),
            };
            return Err(format_refusal(&what, fix));
        };
        // Variables of the settings count for the search, too: one can name the program.
        let settings_env = settings.into_iter().flat_map(|it| it.env.clone());
        let locations = ProgramLocations::new(env.clone().into_iter().chain(settings_env))
            .with_installed(self.paths.installed_agents());
        let of_settings = settings.and_then(|it| it.variant.as_deref());
        let choice = match (&launch.variant, of_settings) {
            (VariantChoice::Any, Some(name)) => VariantChoice::Only(name.into()),
            (choice, _) => choice.clone(),
        };
        let (chosen, next) = variant_choice::choose(spec, &choice, limits, &locations)?;
        let mut composed = compose_agent_env(env.clone().into_iter(), Some(&spec.env), settings);
        for (name, value) in &chosen.variant.ask_env {
            if !composed.iter().any(|(it, _)| it == name) {
                set_variable(&mut composed, name, value.clone());
            }
        }
        if let Some(variable) = spec.env.find_missing(&composed) {
            let what = format!(
                "`{name}` requires the variable `{variable}`, which is set neither in your environment nor in that \
                 of the daemon"
            );
            let fix = format!(
                "export {variable}=…, or set it in `env` under [agents.{name}] in config.toml"
            );
            return Err(format_refusal(&what, &fix));
        }
        if let Some(path) = locations.path_for(&chosen.found) {
            set_variable(&mut composed, "PATH", path);
        }
        let argv = if chosen.variant.is_native_acp() {
            if chosen.found.path == self.program {
                self.set_adapter_env(spec, &locations, &mut composed);
            }
            native_argv(&chosen, &launch.cwd)?
        } else {
            self.set_adapter_env(spec, &locations, &mut composed);
            let variant = format!("--variant={}", chosen.variant.name);
            vec![path_text(&self.program), ADAPT_COMMAND.to_owned(), name.to_owned(), variant]
        };
        let never_asks = !chosen.variant.can_ask();
        let variant = Some(ResolvedVariant { name: chosen.variant.name.as_str().into(), next });
        Ok(ResolvedLaunch { argv, env: composed, has_client_env: false, never_asks, variant })
    }

    /// An adapter reads the same files and finds the same program as the daemon; the chat agent
    /// stores its sessions beside the daemon's.
    fn set_adapter_env(
        &self,
        spec: &AgentSpec,
        locations: &ProgramLocations,
        env: &mut Vec<(String, String)>,
    ) {
        set_variable(env, "JACKFIELD_CONFIG_DIR", path_text(&self.paths.config));
        set_variable(env, "JACKFIELD_STATE_DIR", path_text(&self.paths.state));
        set_variable(env, "JACKFIELD_RUNTIME_DIR", path_text(&self.paths.runtime));
        let variables = [PROGRAM_DIRS].into_iter().chain(spec.bin_env.as_deref());
        for name in variables {
            if let Some(value) = locations.var(name) {
                set_variable(env, name, value.to_owned());
            }
        }
    }
}

/// Separates the problem from its solution in the reason why an agent cannot be started.
pub const FIX_SEPARATOR: &str = "; to fix it: ";

fn format_refusal(what: &str, fix: &str) -> String {
    format!("{what}{FIX_SEPARATOR}{fix}")
}

fn native_argv(chosen: &ChosenVariant<'_>, cwd: &Path) -> Result<Vec<String>, String> {
    let choice = LaunchOptions { cwd: &cwd.to_string_lossy(), ..LaunchOptions::default() };
    let args = chosen.variant.compose_argv(&choice).map_err(|it| it.to_string())?;
    Ok(std::iter::once(path_text(&chosen.found.path)).chain(args).collect())
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn set_variable(env: &mut Vec<(String, String)>, name: &str, value: String) {
    env.retain(|(it, _)| it != name);
    env.push((name.to_owned(), value));
}

#[cfg(test)]
mod tests;
