//! What several checks need. It is read when the first of them needs it.

use super::daemon::{DaemonContact, contact_daemon};
use crate::{
    cmd::agents::ConfiguredAgents,
    context::CommandContext,
    hub::{MODEL_SERVER, OWN_AGENT, load_settings},
    out::{DIM, paint},
    report::CommandError,
};
use jackfield_agents::probe::AgentSurvey;
use jackfield_daemon::{Paths, Settings, environment, load_catalog};
use std::{
    cell::OnceCell,
    time::{Instant, SystemTime},
};

pub(super) struct CheckContext<'a> {
    pub(super) command: &'a CommandContext,
    pub(super) paths: &'a Paths,
    /// The time by both clocks when the checks began.
    pub(super) started_at: (Instant, SystemTime),
    settings: OnceCell<Result<Settings, CommandError>>,
    daemon: OnceCell<DaemonContact>,
    survey: OnceCell<AgentSurvey>,
}

impl<'a> CheckContext<'a> {
    pub(super) fn new(command: &'a CommandContext) -> CheckContext<'a> {
        CheckContext {
            command,
            paths: command.daemon.paths(),
            started_at: (Instant::now(), SystemTime::now()),
            settings: OnceCell::new(),
            daemon: OnceCell::new(),
            survey: OnceCell::new(),
        }
    }

    pub(super) fn settings(&self) -> &Result<Settings, CommandError> {
        self.settings.get_or_init(|| load_settings(self.paths))
    }

    pub(super) fn daemon(&self) -> &DaemonContact {
        self.daemon.get_or_init(|| contact_daemon(self.command))
    }

    /// The agents on this machine. No program is started for it.
    pub(super) fn survey(&self) -> &AgentSurvey {
        self.survey.get_or_init(|| self.load_survey())
    }

    /// Starts the installed agents and keeps what they answer. Each query has its own time limit, so that an agent
    /// that is slow is told from one that does not work.
    pub(super) fn probe_agents(&mut self) -> Result<(), CommandError> {
        let survey = self.survey.take().unwrap_or_else(|| self.load_survey());
        let has_server = survey.locations.var(MODEL_SERVER).is_some();
        let specs = survey.catalogue.iter().filter(|it| has_server || it.id != OWN_AGENT);
        let specs = survey.retain_installed(specs.cloned().collect());
        if self.command.output.is_terminal() && !specs.is_empty() {
            let names: Vec<&str> = specs.iter().map(|it| it.id.as_str()).collect();
            let note = format!("starting {} to check them…", names.join(", "));
            self.command.output.print_note(&paint(DIM, note));
        }
        let mut agents = ConfiguredAgents { settings: Settings::default(), survey };
        agents.probe(self.command, specs, None)?;
        self.survey = OnceCell::from(agents.survey);
        Ok(())
    }

    fn load_survey(&self) -> AgentSurvey {
        let locations = environment::program_locations(self.paths);
        AgentSurvey::new(load_catalog(self.paths), locations, &self.paths.probes())
    }
}
