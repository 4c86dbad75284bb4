//! The queries to one agent.

use super::{
    AgentDiagnostic, LoginState, ModelList, ModelListSource, ProbeResult,
    command::{CommandResult, ProbeCommand, run_command},
    diagnostic::{self, StartProblem},
    models,
    scratch_folder::ScratchFolder,
    text_lines::first_line,
};
use crate::find::{FoundProgram, ProgramLocations, find_own_program, find_variant_program};
use jackfield_catalog::{AgentSpec, ModelSource};
use std::{collections::BTreeMap, io::ErrorKind, path::Path, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::Instant};

const HELP_MAX: Duration = Duration::from_secs(5);
const LOGIN_MAX: Duration = Duration::from_secs(5);

pub(super) struct AgentProbe {
    pub(super) spec: AgentSpec,
    pub(super) locations: Arc<ProgramLocations>,
    pub(super) scratch: Arc<ScratchFolder>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) deadline: Option<Instant>,
}

impl AgentProbe {
    /// Queries the version first. If the program cannot be started, nothing else is queried.
    pub(super) async fn probe_all(&self) -> ProbeResult {
        let mut result = ProbeResult::default();
        let own = find_own_program(&self.spec, &self.locations).ok();
        if let Some(own) = &own {
            match self.probe_version(own).await {
                Ok(version) => result.version = Some(version),
                Err(diagnostic) => result.diagnostics.push(diagnostic),
            }
            if result.is_unusable() {
                return result;
            }
        }
        let (flags, login, models, variants) = tokio::join!(
            self.probe_flags(),
            self.probe_login(own.as_ref()),
            self.probe_models(own.as_ref()),
            self.probe_variants()
        );
        (result.flags, result.variant_failures, result.acp) =
            (flags, variants.failures, variants.acp);
        let models = variants.models.unwrap_or(models);
        match login {
            Ok(login) => result.login = login,
            Err(diagnostic) => result.diagnostics.push(diagnostic),
        }
        match models {
            Ok(ModelsResult::Listed(list)) => result.models = Some(list),
            Ok(ModelsResult::Nothing) => {}
            Ok(ModelsResult::LoginFirst) => {
                result.login = Some(LoginState::Missing);
                let (why, fix) = ("a session needs a login first", "log in, then probe again");
                result.diagnostics.push(diagnostic::describe_fallback_models(&self.spec, why, fix));
            }
            Err(diagnostic) => result.diagnostics.push(diagnostic),
        }
        if result.login == Some(LoginState::Missing) {
            result.diagnostics.push(diagnostic::describe_missing_login(&self.spec));
        }
        result
    }

    async fn probe_version(&self, own: &FoundProgram) -> Result<String, AgentDiagnostic> {
        let probe = &self.spec.version;
        let limit = Duration::from_millis(probe.timeout_ms);
        let shown = command_line(&own.path, &probe.args);
        match self.run(own, &probe.args, limit).await {
            CommandResult::NotStarted(error) => {
                let problem = match error.kind() {
                    ErrorKind::PermissionDenied => StartProblem::NotExecutable,
                    _ => StartProblem::Broken,
                };
                Err(diagnostic::describe_start_problem(&self.spec, &own.path, problem))
            }
            CommandResult::Ended { status, .. } if matches!(status.code(), Some(126 | 127)) => {
                let problem = match status.code() {
                    Some(127) => StartProblem::Broken,
                    _ => StartProblem::NotExecutable,
                };
                Err(diagnostic::describe_start_problem(&self.spec, &own.path, problem))
            }
            CommandResult::Ended { status, stdout, stderr } if status.success() => {
                let line = first_line(&stdout).or_else(|| first_line(&stderr));
                line.ok_or_else(|| {
                    diagnostic::describe_missing_version(&shown, "it printed nothing")
                })
            }
            CommandResult::Ended { status, stdout, stderr } => {
                let output = first_line(&stderr).or_else(|| first_line(&stdout));
                let output = output.map(|it| format!(": {it}")).unwrap_or_default();
                Err(diagnostic::describe_missing_version(&shown, &format!("{status}{output}")))
            }
            CommandResult::TimedOut => {
                let failed = diagnostic::describe_missing_version(&shown, "it did not end in time");
                // If it is probed alone, it has more time.
                let alone = format!("jackfield agents show {} --probe", self.spec.id);
                let fix = if self.deadline.is_some() { alone } else { failed.fix.clone() };
                Err(AgentDiagnostic { fix, ..failed })
            }
        }
    }

