//! Routes for operators: liveness, readiness, metrics.

use crate::http::TokenPresented;
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody, ErrorCode},
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

/// Check that the web server is alive
#[utoipa::path(
    get, path = "/healthz", tag = "operations", security(()),
    responses((status = 200, description = "the web server is alive", body = String, content_type = "text/plain")),
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the daemon can serve requests. The version and the counts require the token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "ready": true, "version": "0.1.0", "sessions": 12, "agents": 2 }))]
#[schema(as = Readiness)]
pub(crate) struct ReadinessStatus {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// The number of running agent processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<u64>,
}

/// Check that the daemon can serve requests
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "the daemon is ready; without the token the body has only `ready`", body = ReadinessStatus),
        (status = 503, description = "the hub does not reply, is stopping, or cannot write its journal", body = ErrorBody),
    ),
)]
pub(crate) async fn readyz(
    State(state): State<Arc<RestState>>,
    token: Option<Extension<TokenPresented>>,
) -> Result<Json<ReadinessStatus>, ApiError> {
    let is_authenticated = token.is_some();
    let status = hub_status(&state).await.map_err(|error| {
        let why = "the daemon is not ready: try again, or send the token to get the reason";
        if is_authenticated { error } else { ApiError::new(ErrorCode::UpstreamUnavailable, why) }
    })?;
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    Ok(Json(ReadinessStatus {
        ready: true,
        version: is_authenticated
            .then(|| status["version"].as_str().unwrap_or_default().to_owned()),
        sessions: is_authenticated.then(|| count("sessions")),
        agents: is_authenticated.then(|| count("agents")),
    }))
}

async fn hub_status(state: &RestState) -> Result<Value, ApiError> {
    let status =
        state.hub.connect().await?.call_method(acp::Method::ControlStatus, &json!({})).await?;
    if status["stopping"] == true {
        return Err(ApiError::new(ErrorCode::UpstreamUnavailable, "the hub is stopping"));
    }
    let storage = &status["storage"];
    if storage["ok"] == false {
        let text = |name: &str| storage[name].as_str().unwrap_or_default();
        let why = format!("failed to write the journal: {}: {}", text("problem"), text("wayOut"));
        return Err(ApiError::new(ErrorCode::UpstreamUnavailable, why));
    }
    Ok(status)
}

/// Get the metrics of the daemon in the Prometheus format
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = 403, description = "the token belongs to a tenant", body = ErrorBody),
        (status = 503, description = "the daemon is stopping", body = ErrorBody),
    ),
)]
pub(crate) async fn metrics(State(state): State<Arc<RestState>>) -> Result<Response, ApiError> {
    let Some(metrics) = &state.metrics else {
        let why = "metrics cover all tenants: use the operator's token";
        return Err(ApiError::new(ErrorCode::Forbidden, why));
    };
    let Some(text) = metrics().await else {
        return Err(ApiError::new(ErrorCode::UpstreamUnavailable, "the daemon is stopping"));
    };
    let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content)], text).into_response())
}

/// The response for an unknown path.
pub(crate) async fn not_found(uri: Uri) -> ApiError {
    ApiError::not_found(format!("no route at `{}`: see /openapi.json", uri.path()))
}

pub(crate) async fn not_allowed(method: Method, uri: Uri) -> ApiError {
    let message = format!("`{}` does not support {method}: see /openapi.json", uri.path());
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}
