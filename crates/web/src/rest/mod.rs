//! REST and server-sent events in front of a daemon: an ACP client of it, and nothing more.
//!
//! Read in this order: [`Front`] is what it is told, `hub` is the daemon as its client sees it,
//! `error` is what a request is answered with that cannot be served, `sse` and `stream` are answers
//! that go on. Then by route: `agents`, `sessions`, `asks`, `runs` (what they are made of is held
//! against what is there by `check`, and put together by `compose`), `ops`; `openapi` describes them
//! all.

mod agents;
#[cfg(test)]
mod answers;
mod asks;
mod body;
mod check;
mod compose;
mod error;
mod hub;
mod openapi;
mod ops;
mod runs;
mod sessions;
mod sse;
mod stream;

pub use agents::Hosted;
pub use check::Dirs;
pub use openapi::document;

use agents::Agents;
use axum::Router;
use hub::Hub;
use jackfield_agents::probe::AgentSurvey;
use jackfield_transport::HubDialer;
use runs::Runs;
use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The page of metrics, made when somebody asks; nothing when the daemon is ending.
pub type Metrics =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// What the API is told when it starts.
#[derive(Clone)]
pub struct Front {
    /// The hub, which is dialled for every client.
    pub hub: HubDialer,
    /// Looks at this machine: which agents the catalogue has, and what is known of them.
    pub survey: Arc<dyn Fn() -> AgentSurvey + Send + Sync>,
    /// Agents that are commands of the configuration, by name.
    pub commands: BTreeMap<String, Vec<String>>,
    /// If sessions are placed on the hosts of a fleet: which agents these have.
    pub hosted: Option<Hosted>,
    /// Where agents may be put to work.
    pub dirs: Dirs,
    /// None for those who are not to see how others fare.
    pub metrics: Option<Metrics>,
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("hub", &self.hub).finish_non_exhaustive()
    }
}

/// What all routes share.
pub(crate) struct Api {
    hub: Hub,
    agents: Agents,
    runs: Runs,
    dirs: Dirs,
    /// Which agents have said that they can look at pictures, or cannot.
    sight: Mutex<BTreeMap<String, bool>>,
    metrics: Option<Metrics>,
}

impl Api {
    pub(crate) fn sight(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All routes.
pub fn routes(front: &Front) -> Router {
    let api = Arc::new(Api {
        hub: Hub::new(front.hub.clone()),
        agents: Agents::new(front.survey.clone(), front.commands.clone(), front.hosted.clone()),
        runs: Runs::default(),
        dirs: front.dirs.clone(),
        sight: Mutex::default(),
        metrics: front.metrics.clone(),
    });
    let (routes, document) = openapi::described();
    let document = Arc::new(document);
    routes
        .merge(openapi::served(document))
        .fallback(ops::not_found)
        .method_not_allowed_fallback(ops::not_allowed)
        .with_state(api)
}
