//! The REST API with server-sent events. It is an ordinary ACP client of the daemon.
//!
//! Read in this order: [`RestConfig`] is its configuration, `profile` the defaults for certain clients, `hub_client` connects to the hub, `error` has
//! the error responses, `extract` reads requests, `streaming` and `log_reader` write streaming responses.
//! Then by route: `agents`, `sessions`, `asks`, `events`, `runs` (`check` validates their requests, `prompt` builds
//! their prompts), `upload`, `directories`, `usage`, `hosts`, `logins`, `push`, `operations`; `openapi` describes all
//! routes.

mod agents;
mod asks;
mod check;
mod directories;
mod error;
mod events;
mod extract;
mod hosts;
mod hub_client;
mod log_reader;
mod logins;
mod openapi;
mod operations;
mod profile;
mod prompt;
mod push;
#[cfg(test)]
mod response_tests;
mod runs;
mod sessions;
mod streaming;
mod upload;
mod usage;

pub use check::WorkDirs;
pub use hosts::{FleetControl, FleetHost, HostState};
pub use logins::LoginScope;
pub use openapi::document;
pub use profile::ClientProfile;

use agents::{AgentDirectory, LearnedAbilities};
use axum::Router;
use events::ListWatch;
use hub_client::HubClient;
use jackfield_agents::probe::AgentSurvey;
use jackfield_policy::ApprovalMode;
use jackfield_transport::HubDialer;
use runs::{RequestedApproval, RunRegistry};
use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use usage::UsageCache;

/// Renders the metrics on request; `None` while the daemon is stopping.
pub type MetricsRenderer =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// The configuration of the REST API.
#[derive(Clone)]
pub struct RestConfig {
    /// Connects to the hub.
    pub hub: HubDialer,
    /// Surveys this machine: the agents of the catalog and what is known about them.
    pub survey: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
    /// Agents that the configuration defines as commands, by name.
    pub commands: BTreeMap<String, Vec<String>>,
    /// The fleet, if sessions are placed on its hosts.
    pub fleet: Option<FleetControl>,
    /// The directories in which agents may work.
    pub dirs: WorkDirs,
    /// The clients that requests are expected from.
    pub profile: ClientProfile,
    /// How permission requests of runs are answered whose client does not choose; `None` for the default of the
    /// profile.
    pub approve: Option<ApprovalMode>,
    /// `None` for tenants: metrics cover all tenants.
    pub metrics: Option<MetricsRenderer>,
    /// The browsers that have logged in.
    pub login: LoginScope,
}

impl fmt::Debug for RestConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestConfig").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// The state that all routes share.
pub(crate) struct RestState {
    hub: HubClient,
    /// The changes of the lists, for all streams of them.
    lists: ListWatch,
    usage: UsageCache,
    fleet: Option<FleetControl>,
    agents: AgentDirectory,
    runs: RunRegistry,
    dirs: WorkDirs,
    profile: ClientProfile,
    approve: Option<ApprovalMode>,
    /// What the sessions of each agent have shown.
    learned: Mutex<BTreeMap<String, LearnedAbilities>>,
    metrics: Option<MetricsRenderer>,
    login: LoginScope,
}

impl RestState {
    /// How permission requests of a run are answered: as the client has chosen, as configured, or as the profile
    /// says.
    pub(crate) fn choose_approval(&self, requested: Option<RequestedApproval>) -> ApprovalMode {
        let chosen = requested.map(ApprovalMode::from).or(self.approve);
        chosen.unwrap_or_else(|| self.profile.default_approval())
    }

    pub(crate) fn learned(&self) -> MutexGuard<'_, BTreeMap<String, LearnedAbilities>> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All routes.
pub fn routes(config: &RestConfig) -> Router {
    let state = Arc::new(RestState {
        hub: HubClient::new(config.hub.clone()),
        lists: ListWatch::default(),
        usage: UsageCache::default(),
        fleet: config.fleet.clone(),
        agents: AgentDirectory::new(
            config.survey.clone(),
            config.commands.clone(),
            config.fleet.as_ref().map(FleetControl::hosted_agents),
        ),
        runs: RunRegistry::default(),
        dirs: config.dirs.clone(),
        profile: config.profile,
        approve: config.approve,
        learned: Mutex::default(),
        metrics: config.metrics.clone(),
        login: config.login.clone(),
    });
    let (routes, document) = openapi::routes_with_document();
    let document = Arc::new(document);
    routes
        .merge(openapi::document_route(document))
        .fallback(operations::not_found)
        .method_not_allowed_fallback(operations::not_allowed)
        .with_state(state)
}
