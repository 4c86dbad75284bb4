//! The agents of the catalog and the configuration, and what is known about them on this machine.

use crate::{
    context::CommandContext,
    exit::CliExitCode,
    hub::load_settings,
    out::{DIM, paint},
    report::CommandError,
};
use jackfield_agents::probe::{AgentProber, AgentSurvey};
use jackfield_catalog::AgentSpec;
use jackfield_daemon::{Settings, environment};
use jackfield_protocol::suggest_name;
use std::{io, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) struct ConfiguredAgents {
    pub(crate) settings: Settings,
    pub(crate) survey: AgentSurvey,
}

impl ConfiguredAgents {
    pub(crate) fn new(context: &CommandContext) -> Result<ConfiguredAgents, CommandError> {
        let paths = context.daemon.paths();
        let (catalog, locations) =
            (jackfield_daemon::load_catalog(paths), environment::program_locations(paths));
        let survey = AgentSurvey::new(catalog, locations, &paths.probes());
        Ok(ConfiguredAgents { settings: load_settings(paths)?, survey })
    }

    /// The specification of an agent, or an error that names the cause.
    pub(crate) fn find_spec(&self, name: &str) -> Result<&AgentSpec, CommandError> {
        let errors = self.survey.catalogue.errors().iter();
        let is_file_of_agent =
            |file: &str| std::path::Path::new(file).file_stem().is_some_and(|it| it == name);
        if let Some(error) = errors.into_iter().find(|it| is_file_of_agent(&it.file)) {
            let what = format!("the file of agent `{name}` is invalid");
            let (source, hint) = (Box::new(error.clone()), "correct or remove the file".to_owned());
            return Err(CommandError::Local { what, source, exit: CliExitCode::Usage, hint });
        }
        self.survey.catalogue.get(name).ok_or_else(|| {
            let is_configured = self.settings.agents.contains_key(name);
            let why = if is_configured {
                "it is a command in config.toml, which has no catalog entry"
            } else {
                "it is not in the catalog, and the folder `agents` has no file for it"
            };
            let known = self.survey.catalogue.names();
            let suggestion = if is_configured { String::new() } else { suggest_name(name, known) };
            let what = format!("unknown agent `{name}`{suggestion}");
            let hint = "`jackfield agents` lists all agents".to_owned();
            CommandError::Local { what, source: why.into(), exit: CliExitCode::NotFound, hint }
        })
    }

    /// Probes the installed programs and stores the results.
    pub(crate) fn probe(
        &mut self,
        context: &CommandContext,
        specs: Vec<AgentSpec>,
        time_limit: Option<Duration>,
    ) -> Result<(), CommandError> {
        let failed = |source| CommandError::local("cannot probe the programs", source);
        let installed = self.survey.retain_installed(specs);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut results = Vec::new();
        let completed = runtime.map_err(failed)?.block_on(async {
            let prober = AgentProber::new(self.survey.locations.clone(), time_limit)?;
            let probing = prober.probe(installed, |spec, knowledge| {
                if context.output.is_verbose() {
                    let version = knowledge.version.as_deref().unwrap_or("no version");
                    context
                        .output
                        .print_note(&paint(DIM, format!("probed {}: {version}", spec.id)));
                }
                results.push((spec, knowledge));
            });
            tokio::select! {
                () = probing => Ok(true),
                received = wait_for_stop_signal() => received.map(|()| false),
            }
        });
        for (spec, knowledge) in results {
            self.survey.add_result(&spec, knowledge);
        }
        if let Err(error) = self.survey.save() {
            let path = context.daemon.paths().probes();
            context.output.print_note(&format!(
                "cannot store the probe results in `{}`: {error}",
                path.display()
            ));
        }
        if completed.map_err(failed)? {
            Ok(())
        } else {
            Err(CommandError::Interrupted { waited_for: "probe results".to_owned() })
        }
    }
}

/// Runs some work, which is dropped when SIGINT, SIGTERM or SIGHUP arrives.
pub(super) fn run_until_stopped<T>(
    waited_for: &str,
    work: impl Future<Output = T>,
) -> Result<T, CommandError> {
    let failed = |source| CommandError::local("cannot wait for a program", source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        tokio::select! {
            done = work => Ok(done),
            received = wait_for_stop_signal() => {
                received.map_err(failed)?;
                Err(CommandError::Interrupted { waited_for: waited_for.to_owned() })
            }
        }
    })
}

/// Waits for SIGINT, SIGTERM or SIGHUP.
async fn wait_for_stop_signal() -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}
