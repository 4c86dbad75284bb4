//! Who can be started by name, and how: decided when it is needed, on the machine as it is then.

use crate::{
    config::{AgentSettings, Settings},
    environment,
    paths::Paths,
};
use jackfield_agents::{
    find::{ChosenVariant, PROGRAM_DIRS, ProgramLocations, ProgramOrigin, choose_variant},
    probe::describe_missing,
};
use jackfield_catalog::{AgentSpec, Catalog, LaunchOptions};
use jackfield_events::AgentName;
use jackfield_hub::{AgentPool, Launch};
use std::{
    collections::BTreeMap,
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::LazyLock,
    thread,
    time::SystemTime,
};

/// Beside `config.toml`.
pub(crate) const FOLDER: &str = "agents";
/// What makes the program an adapter.
const ADAPT: &str = "adapt";
/// A longer file is no spec.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Read once, and only if somebody asks.
static BUILTIN: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

/// Reads the built-in agents beside whatever else a start has to do.
pub(crate) fn warm_up() {
    // Should there be no thread to be had, they are read when they are needed.
    let _reading = thread::Builder::new().name("roster".into()).spawn(|| LazyLock::force(&BUILTIN));
}

/// Configured agents, the user's files and the built-in ones, in this order.
pub(crate) struct Roster {
    settings: Settings,
    paths: Paths,
    /// Our own program, which is the adapter too.
    program: PathBuf,
    catalogue: Catalog,
    seen: Vec<Seen>,
}

/// What tells a changed file from the one that was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    path: PathBuf,
    modified: Option<SystemTime>,
    bytes: u64,
}

/// A command and its whole environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The program is known never to ask before it acts.
    pub(crate) never_asks: bool,
}

/// All agents known here: ours, and the user's files on top.
pub fn catalogue(paths: &Paths) -> Catalog {
    let seen = look(&paths.config.join(FOLDER));
    read(&seen)
}

/// Whether a file of this folder or of ours is about this agent.
pub(crate) fn knows(folder: &Path, name: &str) -> bool {
    let catalogue = read(&look(folder));
    catalogue.get(name).is_some() || flaw(&catalogue, name).is_some()
}

