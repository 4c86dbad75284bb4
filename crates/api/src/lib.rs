//! REST and server-sent events in front of a daemon: an ACP client of it, and nothing more.
//!
//! Read in this order: [`Front`] is what it is told, `hub` is the daemon as its client sees it,
//! `error` is what a request is answered with that cannot be served, `sse` are answers that go on.
//! Then by route: `agents`, `sessions`, `asks`, `ops`; `openapi` describes them all.

#![expect(
    unused_qualifications,
    reason = "the descriptions of routes name our types by their whole path"
)]

mod agents;
mod asks;
mod body;
mod error;
mod hub;
mod openapi;
mod ops;
mod sessions;
mod sse;

pub use openapi::document;

use agents::Agents;
use axum::Router;
use hub::Hub;
use jackfield_agents::probe::Survey;
use jackfield_clients::Address;
use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

/// The page of metrics, made when somebody asks; nothing when the daemon is ending.
pub type Metrics =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// What the API is told when it starts.
#[derive(Clone)]
pub struct Front {
    /// The hub, which is dialled for every client.
    pub hub: Address,
    /// Looks at this machine: which agents the catalogue has, and what is known of them.
    pub survey: Arc<dyn Fn() -> Survey + Send + Sync>,
    /// Agents that are commands of the configuration, by name.
    pub commands: BTreeMap<String, Vec<String>>,
    pub metrics: Metrics,
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
    metrics: Metrics,
}

/// All routes.
pub fn routes(front: &Front) -> Router {
    let api = Arc::new(Api {
        hub: Hub::new(front.hub.clone()),
        agents: Agents::new(front.survey.clone(), front.commands.clone()),
        metrics: front.metrics.clone(),
    });
    let (routes, document) = openapi::routes().split_for_parts();
    let document = Arc::new(document);
    routes
        .merge(openapi::served(document))
        .fallback(ops::not_found)
        .method_not_allowed_fallback(ops::not_allowed)
        .with_state(api)
}