    /// Which flags each variant supports. Each help text is read once.
    async fn probe_flags(&self) -> Vec<Vec<bool>> {
        let mut helps: BTreeMap<(std::path::PathBuf, Vec<String>), String> = BTreeMap::new();
        let mut all = Vec::new();
        for variant in &self.spec.launch {
            let found = find_variant_program(&self.spec, variant, &self.locations).ok();
            let mut has = Vec::new();
            for flag in &variant.flags {
                let Some(found) = &found else {
                    has.push(false);
                    continue;
                };
                let key = (found.path.clone(), flag.help.clone());
                if !helps.contains_key(&key) {
                    let help = match self.run(found, &flag.help, HELP_MAX).await {
                        CommandResult::Ended { stdout, stderr, .. } => stdout + &stderr,
                        CommandResult::TimedOut | CommandResult::NotStarted(_) => String::new(),
                    };
                    helps.insert(key.clone(), help);
                }
                has.push(helps[&key].contains(&flag.needs));
            }
            all.push(has);
        }
        all
    }

    async fn probe_login(
        &self,
        own: Option<&FoundProgram>,
    ) -> Result<Option<LoginState>, AgentDiagnostic> {
        let spec = &self.spec;
        let (Some(auth), Some(own)) = (&spec.auth, own) else { return Ok(None) };
        if auth.env.iter().any(|it| self.locations.var(it).is_some()) {
            return Ok(None);
        }
        if auth.args.is_empty() {
            return Err(diagnostic::describe_unknown_login(
                spec,
                "it has no command that reports it",
            ));
        }
        let shown = command_line(&own.path, &auth.args);
        match self.run(own, &auth.args, LOGIN_MAX).await {
            CommandResult::Ended { status, stdout, stderr } => {
                let output = format!("{stdout}\n{stderr}").to_lowercase();
                if auth.missing.iter().any(|it| output.contains(it.as_str())) {
                    return Ok(Some(LoginState::Missing));
                }
                if status.success() {
                    return Ok(Some(LoginState::Ok));
                }
                let why = format!("`{shown}` ended with {status}");
                Err(diagnostic::describe_unknown_login(spec, &why))
            }
            CommandResult::TimedOut => Err(diagnostic::describe_unknown_login(
                spec,
                &format!("`{shown}` did not end in time"),
            )),
            CommandResult::NotStarted(error) => {
                Err(diagnostic::describe_unknown_login(spec, &format!("`{shown}`: {error}")))
            }
        }
    }

    /// The models that the program lists. A settings file is read later, when it is needed.
    async fn probe_models(
        &self,
        own: Option<&FoundProgram>,
    ) -> Result<ModelsResult, AgentDiagnostic> {
        let from = &self.spec.models;
        let source = match from.from {
            None | Some(ModelSource::Settings | ModelSource::Acp) => {
                return Ok(ModelsResult::Nothing);
            }
            Some(ModelSource::Command) => ModelListSource::Command,
            Some(ModelSource::Help) => ModelListSource::Help,
        };
        let failed =
            |why: &str, fix: String| diagnostic::describe_fallback_models(&self.spec, why, fix);
        let Some(own) = own else {
            let fix = format!("install `{}`", self.spec.bins.join("` or `"));
            return Err(failed("its own program was not found", fix));
        };
        let help = ["--help".to_owned()];
        let args = if from.args.is_empty() && source == ModelListSource::Help {
            &help
        } else {
            &from.args[..]
        };
        let shown = command_line(&own.path, args);
        let manually = || format!("run `{shown}` yourself to see more");
        match self.run(own, args, Duration::from_millis(from.timeout_ms)).await {
            CommandResult::Ended { status, stdout, stderr } => {
                let parse = |it: &str| {
                    let format = from.format?;
                    models::reported_models(source, jackfield_catalog::parse_models(format, it))
                };
                // Some programs print their help or lists on stderr.
                parse(&stdout).or_else(|| parse(&stderr)).map(ModelsResult::Listed).ok_or_else(
                    || {
                        let output = first_line(&stderr).or_else(|| first_line(&stdout));
                        let output = output.map(|it| format!(": {it}")).unwrap_or_default();
                        failed(&format!("`{shown}` listed none ({status}){output}"), manually())
                    },
                )
            }
            CommandResult::TimedOut => {
                Err(failed(&format!("`{shown}` did not end in time"), self.fix_for_timeout()))
            }
            CommandResult::NotStarted(error) => {
                Err(failed(&format!("`{shown}`: {error}"), manually()))
            }
        }
    }