impl Roster {
    pub(crate) fn new(settings: Settings, paths: Paths, program: PathBuf) -> Roster {
        let seen = look(&paths.config.join(FOLDER));
        let catalogue = read(&seen);
        Roster { settings, paths, program, catalogue, seen }
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

    pub(crate) fn catalogue(&self) -> &Catalog {
        &self.catalogue
    }

    /// Who there is, if that has changed: cheap when nothing has.
    pub(crate) fn refresh(&mut self) -> Option<BTreeMap<AgentName, Launch>> {
        let seen = look(&self.paths.config.join(FOLDER));
        if seen == self.seen {
            return None;
        }
        self.catalogue = read(&seen);
        self.seen = seen;
        for flaw in self.catalogue.errors() {
            tracing::warn!(%flaw, "a file is no agent");
        }
        Some(self.launches())
    }

    /// What the hub knows of them: the name, and a command if one is configured.
    pub(crate) fn launches(&self) -> BTreeMap<AgentName, Launch> {
        let specs = self.catalogue.iter().map(|it| (it.id.as_str(), Vec::new()));
        let flawed = self.catalogue.errors().iter().filter_map(|it| stem(&it.file));
        let flawed = flawed.map(|it| (it, Vec::new()));
        let command = |it: &AgentSettings| it.command.clone().unwrap_or_default();
        let configured = self.settings.agents.iter().map(|(name, it)| (name.as_str(), command(it)));
        let all = specs.chain(flawed).chain(configured).map(|(name, argv)| {
            let name = AgentName::from(name);
            (name.clone(), Launch { name, argv, cwd: PathBuf::new(), env: None })
        });
        all.collect()
    }

    /// Those that could be started now. Nothing is started to know it.
    pub(crate) fn startable(&self, ours: &[(String, String)]) -> Vec<String> {
        let launches = self.launches().into_values();
        let can = launches.filter(|it| self.start(it, ours.iter().cloned()).is_ok());
        can.map(|it| it.name.to_string()).collect()
    }

    /// How their processes are kept: as the settings say, else as their specs do.
    pub(crate) fn pools(&self) -> BTreeMap<AgentName, AgentPool> {
        let of_spec = |it: &AgentSpec| {
            let sessions_per_process = it.sessions_per_process.map_or(1, NonZeroUsize::get);
            let pool = AgentPool { sessions_per_process, ..AgentPool::default() };
            (it.id.as_str().into(), pool)
        };
        let mut pools: BTreeMap<AgentName, AgentPool> =
            self.catalogue.iter().map(of_spec).collect();
        for (name, mut pool) in self.settings.pools() {
            let known = pools.get(&name).map(|it| it.sessions_per_process);
            if self.settings.agents[&*name].sessions_per_process.is_none() {
                pool.sessions_per_process = known.unwrap_or(1);
            }
            pools.insert(name, pool);
        }
        pools
    }

    /// How an agent is started now, or why it cannot be. `ours` is the daemon's environment; what a
    /// client sent comes before it.
    pub(crate) fn start(
        &self,
        launch: &Launch,
        ours: impl Iterator<Item = (String, String)>,
    ) -> Result<Start, String> {
        let settings = self.settings.agents.get(&*launch.name);
        let configured = settings.and_then(|it| it.command.as_ref()) == Some(&launch.argv);
        let theirs = launch.env.as_ref().map_or(&[][..], |it| &it.0);
        if !launch.argv.is_empty() && !configured && launch.env.is_some() {
            // The command of a client sees what the client would show it.
            let (argv, env) = (launch.argv.clone(), theirs.to_vec());
            return Ok(Start { argv, env, never_asks: false });
        }
        let mut seen: BTreeMap<String, String> = ours.collect();
        seen.extend(theirs.iter().cloned());
        if launch.argv.is_empty() {
            return self.by_name(launch, settings, &seen);
        }
        // A configured command sees what its settings grant. Any other was once given by a client
        // that is not here now: then the agent's spec says what is meant for it.
        let spec = self.catalogue.get(&launch.name).filter(|_| !configured);
        let env = environment::for_agent(seen.into_iter(), spec.map(|it| &it.env), settings);
        Ok(Start { argv: launch.argv.clone(), env, never_asks: false })
    }

    fn by_name(
        &self,
        launch: &Launch,
        settings: Option<&AgentSettings>,
        env: &BTreeMap<String, String>,
    ) -> Result<Start, String> {
        let name = &*launch.name;
        if let Some(flaw) = flaw(&self.catalogue, name) {
            return Err(refusal(&flaw.to_string(), "correct or remove the file"));
        }
        let Some(spec) = self.catalogue.get(name) else {
            // A session can outlive the file that its agent came from.
            let known = format!("the catalogue has no agent `{name}`");
            let (what, fix) = match settings {
                None => (known, "put its file back into the folder `agents`"),
                Some(_) => (
                    format!("[agents.{name}] in config.toml has no `command`, and {known}"),
                    "add a command, or correct the name: `jackfield agents` lists all",
                ),
            };
            return Err(refusal(&what, fix));
        };
        // What the settings set counts for the search too: a variable can name the program.
        let set = settings.into_iter().flat_map(|it| it.env.clone());
        let places = ProgramLocations::new(env.clone().into_iter().chain(set));
        let chosen = choose_variant(spec, &places).map_err(|missing| {
            let told = describe_missing(spec, &missing);
            refusal(&told.message, &told.fix)
        })?;
        let mut composed =
            environment::for_agent(env.clone().into_iter(), Some(&spec.env), settings);
        for (name, value) in &chosen.variant.ask_env {
            if !composed.iter().any(|(it, _)| it == name) {
                set_variable(&mut composed, name, value.clone());
            }
        }
        if chosen.found.origin != ProgramOrigin::Path {
            set_variable(&mut composed, "PATH", places.extended_path());
        }
        let argv = if chosen.variant.is_native_acp() {
            if chosen.found.path == self.program {
                self.lead(spec, &places, &mut composed);
            }
            native(&chosen, &launch.cwd)?
        } else {
            self.lead(spec, &places, &mut composed);
            vec![shown(&self.program), ADAPT.to_owned(), name.to_owned()]
        };
        Ok(Start { argv, env: composed, never_asks: !chosen.variant.can_ask() })
    }

    /// An adapter reads the same files and finds the same program as we did; our own agent keeps its
    /// sessions where we keep ours.
    fn lead(&self, spec: &AgentSpec, places: &ProgramLocations, env: &mut Vec<(String, String)>) {
        set_variable(env, "JACKFIELD_CONFIG_DIR", shown(&self.paths.config));
        set_variable(env, "JACKFIELD_STATE_DIR", shown(&self.paths.state));
        set_variable(env, "JACKFIELD_RUNTIME_DIR", shown(&self.paths.runtime));
        let variables = [PROGRAM_DIRS].into_iter().chain(spec.bin_env.as_deref());
        for name in variables {
            if let Some(value) = places.var(name) {
                set_variable(env, name, value.to_owned());
            }
        }
    }
}

/// What is wrong and the way out, in the one sentence that an error has room for.
fn refusal(what: &str, fix: &str) -> String {
    format!("{what}; to fix it: {fix}")
}

fn native(chosen: &ChosenVariant<'_>, cwd: &Path) -> Result<Vec<String>, String> {
    let choice = LaunchOptions { cwd: &cwd.to_string_lossy(), ..LaunchOptions::default() };
    let args = chosen.variant.compose_argv(&choice).map_err(|it| it.to_string())?;
    Ok(std::iter::once(shown(&chosen.found.path)).chain(args).collect())
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn set_variable(env: &mut Vec<(String, String)>, name: &str, value: String) {
    env.retain(|(it, _)| it != name);
    env.push((name.to_owned(), value));
}

/// The files of a folder that could be agents.
fn look(folder: &Path) -> Vec<Seen> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files =
        entries.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "toml"));
    let mut seen: Vec<Seen> = files
        .filter_map(|path| {
            let meta = fs::metadata(&path).ok()?;
            Some(Seen { modified: meta.modified().ok(), bytes: meta.len(), path })
        })
        .collect();
    seen.sort();
    seen
}

fn read(seen: &[Seen]) -> Catalog {
    let mut catalogue = BUILTIN.clone();
    for Seen { path, bytes, .. } in seen {
        let text = if *bytes <= FILE_BYTES_MAX { fs::read(path).ok() } else { None };
        // What cannot be read is reported like what cannot be understood.
        let text = text.map(|it| String::from_utf8_lossy(&it).into_owned());
        catalogue.add_file(&path.display().to_string(), &text.unwrap_or_default());
    }
    catalogue
}

/// What is wrong with the file of this agent.
fn flaw<'a>(catalogue: &'a Catalog, name: &str) -> Option<&'a jackfield_catalog::AgentFileError> {
    catalogue.errors().iter().find(|it| stem(&it.file) == Some(name))
}

fn stem(file: &str) -> Option<&str> {
    Path::new(file).file_stem().and_then(|it| it.to_str())
}

#[cfg(test)]
mod tests;
