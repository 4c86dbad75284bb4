//! The routes `/api/hosts`: the hosts of a fleet.

use crate::rest::{
    RestState,
    agents::HostedAgents,
    error::{ApiError, ErrorBody, ErrorCode},
    extract::{JsonBody, PathParams},
};
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};
use utoipa::ToSchema;

/// A host of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Host, example = json!({
    "name": "build-7", "state": "online", "version": "0.1.0", "sessions": 12, "running": 3, "free": 5,
    "agents": ["codex"], "labels": { "arch": "arm64" },
}))]
pub struct FleetHost {
    pub name: String,
    pub state: HostState,
    pub version: String,
    /// The number of sessions that it owns.
    pub sessions: u32,
    /// The number of running agents.
    pub running: u32,
    /// The number of agents that it may still start; `null` if there is no limit.
    pub free: Option<u32>,
    /// The names of the agents that it can start.
    pub agents: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    Online,
    /// It accepts no new sessions and releases its own.
    Draining,
}

type DrainFuture = Pin<Box<dyn Future<Output = Result<u32, String>> + Send>>;

/// The fleet of a gateway.
#[derive(Clone)]
pub struct FleetControl {
    /// The live hosts.
    pub list_hosts: Arc<dyn Fn() -> Vec<FleetHost> + Send + Sync>,
    /// Sets whether a host drains, and returns the number of sessions that it still has. `None` for tenants.
    pub set_draining: Option<Arc<dyn Fn(String, bool) -> DrainFuture + Send + Sync>>,
}

impl FleetControl {
    /// Returns the names of the agents that the hosts can start.
    pub(crate) fn hosted_agents(&self) -> HostedAgents {
        let list_hosts = self.list_hosts.clone();
        Arc::new(move || list_hosts().into_iter().flat_map(|it| it.agents).collect())
    }
}

impl fmt::Debug for FleetControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FleetControl")
    }
}

/// The hosts of a fleet, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostList {
    hosts: Vec<FleetHost>,
}

/// List the hosts of the fleet; there are none without a fleet
#[utoipa::path(
    get, path = "/api/hosts", tag = "hosts",
    responses(
        (status = 200, description = "the live hosts", body = HostList),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_hosts(State(state): State<Arc<RestState>>) -> Json<HostList> {
    let mut hosts = state.fleet.as_ref().map(|it| (it.list_hosts)()).unwrap_or_default();
    hosts.sort_by(|one, other| one.name.cmp(&other.name));
    Json(HostList { hosts })
}

/// Whether a host drains.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "drain": true }))]
pub(crate) struct DrainBody {
    /// `false` lets the host accept sessions again [default: true].
    #[serde(default = "default_drain")]
    drain: bool,
}

fn default_drain() -> bool {
    true
}

/// The sessions that a host still has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DrainedHost {
    sessions: u32,
}

/// Drain a host, or let it accept sessions again; only the operator may
#[utoipa::path(
    post, path = "/api/hosts/{name}/drain", tag = "hosts",
    params(("name" = String, Path, example = "build-7")),
    request_body = DrainBody,
    responses(
        (status = 200, description = "how many sessions the host still has", body = DrainedHost),
        (status = 400, description = "the body is not valid", body = ErrorBody),
        (status = 403, description = "the client is a tenant", body = ErrorBody),
        (status = 404, description = "the host does not exist", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 503, description = "the host does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn drain_host(
    State(state): State<Arc<RestState>>,
    PathParams(name): PathParams<String>,
    JsonBody(body): JsonBody<DrainBody>,
) -> Result<Json<DrainedHost>, ApiError> {
    let missing = || ApiError::not_found(format!("no host `{name}`: GET /api/hosts lists all"));
    if state.hub.tenant_name().is_some() {
        return Err(ApiError::new(ErrorCode::Forbidden, "only the operator may drain hosts"));
    }
    let fleet = state.fleet.as_ref().ok_or_else(missing)?;
    let set_draining = fleet.set_draining.as_ref().ok_or_else(missing)?;
    if (fleet.list_hosts)().iter().all(|it| it.name != name) {
        return Err(missing());
    }
    let sessions = set_draining(name, body.drain).await;
    let sessions = sessions.map_err(|why| ApiError::new(ErrorCode::UpstreamUnavailable, why))?;
    Ok(Json(DrainedHost { sessions }))
}
