//! The known agents. Programs are probed by one request at a time, and only those that were not probed
//! before, unless the client wants all of them probed.

mod abilities;
mod agent;
mod routes;

pub(crate) use abilities::LearnedAbilities;
pub(crate) use agent::{AgentDescription, PLAIN};
pub(crate) use routes::*;

use jackfield_agents::probe::{AgentProber, AgentSurvey};
use jackfield_catalog::{AgentSpec, ModelEntry};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Mutex, mpsc};

/// The time limit for probing all programs: a person waits for the list.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the names of the agents that the hosts of a fleet can start.
pub(crate) type HostedAgents = Arc<dyn Fn() -> BTreeSet<String> + Send + Sync>;

/// All agents that a client can name.
#[derive(Clone)]
pub(crate) struct AgentDirectory {
    survey_machine: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
    commands: Arc<BTreeMap<String, Vec<String>>>,
    /// Set if sessions are placed on hosts: then the agents of this machine do not matter.
    hosted: Option<HostedAgents>,
    probe_state: Arc<ProbeState>,
}

/// An agent that a client can name.
pub(crate) struct KnownAgent {
    pub(crate) agent: AgentDescription,
    /// Its catalog entry and its models. `None` for a command of the configuration, and for an agent that
    /// only hosts have.
    pub(crate) spec: Option<(AgentSpec, Vec<ModelEntry>)>,
}

#[derive(Debug, Default)]
struct ProbeState {
    /// Held while programs are probed.
    lock: Mutex<()>,
    /// The number of finished probes.
    rounds: AtomicU64,
}

impl AgentDirectory {
    pub(crate) fn new(
        survey_machine: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
        commands: BTreeMap<String, Vec<String>>,
        hosted: Option<HostedAgents>,
    ) -> AgentDirectory {
        AgentDirectory {
            survey_machine,
            commands: Arc::new(commands),
            hosted,
            probe_state: Arc::default(),
        }
    }

    /// Surveys this machine without starting a program.
    pub(crate) async fn survey(&self) -> AgentSurvey {
        let survey_machine = self.survey_machine.clone();
        // The survey reads files.
        tokio::task::spawn_blocking(move || survey_machine())
            .await
            .expect("the survey does not panic")
    }

    /// The names that a client can use.
    pub(crate) fn names<'a>(&'a self, survey: &'a AgentSurvey) -> impl Iterator<Item = &'a str> {
        survey.catalogue.names().chain(self.commands.keys().map(String::as_str))
    }

    /// Whether agents run on the hosts of a fleet.
    pub(crate) fn is_hosted(&self) -> bool {
        self.hosted.is_some()
    }

    /// Finds the agent of this name or alias.
    pub(crate) fn find(&self, name: &str, survey: &AgentSurvey) -> Option<KnownAgent> {
        let hosted = self.hosted.as_ref().map(|it| it());
        self.find_in(hosted.as_ref(), name, survey)
    }

    fn find_in(
        &self,
        hosted: Option<&BTreeSet<String>>,
        name: &str,
        survey: &AgentSurvey,
    ) -> Option<KnownAgent> {
        let is_command = self.commands.contains_key(name);
        let name = if is_command { name } else { survey.catalogue.resolve_id(name) };
        let local = if let Some(command) = self.commands.get(name) {
            Some(KnownAgent {
                agent: AgentDescription::from_command(name, command, &survey.locations),
                spec: None,
            })
        } else {
            survey.catalogue.get(name).map(|spec| {
                let status = survey.status(spec);
                let agent = AgentDescription::from_spec(spec, &status);
                KnownAgent { agent, spec: Some((spec.clone(), status.models.models)) }
            })
        };
        let Some(hosted) = hosted else { return local };
        let is_hosted = hosted.contains(name);
        let unknown =
            || KnownAgent { agent: AgentDescription::from_session(name, &[]), spec: None };
        let KnownAgent { agent, spec } = local.or_else(|| is_hosted.then(unknown))?;
        Some(KnownAgent { agent: agent.in_fleet(is_hosted), spec })
    }

