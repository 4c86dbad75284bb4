//! What operators ask: whether it lives, whether it can work, what it counts.

use crate::{
    Api,
    error::{ApiError, Code, ErrorBody},
};
use axum::{
    Json,
    extract::State,
    http::{Method, Uri, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use serde_json::json;
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

/// What the hub says of itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "ready": true, "version": "0.1.0", "sessions": 12, "agents": 2 }))]
pub(crate) struct Readiness {
    ready: bool,
    version: String,
    sessions: u64,
    /// Agent processes that are alive.
    agents: u64,
}

/// Whether requests can be served: the hub is dialled
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "it is ready", body = Readiness),
        (status = 503, description = "the hub does not answer, or is about to stop", body = ErrorBody),
    ),
)]
pub(crate) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Readiness>, ApiError> {
    let status = api.hub.talk().await?.call("_jackfield/status", &json!({})).await?;
    if status["stopping"] == true {
        return Err(ApiError::new(Code::UpstreamUnavailable, "the hub is stopping"));
    }
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    Ok(Json(Readiness {
        ready: true,
        version: status["version"].as_str().unwrap_or_default().to_owned(),
        sessions: count("sessions"),
        agents: count("agents"),
    }))
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