    /// The fix for an agent that was too slow.
    pub(super) fn fix_for_timeout(&self) -> String {
        match self.deadline {
            Some(_) => format!("jackfield models {} --probe", self.spec.id),
            None => "run it in a terminal: it may wait for something".to_owned(),
        }
    }

    async fn run(&self, found: &FoundProgram, args: &[String], limit: Duration) -> CommandResult {
        let Some((_permit, limit)) = self.acquire_permit(limit).await else {
            return CommandResult::TimedOut;
        };
        let (env, cwd) = (self.env(found), self.scratch.path());
        run_command(ProbeCommand { program: &found.path, args, env: &env, cwd }, limit).await
    }

    /// Waits for a permit to run. Returns it with the time limit.
    pub(super) async fn acquire_permit(
        &self,
        limit: Duration,
    ) -> Option<(tokio::sync::OwnedSemaphorePermit, Duration)> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let permit = match self.deadline {
            Some(until) => tokio::time::timeout(left(until), waiting).await.ok()?.ok()?,
            None => waiting.await.ok()?,
        };
        let limit = self.deadline.map_or(limit, |until| limit.min(left(until)));
        (!limit.is_zero()).then_some((permit, limit))
    }

    pub(super) fn env(&self, found: &FoundProgram) -> Vec<(String, String)> {
        agent_environment(&self.spec, found, &self.locations)
    }
}

/// The time that a program may take for its first start after it was installed, when nothing of it is cached.
const FIRST_START_MS: u64 = 60_000;

/// Starts a program that was just installed and returns the version that it prints.
pub(crate) async fn query_version(
    spec: &AgentSpec,
    found: &FoundProgram,
    locations: &ProgramLocations,
) -> Result<String, AgentDiagnostic> {
    let mut spec = spec.clone();
    spec.version.timeout_ms = spec.version.timeout_ms.max(FIRST_START_MS);
    let shown = command_line(&found.path, &spec.version.args);
    let scratch = ScratchFolder::new()
        .map_err(|error| diagnostic::describe_missing_version(&shown, &error.to_string()))?;
    let probe = AgentProbe {
        spec,
        locations: Arc::new(locations.clone()),
        scratch: Arc::new(scratch),
        permits: Arc::new(Semaphore::new(1)),
        deadline: None,
    };
    probe.probe_version(found).await
}

/// The environment of an agent's program. For a program that is not on `PATH`, `PATH` is extended.
pub fn agent_environment(
    spec: &AgentSpec,
    found: &FoundProgram,
    locations: &ProgramLocations,
) -> Vec<(String, String)> {
    let mut env = spec.env.compose_environment(locations.env());
    if let Some(path) = locations.path_for(found) {
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".to_owned(), path));
    }
    env
}

/// The result of querying the models.
pub(super) enum ModelsResult {
    Listed(ModelList),
    /// The agent has no list to query.
    Nothing,
    LoginFirst,
}

fn command_line(program: &Path, args: &[String]) -> String {
    ProbeCommand { program, args, env: &[], cwd: program }.command_line()
}