    /// Streams the agents, each as soon as it is fully known. With `probe_again`, known agents are probed too.
    pub(crate) async fn list(&self, probe_again: bool) -> mpsc::Receiver<AgentDescription> {
        let rounds = self.probe_state.rounds.load(Ordering::SeqCst);
        let survey = self.survey().await;
        if let Some(hosted) = &self.hosted {
            return self.list_hosted(&hosted(), &survey);
        }
        let specs: Vec<AgentSpec> =
            survey.catalogue.iter().filter(|it| self.is_not_overridden(it)).cloned().collect();
        // The channel has room for all agents, so that probing never waits for a reader.
        let (sender, receiver) = mpsc::channel(specs.len() + self.commands.len() + 1);
        for (name, command) in self.commands.iter() {
            let _closed =
                sender.try_send(AgentDescription::from_command(name, command, &survey.locations));
        }
        let (unprobed, known): (Vec<AgentSpec>, Vec<AgentSpec>) =
            specs.into_iter().partition(|it| {
                let status = survey.status(it);
                status.program.is_some() && (probe_again || !status.is_probed)
            });
        for spec in &known {
            let _closed = sender.try_send(AgentDescription::from_spec(spec, &survey.status(spec)));
        }
        if !unprobed.is_empty() {
            let agents = self.clone();
            tokio::spawn(async move { agents.probe_once(unprobed, rounds, &sender).await });
        }
        receiver
    }

    /// Lists the agents of the hosts. No program is probed: those of this machine are not started.
    fn list_hosted(
        &self,
        hosted: &BTreeSet<String>,
        survey: &AgentSurvey,
    ) -> mpsc::Receiver<AgentDescription> {
        let local = survey.catalogue.iter().map(|it| &it.id).chain(self.commands.keys());
        let names: BTreeSet<&String> = local.chain(hosted).collect();
        let (sender, receiver) = mpsc::channel(names.len().max(1));
        for name in names {
            if let Some(agent) = self.find_in(Some(hosted), name, survey) {
                let _closed = sender.try_send(agent.agent);
            }
        }
        receiver
    }

    /// Whether no command of the configuration overrides the catalog entry.
    fn is_not_overridden(&self, spec: &AgentSpec) -> bool {
        !self.commands.contains_key(&spec.id)
    }

    /// Probes programs, unless another request did so since `rounds` was read.
    async fn probe_once(
        &self,
        specs: Vec<AgentSpec>,
        rounds: u64,
        sender: &mpsc::Sender<AgentDescription>,
    ) {
        let _guard = self.probe_state.lock.lock().await;
        let mut survey = self.survey().await;
        if self.probe_state.rounds.load(Ordering::SeqCst) == rounds {
            self.probe(&mut survey, specs, sender).await;
        } else {
            for spec in &specs {
                let _closed =
                    sender.try_send(AgentDescription::from_spec(spec, &survey.status(spec)));
            }
        }
    }

    async fn probe(
        &self,
        survey: &mut AgentSurvey,
        specs: Vec<AgentSpec>,
        sender: &mpsc::Sender<AgentDescription>,
    ) {
        match AgentProber::new(survey.locations.clone(), Some(PROBE_TIMEOUT)) {
            Ok(prober) => {
                let on_result = |spec: AgentSpec, knowledge| {
                    survey.add_result(&spec, knowledge);
                    let _closed =
                        sender.try_send(AgentDescription::from_spec(&spec, &survey.status(&spec)));
                };
                prober.probe(specs, on_result).await;
                if let Err(error) = survey.save() {
                    tracing::warn!(%error, "failed to save probe results of agents");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to probe agents");
                for spec in &specs {
                    let _closed =
                        sender.try_send(AgentDescription::from_spec(spec, &survey.status(spec)));
                }
            }
        }
        self.probe_state.rounds.fetch_add(1, Ordering::SeqCst);
    }
}
