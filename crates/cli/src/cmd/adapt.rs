//! `jackfield adapt`: a foreign CLI as an ACP agent on stdio, without the daemon. The daemon starts
//! this very command.

use super::agents::Survey;
use crate::{app::Desk, env, hub::guard, report::Failure};
use clap::Args;
use jackfield_adapters::{AdapterSettings, find_dialect, host};
use jackfield_agents::{
    find::{FoundProgram, ProgramLocations, ProgramOrigin},
    probe::describe_missing,
};
use jackfield_catalog::AgentSpec;
use jackfield_daemon::environment;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a program that was never probed may take to tell which flags it has.
const PROBE_MAX: Duration = Duration::from_secs(4);

/// A foreign CLI as an ACP agent on stdin and stdout
///
/// For editors that should talk to it without the daemon, and for trying out a catalogue file.
/// What a turn leaves running is ended with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield adapt codex
  $ jackfield adapt claude --program ~/bin/claude
  $ jackfield run \"What does this project do?\" -- jackfield adapt cursor")]
pub(crate) struct Adapt {
    /// The agent, by its name in the catalogue; `jackfield agents` lists them
    agent: String,

    /// The dialect, where the agent can be adapted in several ways
    #[arg(long, env = env::DIALECT, hide_env_values = true, value_name = "NAME")]
    dialect: Option<String>,

    /// Use this program instead of the one that is found
    #[arg(long, env = env::PROGRAM, hide_env_values = true, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl Adapt {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut survey = Survey::new(desk)?;
        let mut spec = survey.spec(&self.agent)?.clone();
        if let Some(program) = &self.program {
            use_program(&mut spec, program)?;
        }
        let (index, found) = self.choose(&spec, &survey)?;
        let variant = spec.launch[index].clone();
        let name = variant.dialect.as_deref().unwrap_or_default();
        let new_dialect = find_dialect(name).ok_or_else(|| {
            let message = format!("this version does not know the dialect `{name}`");
            Failure::usage(message, "correct `dialect` in the file of the agent")
        })?;
        if !variant.flags.is_empty() && !survey.known.status(&spec).is_probed {
            survey.probe(desk, vec![spec.clone()], Some(PROBE_MAX))?;
        }
        let standing = survey.known.status(&spec);
        let none = || vec![false; variant.flags.len()];
        let paths = desk.dial.paths();
        let scratch = paths.runtime.join(format!("adapt-{}", std::process::id()));
        let host = host::HostConfig {
            env: environment_of(&spec, &found, &survey.known.locations),
            program: found.path,
            guard: guard()?,
            session_dir: paths.state.join("adapt"),
            settings: AdapterSettings {
                flags: standing.flags.get(index).cloned().unwrap_or_else(none),
                models: standing.models.models,
                scratch: scratch.to_string_lossy().into_owned(),
                variant,
                spec,
            },
            new_dialect,
        };
        serve(host)
    }

    /// The variant to adapt, by its place in the spec, and its program.
    fn choose(&self, spec: &AgentSpec, survey: &Survey) -> Result<(usize, FoundProgram), Failure> {
        let wanted = self.dialect.as_deref();
        let standing = survey.known.status(spec);
        let mut missing = None;
        for (index, (variant, found)) in spec.launch.iter().zip(standing.variants).enumerate() {
            let Some(dialect) = variant.dialect.as_deref() else { continue };
            if wanted.is_some_and(|it| it != dialect) {
                continue;
            }
            match found {
                Ok(found) => return Ok((index, found)),
                Err(it) => missing = missing.or(Some(it)),
            }
        }
        let Some(missing) = missing else {
            let known = spec.launch.iter().filter_map(|it| it.dialect.as_deref());
            let known: Vec<&str> = known.collect();
            let hint = match known[..] {
                [] => format!("{} speaks ACP itself: `jackfield acp -a {}`", spec.name, spec.id),
                _ => format!("it can be adapted as `{}`", known.join("`, `")),
            };
            let message = format!("`{}` cannot be adapted this way", spec.id);
            return Err(Failure::usage(message, hint));
        };
        let told = describe_missing(spec, &missing);
        Err(Failure::usage(told.message, told.fix))
    }
}

/// A spec whose only program is this one: what is probed is what is started.
fn use_program(spec: &mut AgentSpec, program: &Path) -> Result<(), Failure> {
    let path = std::path::absolute(program)
        .map_err(|error| Failure::local("the working directory is not known", error))?;
    let bins = vec![path.to_string_lossy().into_owned()];
    for variant in &mut spec.launch {
        variant.bins.clone_from(&bins);
    }
    (spec.bins, spec.bin_env) = (bins, None);
    Ok(())
}

fn serve(host: host::HostConfig) -> Result<(), Failure> {
    let failed = |error| Failure::local("stdin and stdout cannot be used", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        host::serve_client(host, jackfield_transport::open_stdio().map_err(failed)?).await;
        Ok(())
    })
}

/// All we have, less what is ours and what confuses the program. Whoever started us has chosen it:
/// the daemon by the agent's spec, an editor or a shell by itself.
fn environment_of(
    spec: &AgentSpec,
    found: &FoundProgram,
    places: &ProgramLocations,
) -> Vec<(String, String)> {
    let ours = environment::ours().filter(|(name, _)| !name.starts_with("JACKFIELD_"));
    let mut env: BTreeMap<String, String> = ours.collect();
    env.retain(|name, _| !spec.env.remove.contains(name));
    for (name, value) in &spec.env.set {
        env.entry(name.clone()).or_insert_with(|| value.clone());
    }
    if found.origin != ProgramOrigin::Path {
        env.insert("PATH".to_owned(), places.extended_path());
    }
    env.into_iter().collect()
}
