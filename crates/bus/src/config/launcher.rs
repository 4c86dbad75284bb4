//! Reads `launcher`: agents of an ACP registry and of the catalog that are started on demand.

use super::json::PositionedValue;
use super::limits::milliseconds;
use super::problem::ConfigProblem;
use super::warn_unknown;
use crate::routing::{LauncherConfig, WorkerCommand};
use jackfield_agents::find::{ProgramLocations, find_variant_program};
use jackfield_catalog::{AgentSpec, Catalog, LaunchOptions, LaunchVariant};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// As many agents as a machine of a developer can run.
const AGENTS_MAX: usize = 8;
const IDLE_MS: u64 = 600_000;

/// `launcher` before its agents are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LauncherSettings {
    /// The file of an ACP registry.
    pub(super) registry: Option<PathBuf>,
    agents_max: usize,
    idle_ms: u64,
}

pub(super) fn read_launcher(
    value: Option<PositionedValue<'_>>,
    folder: &Path,
    warnings: &mut Vec<ConfigProblem>,
) -> Result<Option<LauncherSettings>, ConfigProblem> {
    let Some(value) = value else { return Ok(None) };
    let mut members = value.members("`launcher`")?;
    let registry = members.take_member("registry").map(|it| {
        let reason = "config: `registry` of `launcher` must be the path of a registry.json";
        it.string().map(|path| folder.join(path)).ok_or_else(|| it.problem(reason))
    });
    let agents_max = members.take_member("max_agents").map(|it| {
        let reason = "config: `max_agents` of `launcher` must be a whole number from 1";
        it.read_owned().filter(|it| 0 < *it).ok_or_else(|| it.problem(reason))
    });
    let idle_ms = members.take_member("idle_sec").map(|it| {
        let reason = "config: `idle_sec` of `launcher` must be a number of seconds above 0";
        milliseconds(it).filter(|it| 0 < *it).ok_or_else(|| it.problem(reason))
    });
    let settings = LauncherSettings {
        registry: registry.transpose()?,
        agents_max: agents_max.transpose()?.unwrap_or(AGENTS_MAX),
        idle_ms: idle_ms.transpose()?.unwrap_or(IDLE_MS),
    };
    warn_unknown(members, "`launcher`", warnings);
    Ok(Some(settings))
}

impl LauncherSettings {
    /// The agents of the catalog, and those of the registry, which replace agents with the same id.
    pub(super) fn into_config(self, catalog: &Catalog, registry: &[AgentSpec]) -> LauncherConfig {
        let env = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let locations = ProgramLocations::new(env);
        let specs = catalog.iter().chain(registry);
        let agents = specs
            .filter_map(|it| Some((it.id.as_str().into(), Arc::new(find_command(it, &locations)?))))
            .collect();
        LauncherConfig { agents, agents_max: self.agents_max, idle_ms: self.idle_ms }
    }
}

/// How an agent is started: the first variant that speaks ACP itself and is installed. If none is,
/// the first one is tried, so that the error names its program.
fn find_command(spec: &AgentSpec, locations: &ProgramLocations) -> Option<WorkerCommand> {
    let mut variants = spec.launch.iter().filter(|it| it.is_native_acp());
    let installed = variants.clone().find_map(|variant| {
        let found = find_variant_program(spec, variant, locations).ok()?;
        Some((variant, found.path.to_string_lossy().into_owned()))
    });
    let first = || variants.next().and_then(|it| Some((it, it.bins.first()?.clone())));
    let (variant, program) = installed.or_else(first)?;
    let args = variant.compose_argv(&LaunchOptions::default()).ok()?;
    let argv = std::iter::once(program).chain(args).collect();
    Some(WorkerCommand { argv, env: unset_variables(spec, variant, locations), cwd: None })
}

/// The variables that an agent gets unless the user has set them.
fn unset_variables(
    spec: &AgentSpec,
    variant: &LaunchVariant,
    locations: &ProgramLocations,
) -> Vec<(String, String)> {
    let wanted = spec.env.set.iter().chain(&variant.ask_env);
    let unset = wanted.filter(|(name, _)| locations.var(name).is_none());
    unset.map(|(name, value)| (name.clone(), value.clone())).collect()
}
