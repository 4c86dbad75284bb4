//! What operators ask: whether it lives, whether it can work, what it counts.

use crate::http::TokenPresented;
use crate::rest::{
    Api,
    error::{ApiError, Code, ErrorBody},
};
use axum::{
    Extension, Json,
    extract::State,
    http::{Method, Uri, header},
    response::{IntoResponse as _, Response},
};
use jackfield_protocol::acp;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// Whether the web front lives
#[utoipa::path(
    get, path = "/healthz", tag = "operations", security(()),
    responses((status = 200, description = "it lives", body = String, content_type = "text/plain")),
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the daemon can work. The version and the counts are for those who show the token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "ready": true, "version": "0.1.0", "sessions": 12, "agents": 2 }))]
pub(crate) struct Readiness {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// Agent processes that are alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<u64>,
}

/// Whether requests can be served: the hub is dialled
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "it is ready; without the token only `ready` is told", body = Readiness),
        (status = 503, description = "the hub does not answer, is about to stop, or cannot write its journal", body = ErrorBody),
    ),
)]
pub(crate) async fn readyz(
    State(api): State<Arc<Api>>,
    shown: Option<Extension<TokenPresented>>,
) -> Result<Json<Readiness>, ApiError> {
    let is_known = shown.is_some();
    let status = hub_status(&api).await.map_err(|error| {
        let why = "the daemon is not ready: try again, or ask with the token for the reason";
        if is_known { error } else { ApiError::new(Code::UpstreamUnavailable, why) }
    })?;
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    Ok(Json(Readiness {
        ready: true,
        version: is_known.then(|| status["version"].as_str().unwrap_or_default().to_owned()),
        sessions: is_known.then(|| count("sessions")),
        agents: is_known.then(|| count("agents")),
    }))
}

async fn hub_status(api: &Api) -> Result<Value, ApiError> {
    let status = api.hub.talk().await?.call(acp::Method::ControlStatus.name(), &json!({})).await?;
    if status["stopping"] == true {
        return Err(ApiError::new(Code::UpstreamUnavailable, "the hub is stopping"));
    }
    let storage = &status["storage"];
    if storage["ok"] == false {
        let text = |name: &str| storage[name].as_str().unwrap_or_default();
        let why = format!("the journal cannot be written: {}: {}", text("problem"), text("wayOut"));
        return Err(ApiError::new(Code::UpstreamUnavailable, why));
    }
    Ok(status)
}

/// What the daemon counts, as Prometheus reads it
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = 403, description = "the token is that of a tenant", body = ErrorBody),
        (status = 503, description = "the daemon is ending", body = ErrorBody),
    ),
)]
pub(crate) async fn metrics(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    let Some(metrics) = &api.metrics else {
        let why = "what the daemon counts is about everybody: whoever runs it can see it";
        return Err(ApiError::new(Code::Forbidden, why));
    };
    let Some(text) = metrics().await else {
        return Err(ApiError::new(Code::UpstreamUnavailable, "the daemon is ending"));
    };
    let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content)], text).into_response())
}

/// No route is called that.
pub(crate) async fn not_found(uri: Uri) -> ApiError {
    ApiError::not_found(format!("nothing is served at `{}`: see /openapi.json", uri.path()))
}

pub(crate) async fn not_allowed(method: Method, uri: Uri) -> ApiError {
    let what = format!("`{}` does not take {method}: see /openapi.json", uri.path());
    ApiError::new(Code::MethodNotAllowed, what)
}
