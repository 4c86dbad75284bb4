//! `jackfield adapt`: runs a foreign CLI as an ACP agent on stdio. The daemon starts this command for adapted agents.

use super::agents::ConfiguredAgents;
use crate::{context::CommandContext, env, hub::guard_command, report::CommandError};
use clap::Args;
use jackfield_adapters::{AdapterSettings, find_dialect, host};
use jackfield_agents::{
    find::{FoundProgram, ProgramLocations},
    probe::{check_start, describe_missing},
};
use jackfield_catalog::{AgentSpec, LaunchVariant};
use jackfield_daemon::environment;
use jackfield_sandbox::os::PROFILE_VARIABLE;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long probing a program for its supported flags may take.
const PROBE_MAX: Duration = Duration::from_secs(4);

/// Run a foreign CLI as an ACP agent on stdin and stdout
///
/// For editors that use it without the daemon, and for testing a catalog file. Processes that a turn
/// leaves running are killed when the turn ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield adapt codex
  $ jackfield adapt claude --program ~/bin/claude
  $ jackfield run \"What does this project do?\" -- jackfield adapt cursor")]
pub(crate) struct AdaptCommand {
    /// The name of the agent in the catalog; `jackfield agents` lists them
    agent: String,

    /// The launch variant or its dialect [default: the first that the program supports]
    #[arg(id = "adapt_variant", long = "variant", env = env::ADAPT_VARIANT, hide_env_values = true, value_name = "NAME")]
    variant: Option<String>,

    /// Use this program instead of the one that was found
    #[arg(long, env = env::PROGRAM, hide_env_values = true, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl AdaptCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut agents = ConfiguredAgents::new(context)?;
        let mut spec = agents.find_spec(&self.agent)?.clone();
        if let Some(program) = &self.program {
            replace_program(&mut spec, program)?;
        }
        let (index, found) = self.choose_variant(&spec, &agents)?;
        let variant = spec.launch[index].clone();
        let name = variant.dialect.as_deref().unwrap_or_default();
        let new_dialect = find_dialect(name).ok_or_else(|| {
            let message = format!("unknown dialect `{name}`");
            CommandError::usage(message, "correct `dialect` in the agent's file")
        })?;
        if !variant.flags.is_empty() && !agents.survey.status(&spec).is_probed {
            agents.probe(context, vec![spec.clone()], Some(PROBE_MAX))?;
        }
        let status = agents.survey.status(&spec);
        let no_flags = || vec![false; variant.flags.len()];
        let paths = context.daemon.paths();
        let scratch = paths.runtime.join(format!("adapt-{}", std::process::id()));
        let host = host::HostConfig {
            env: agent_environment(&spec, &found, &agents.survey.locations),
            program: found.path,
            guard: guard_command()?,
            session_dir: paths.state.join("adapt"),
            settings: AdapterSettings {
                flags: status.flags.get(index).cloned().unwrap_or_else(no_flags),
                models: status.models.models,
                program_version: status.version,
                scratch: scratch.to_string_lossy().into_owned(),
                is_sandboxed: std::env::var_os(PROFILE_VARIABLE).is_some(),
                variant,
                spec,
            },
            new_dialect,
        };
        serve_stdio(host)
    }

    /// The index of the launch variant to adapt, and its program: the first that the program supports.
    fn choose_variant(
        &self,
        spec: &AgentSpec,
        agents: &ConfiguredAgents,
    ) -> Result<(usize, FoundProgram), CommandError> {
        let status = agents.survey.status(spec);
        let mut failure = None;
        for (index, (variant, found)) in spec.launch.iter().zip(status.variants).enumerate() {
            let Some(dialect) = &variant.dialect else { continue };
            let is_requested = |it: &String| *it == variant.name || it == dialect;
            if !self.variant.as_ref().is_none_or(is_requested) {
                continue;
            }
            let checked = match found {
                Ok(found) => check_variant(spec, variant, &found, agents).map(|()| found),
                Err(missing) => {
                    let diagnostic = describe_missing(spec, &missing);
                    Err(CommandError::usage(diagnostic.message, diagnostic.fix))
                }
            };
            match checked {
                Ok(found) => return Ok((index, found)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| unknown_variant(spec)))
    }
}

/// Fails if the installed program does not support the variant, as far as a start can show that.
fn check_variant(
    spec: &AgentSpec,
    variant: &LaunchVariant,
    found: &FoundProgram,
    agents: &ConfiguredAgents,
) -> Result<(), CommandError> {
    if !variant.start_check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CommandError::local("cannot check the program", error))?;
    let locations = &agents.survey.locations;
    runtime.block_on(check_start(spec, variant, found, locations, PROBE_MAX)).map_err(|why| {
        let message = format!("launch variant `{}` of {} failed: {why}", variant.name, spec.name);
        CommandError::usage(message, "update the program, or choose another `--variant`")
    })
}

/// The error if no variant with an adapter has the requested name.
fn unknown_variant(spec: &AgentSpec) -> CommandError {
    let adapted = spec.launch.iter().filter(|it| !it.is_native_acp());
    let names: Vec<&str> = adapted.map(|it| it.name.as_str()).collect();
    let hint = if names.is_empty() {
        format!("{} supports ACP without an adapter: `jackfield acp {}`", spec.name, spec.id)
    } else {
        format!("its launch variants with an adapter are `{}`", names.join("`, `"))
    };
    CommandError::usage(format!("`{}` has no such launch variant", spec.id), hint)
}

/// Makes `program` the only program of a specification, for probing and for the start.
fn replace_program(spec: &mut AgentSpec, program: &Path) -> Result<(), CommandError> {
    let path = std::path::absolute(program)
        .map_err(|error| CommandError::local("cannot determine the working directory", error))?;
    let bins = vec![path.to_string_lossy().into_owned()];
    for variant in &mut spec.launch {
        variant.bins.clone_from(&bins);
    }
    (spec.bins, spec.bin_env) = (bins, None);
    Ok(())
}

fn serve_stdio(host: host::HostConfig) -> Result<(), CommandError> {
    let failed = |error| CommandError::local("cannot use stdin and stdout", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        host::serve_client(host, jackfield_transport::open_stdio().map_err(failed)?).await;
        Ok(())
    })
}

/// This process's environment without the `JACKFIELD_` variables and those that the specification removes. The parent
/// process has chosen it: the daemon by the specification, an editor or a shell by itself.
fn agent_environment(
    spec: &AgentSpec,
    found: &FoundProgram,
    locations: &ProgramLocations,
) -> Vec<(String, String)> {
    let inherited = environment::process_env().filter(|(name, _)| !name.starts_with("JACKFIELD_"));
    let mut env: BTreeMap<String, String> = inherited.collect();
    env.retain(|name, _| !spec.env.remove.contains(name));
    for (name, value) in &spec.env.set {
        env.entry(name.clone()).or_insert_with(|| value.clone());
    }
    if let Some(path) = locations.path_for(found) {
        env.insert("PATH".to_owned(), path);
    }
    env.into_iter().collect()
}
