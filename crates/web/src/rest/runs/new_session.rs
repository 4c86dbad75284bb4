//! The route that opens a session without a prompt, and the names that it can use.

use super::session_setup::prepare_session;
use crate::rest::{
    RestState,
    check::{NewSessionBody, plan_session},
    error::{ApiError, ErrorBody},
    extract::JsonBody,
    sessions::{SessionResource, find_session},
};
use axum::{Json, extract::State, http::StatusCode};
use jackfield_hub_client::HubConnection;
use jackfield_protocol::acp::Method;
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use utoipa::ToSchema;

/// Open a session without a prompt
///
/// The response is sent when the agent has started and opened the session. `/api/runs` opens a session with a prompt.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", request_body = NewSessionBody,
    responses(
        (status = 201, description = "the session", body = SessionResource),
        (status = 400, description = "the request is invalid", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 424, description = "the agent is not on this machine, or needs a login", body = ErrorBody),
        (status = 429, description = "a limit is reached", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn open_session(
    State(state): State<Arc<RestState>>,
    JsonBody(mut body): JsonBody<NewSessionBody>,
) -> Result<(StatusCode, Json<SessionResource>), ApiError> {
    let name = body.name.take();
    let plan = plan_session(&state, body).await?;
    let id = state.hub.new_session_id();
    let mut ready = prepare_session(&state, &plan, &id, |_| ()).await?;
    if let Some(name) = name {
        name_session(&mut ready.connection, &id, &name).await?;
    }
    Ok((StatusCode::CREATED, Json(find_session(&state.hub, &id).await?)))
}

/// Names a new session. If the name cannot be used, the session is deleted.
async fn name_session(
    connection: &mut HubConnection,
    session: &str,
    name: &str,
) -> Result<(), ApiError> {
    let params = json!({ "sessionId": session, "name": name });
    let named = connection.call_method(Method::ControlRename, &params).await;
    if named.is_err() {
        // If this fails, an empty session stays in the list.
        let session = json!({ "sessionId": session });
        let _deleted = connection.call_method(Method::SessionDelete, &session).await;
    }
    Ok(named.map(drop)?)
}

/// The configured MCP servers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "servers": ["github"] }))]
pub(crate) struct McpServerNames {
    /// Names that `mcpServers` of a new session or run can contain.
    servers: BTreeSet<String>,
}

/// List the configured MCP servers
#[utoipa::path(
    get, path = "/api/mcp-servers", tag = "sessions",
    responses(
        (status = 200, description = "their names", body = McpServerNames),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_mcp_servers(
    State(state): State<Arc<RestState>>,
) -> Result<Json<McpServerNames>, ApiError> {
    let servers = list_configured(&state, "mcpServers").await?;
    Ok(Json(McpServerNames { servers }))
}

/// The sandbox profiles.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "profiles": ["open", "read-only", "workspace"] }))]
pub(crate) struct SandboxProfileNames {
    /// Names that `sandbox` of a new session or run can be.
    profiles: BTreeSet<String>,
}

/// List the sandbox profiles
#[utoipa::path(
    get, path = "/api/sandbox-profiles", tag = "sessions",
    responses(
        (status = 200, description = "their names", body = SandboxProfileNames),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_sandbox_profiles(
    State(state): State<Arc<RestState>>,
) -> Result<Json<SandboxProfileNames>, ApiError> {
    let profiles = list_configured(&state, "sandboxProfiles").await?;
    Ok(Json(SandboxProfileNames { profiles }))
}

/// The names in a list of the hub's status. In a fleet each host has its own.
async fn list_configured(state: &RestState, name: &str) -> Result<BTreeSet<String>, ApiError> {
    let status = state.hub.call_method(Method::ControlStatus, &json!({})).await?;
    let hosts = status["hosts"].as_array().into_iter().flatten();
    let lists = hosts.chain([&status]).filter_map(|it| it[name].as_array());
    Ok(lists.flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}
