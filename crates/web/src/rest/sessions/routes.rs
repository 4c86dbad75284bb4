//! Shows, forks, closes and deletes sessions.

use super::session::{SessionResource, find_session};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{JsonBody, PathParams, QueryFlag, QueryParams},
};
use axum::{Json, extract::State, http::StatusCode};
use jackfield_hub_client::EventLine;
use jackfield_protocol::acp::Method;
use jackfield_views::SessionUsage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// One session, with its usage on request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionShown {
    #[serde(flatten)]
    session: SessionResource,
    /// Tokens, time and cost of each turn, and their total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowQuery {
    /// `1`: include the usage of its turns, which requires reading the whole log.
    #[param(value_type = Option<QueryFlag>, inline)]
    usage: QueryFlag,
}

/// Get one session
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), ShowQuery),
    responses(
        (status = 200, description = "the session", body = SessionShown),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn show_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ShowQuery>,
) -> Result<Json<SessionShown>, ApiError> {
    let session = find_session(&state.hub, &id).await?;
    let usage = if query.usage.is_set() { Some(read_usage(&state, &id).await?) } else { None };
    Ok(Json(SessionShown { session, usage }))
}

async fn read_usage(state: &RestState, id: &str) -> Result<Value, ApiError> {
    let mut usage = SessionUsage::default();
    // Events with usage are flat: an event that nests too deep to be parsed has none.
    let fold = |line: EventLine| line.to_event().iter().for_each(|it| usage.fold_event(it));
    state.hub.open_log(id, 0).await?.read_existing(fold).await?;
    let mut json = serde_json::to_value(&usage).unwrap_or_default();
    json["sum"] = serde_json::to_value(usage.total()).unwrap_or_default();
    Ok(json)
}

/// The response of an operation without a result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Done, example = json!({ "ok": true }))]
pub(crate) struct DoneResponse {
    pub(crate) ok: bool,
}

/// Close a session: cancel its work and stop its agent; a later prompt restores it
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/close", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the session is closed", body = DoneResponse),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn close_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<DoneResponse>, ApiError> {
    state.hub.call_method(Method::SessionClose, &json!({ "sessionId": id })).await?;
    Ok(Json(DoneResponse { ok: true }))
}

/// Delete a session with its log, permanently
#[utoipa::path(
    delete, path = "/api/sessions/{sessionId}", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the session is deleted", body = DoneResponse),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<DoneResponse>, ApiError> {
    state.hub.call_method(Method::SessionDelete, &json!({ "sessionId": id })).await?;
    state.runs.remove_session(&id);
    Ok(Json(DoneResponse { ok: true }))
}

/// Where the fork branches off.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(example = json!({ "at": 120 }))]
pub(crate) struct ForkBody {
    /// The last event that the fork shares with the session [default: the last].
    #[schema(minimum = 1)]
    at: Option<u64>,
}

/// The new session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Forked, example = json!({ "sessionId": "s-91cabcdefghi" }))]
pub(crate) struct ForkedSession {
    session_id: String,
}

/// Fork a session: create a session with a copy of its log
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/fork", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    request_body = ForkBody,
    responses(
        (status = 201, description = "the new session", body = ForkedSession),
        (status = 400, description = "the session has no such event", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn fork_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<ForkBody>,
) -> Result<(StatusCode, Json<ForkedSession>), ApiError> {
    let session = find_session(&state.hub, &id).await?;
    let mut params = json!({ "sessionId": id, "cwd": session.cwd });
    if let Some(at) = body.at {
        params["_meta"] = json!({ "jackfield": { "seq": at } });
    }
    // The hub attaches the connection to the fork, so the shared connection cannot be used.
    let response = state.hub.connect().await?.call_method(Method::SessionFork, &params).await?;
    let session_id = response["sessionId"].as_str().unwrap_or_default().to_owned();
    Ok((StatusCode::CREATED, Json(ForkedSession { session_id })))
}
