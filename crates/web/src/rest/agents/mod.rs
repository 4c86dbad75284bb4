//! Which agents there are. Programs are asked by one at a time, and only those that have not told
//! what they are, or all of them if somebody wants it.

mod routes;
mod row;

pub(crate) use routes::*;
pub(crate) use row::{Agent, PLAIN};

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

/// How long programs are asked, all together: a person waits for the list.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// Names the agents that the hosts of a fleet can start.
pub type Hosted = Arc<dyn Fn() -> BTreeSet<String> + Send + Sync>;

/// Everything that can be named as agent.
#[derive(Clone)]
pub(crate) struct Agents {
    look: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
    commands: Arc<BTreeMap<String, Vec<String>>>,
    /// Where sessions are placed on hosts, this machine does not matter.
    hosted: Option<Hosted>,
    probing: Arc<Probing>,
}

/// An agent that can be named.
pub(crate) struct Found {
    pub(crate) shown: Agent,
    /// What the catalogue says of it, and its models. Nothing if it is a command of the configuration, or
    /// only hosts know it: then only its sessions tell.
    pub(crate) spec: Option<(AgentSpec, Vec<ModelEntry>)>,
}

#[derive(Debug, Default)]
struct Probing {
    /// Held by whoever asks programs.
    turn: Mutex<()>,
    /// How often that was done.
    rounds: AtomicU64,
}

impl Agents {
    pub(crate) fn new(
        look: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
        commands: BTreeMap<String, Vec<String>>,
        hosted: Option<Hosted>,
    ) -> Agents {
        Agents { look, commands: Arc::new(commands), hosted, probing: Arc::default() }
    }

    /// What is known now; nothing is started.
    pub(crate) async fn survey(&self) -> AgentSurvey {
        let look = self.look.clone();
        // It reads files.
        tokio::task::spawn_blocking(move || look()).await.expect("looking does not panic")
    }

    /// The agent of this name, if it can be named.
    pub(crate) fn find(&self, name: &str, survey: &AgentSurvey) -> Option<Found> {
        let hosted = self.hosted.as_ref().map(|it| it());
        self.find_among(hosted.as_ref(), name, survey)
    }

    fn find_among(
        &self,
        hosted: Option<&BTreeSet<String>>,
        name: &str,
        survey: &AgentSurvey,
    ) -> Option<Found> {
        let here = if let Some(command) = self.commands.get(name) {
            Some(Found { shown: Agent::of_command(name, command, &survey.locations), spec: None })
        } else {
            survey.catalogue.get(name).map(|spec| {
                let standing = survey.status(spec);
                let shown = Agent::of_spec(spec, &standing);
                Found { shown, spec: Some((spec.clone(), standing.models.models)) }
            })
        };
        let Some(hosted) = hosted else { return here };
        let is_hosted = hosted.contains(name);
        let unknown = || Found { shown: Agent::of_session(name, &[]), spec: None };
        let Found { shown, spec } = here.or_else(|| is_hosted.then(unknown))?;
        Some(Found { shown: shown.in_fleet(is_hosted), spec })
    }

    /// Tells every agent as soon as all is known of it; `anew` asks those again that have told.
    pub(crate) async fn tell(&self, anew: bool) -> mpsc::Receiver<Agent> {
        let rounds = self.probing.rounds.load(Ordering::SeqCst);
        let survey = self.survey().await;
        if let Some(hosted) = &self.hosted {
            return self.tell_hosted(&hosted(), &survey);
        }
        let specs: Vec<AgentSpec> =
            survey.catalogue.iter().filter(|it| self.is_free(it)).cloned().collect();
        // There is room for all, so that nobody who asks programs waits for a reader.
        let (found, told) = mpsc::channel(specs.len() + self.commands.len() + 1);
        for (name, command) in self.commands.iter() {
            let _left = found.try_send(Agent::of_command(name, command, &survey.locations));
        }
        let (unknown, known): (Vec<AgentSpec>, Vec<AgentSpec>) =
            specs.into_iter().partition(|it| {
                let standing = survey.status(it);
                standing.program.is_some() && (anew || !standing.is_probed)
            });
        for spec in &known {
            let _left = found.try_send(Agent::of_spec(spec, &survey.status(spec)));
        }
        if !unknown.is_empty() {
            let agents = self.clone();
            tokio::spawn(async move { agents.ask(unknown, rounds, &found).await });
        }
        told
    }

    /// No program is asked: those of this machine are not the ones that will be started.
    fn tell_hosted(
        &self,
        hosted: &BTreeSet<String>,
        survey: &AgentSurvey,
    ) -> mpsc::Receiver<Agent> {
        let here = survey.catalogue.iter().map(|it| &it.id).chain(self.commands.keys());
        let names: BTreeSet<&String> = here.chain(hosted).collect();
        let (found, told) = mpsc::channel(names.len().max(1));
        for name in names {
            if let Some(agent) = self.find_among(Some(hosted), name, survey) {
                let _left = found.try_send(agent.shown);
            }
        }
        told
    }

    /// Whether no command of the configuration has its name.
    fn is_free(&self, spec: &AgentSpec) -> bool {
        !self.commands.contains_key(&spec.id)
    }

    /// Asks programs, unless somebody did since `rounds` was read.
    async fn ask(&self, specs: Vec<AgentSpec>, rounds: u64, found: &mpsc::Sender<Agent>) {
        let _turn = self.probing.turn.lock().await;
        let mut survey = self.survey().await;
        if self.probing.rounds.load(Ordering::SeqCst) == rounds {
            self.probe(&mut survey, specs, found).await;
        } else {
            for spec in &specs {
                let _left = found.try_send(Agent::of_spec(spec, &survey.status(spec)));
            }
        }
    }

    async fn probe(
        &self,
        survey: &mut AgentSurvey,
        specs: Vec<AgentSpec>,
        found: &mpsc::Sender<Agent>,
    ) {
        match AgentProber::new(survey.locations.clone(), Some(PROBE_WITHIN)) {
            Ok(prober) => {
                let tell = |spec: AgentSpec, knowledge| {
                    survey.add_result(&spec, knowledge);
                    let _left = found.try_send(Agent::of_spec(&spec, &survey.status(&spec)));
                };
                prober.probe(specs, tell).await;
                if let Err(error) = survey.save() {
                    tracing::warn!(%error, "what programs told about themselves cannot be kept");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "programs cannot be asked what they are");
                for spec in &specs {
                    let _left = found.try_send(Agent::of_spec(spec, &survey.status(spec)));
                }
            }
        }
        self.probing.rounds.fetch_add(1, Ordering::SeqCst);
    }
}
