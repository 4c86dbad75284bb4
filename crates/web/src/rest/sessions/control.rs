//! Renames a session and cancels its running turn.

use super::{DoneResponse, session::find_session};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody, ErrorCode},
    extract::{JsonBody, PathParams},
};
use axum::{Json, extract::State};
use jackfield_protocol::acp::Method;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// A change of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "parser" }))]
pub(crate) struct SessionChange {
    /// The new name; `null` removes the name. No two sessions have the same one.
    // Without this attribute a missing member would remove the name.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, max_length = 64)]
    name: Option<String>,
}

/// Rename a session
#[utoipa::path(
    patch, path = "/api/sessions/{sessionId}", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    request_body = SessionChange,
    responses(
        (status = 200, description = "the session has the name", body = DoneResponse),
        (status = 400, description = "the name is not valid, or another session has it", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn rename_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<SessionChange>,
) -> Result<Json<DoneResponse>, ApiError> {
    let params = json!({ "sessionId": id, "name": body.name });
    state.hub.call_method(Method::ControlRename, &params).await?;
    Ok(Json(DoneResponse { ok: true }))
}

/// Cancel the running turn of a session and withdraw its queued prompts
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/cancel", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the turn is being canceled", body = DoneResponse),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 409, description = "no turn runs", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn cancel_turn(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<DoneResponse>, ApiError> {
    let session = find_session(&state.hub, &id).await?;
    if !may_have_turn(&session.state) {
        let why = format!("session `{id}` has no running turn");
        return Err(ApiError::new(ErrorCode::Conflict, why));
    }
    state.hub.cancel_turn(&id).await?;
    Ok(Json(DoneResponse { ok: true }))
}

/// Whether a session in this state can have a turn. `stalled` says nothing about turns.
fn may_have_turn(state: &str) -> bool {
    matches!(state, "working" | "asks" | "quiet" | "starting" | "waiting" | "stalled")
}
