//! The catalogue, the settings and this machine, looked at together.

use crate::{
    app::Desk,
    exit::Exit,
    hub::settings,
    out::{DIM, paint},
    report::Failure,
};
use jackfield_agents::{find::ProgramLocations, probe::AgentProber};
use jackfield_catalog::AgentSpec;
use jackfield_daemon::{Settings, environment};
use std::{io, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) struct Survey {
    pub(crate) settings: Settings,
    pub(crate) known: jackfield_agents::probe::AgentSurvey,
}

impl Survey {
    pub(crate) fn new(desk: &Desk) -> Result<Survey, Failure> {
        let paths = desk.dial.paths();
        let (catalogue, places) =
            (jackfield_daemon::catalogue(paths), ProgramLocations::new(environment::ours()));
        let known = jackfield_agents::probe::AgentSurvey::new(catalogue, places, &paths.probes());
        Ok(Survey { settings: settings(paths)?, known })
    }

    /// The agent of this name, or who there is instead.
    pub(crate) fn spec(&self, name: &str) -> Result<&AgentSpec, Failure> {
        let flaws = self.known.catalogue.errors().iter();
        let stem = |file: &str| std::path::Path::new(file).file_stem().is_some_and(|it| it == name);
        if let Some(flaw) = flaws.into_iter().find(|it| stem(&it.file)) {
            let what = format!("the file of agent `{name}` cannot be used");
            let (source, hint) = (Box::new(flaw.clone()), "correct or remove the file".to_owned());
            return Err(Failure::Local { what, source, exit: Exit::Usage, hint });
        }
        self.known.catalogue.get(name).ok_or_else(|| {
            let configured = self.settings.agents.contains_key(name);
            let why = if configured {
                "it is a command of config.toml, of which no more is known"
            } else {
                "it is neither in the catalogue nor a file in the folder `agents`"
            };
            let what = format!("the catalogue has no agent `{name}`");
            let hint = "`jackfield agents` lists all".to_owned();
            Failure::Local { what, source: why.into(), exit: Exit::NotFound, hint }
        })
    }

    /// Asks the programs that are there, and keeps what they tell.
    pub(crate) fn probe(
        &mut self,
        desk: &Desk,
        specs: Vec<AgentSpec>,
        within: Option<Duration>,
    ) -> Result<(), Failure> {
        let failed = |source| Failure::local("the programs cannot be asked", source);
        let there = self.known.retain_installed(specs);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut told = Vec::new();
        let asked = runtime.map_err(failed)?.block_on(async {
            let prober = AgentProber::new(self.known.locations.clone(), within)?;
            let probing = prober.probe(there, |spec, knowledge| {
                if desk.out.is_verbose() {
                    let version = knowledge.version.as_deref().unwrap_or("no version");
                    desk.out.note(&paint(DIM, format!("{} told: {version}", spec.id)));
                }
                told.push((spec, knowledge));
            });
            tokio::select! {
                () = probing => Ok(true),
                stopped = stopped() => stopped.map(|()| false),
            }
        });
        for (spec, knowledge) in told {
            self.known.add_result(&spec, knowledge);
        }
        if let Err(error) = self.known.save() {
            let path = desk.dial.paths().probes();
            desk.out
                .note(&format!("what was told cannot be kept in `{}`: {error}", path.display()));
        }
        if asked.map_err(failed)? {
            Ok(())
        } else {
            Err(Failure::Interrupted { waited_for: "programs to tell what they are".to_owned() })
        }
    }
}

/// Returns when somebody wants us to stop.
async fn stopped() -> io::Result<()> {
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
