//! The queue of a session: lists, moves, withdraws and runs the prompts that wait.

use super::DoneResponse;
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{JsonBody, PathParams},
};
use axum::{Json, extract::State};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// The queue of a session.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct PromptQueue {
    /// In the order in which they run; the held ones come last.
    prompts: Vec<WaitingPrompt>,
}

/// A prompt that waits.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "prompt": 2, "by": "api", "at": "2026-11-15T08:30:00.123Z", "text": "And the tests", "held": false,
    "steers": false,
}))]
pub(crate) struct WaitingPrompt {
    /// The number of the prompt in the session.
    prompt: u64,
    /// The client that sent it.
    by: String,
    /// When it was queued.
    #[serde(rename(deserialize = "since"))]
    at: String,
    /// The first line of its text; `null` if it has none.
    text: Option<String>,
    /// The daemon stopped before it ran: it waits until a client runs it.
    held: bool,
    /// It has canceled the turn that was running, and runs before prompts that have not.
    #[serde(default)]
    #[schema(required)]
    steers: bool,
}

/// List the prompts that wait in a session
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/queue", tag = "queue",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the prompts, the next one first", body = PromptQueue),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_queue(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<PromptQueue>, ApiError> {
    let queue = state.hub.call_method(Method::ControlQueue, &json!({ "sessionId": id })).await?;
    Ok(Json(serde_json::from_value(queue).unwrap_or_default()))
}

/// Withdraw a prompt that waits
#[utoipa::path(
    delete, path = "/api/sessions/{sessionId}/queue/{prompt}", tag = "queue",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("prompt" = u64, Path, example = 2),
    ),
    responses(
        (status = 200, description = "the prompt will not run", body = DoneResponse),
        (status = 404, description = "the session does not exist, or the prompt does not wait", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn withdraw_prompt(
    State(state): State<Arc<RestState>>,
    PathParams((session, prompt)): PathParams<(String, u64)>,
) -> Result<Json<DoneResponse>, ApiError> {
    let params = json!({ "sessionId": session, "prompt": prompt });
    state.hub.call_method(Method::ControlWithdraw, &params).await?;
    Ok(Json(DoneResponse { ok: true }))
}

/// Run a held prompt
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/queue/{prompt}/run", tag = "queue",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("prompt" = u64, Path, example = 2),
    ),
    responses(
        (status = 200, description = "the prompt is queued or runs", body = DoneResponse),
        (status = 404, description = "the session does not exist, or the prompt is not held", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn run_prompt(
    State(state): State<Arc<RestState>>,
    PathParams((session, prompt)): PathParams<(String, u64)>,
) -> Result<Json<DoneResponse>, ApiError> {
    let params = json!({ "sessionId": session, "prompt": prompt });
    // The hub sends the events of the prompt's turn to this connection, so the shared one cannot be used.
    state.hub.connect().await?.call_method(Method::ControlRelease, &params).await?;
    Ok(Json(DoneResponse { ok: true }))
}

/// The new place of a prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "before": 1 }))]
pub(crate) struct QueuePlace {
    /// The prompt that it is placed before; `null` for the end of the queue.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    before: Option<u64>,
}

/// Move a prompt that waits
///
/// The order survives a restart. Held prompts are ordered among themselves.
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/queue/{prompt}/move", tag = "queue",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("prompt" = u64, Path, example = 2),
    ),
    request_body = QueuePlace,
    responses(
        (status = 200, description = "the prompt has its new place", body = DoneResponse),
        (status = 400, description = "one of the prompts is held and the other is not", body = ErrorBody),
        (status = 404, description = "the session does not exist, or one of the prompts does not wait", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn move_prompt(
    State(state): State<Arc<RestState>>,
    PathParams((session, prompt)): PathParams<(String, u64)>,
    JsonBody(place): JsonBody<QueuePlace>,
) -> Result<Json<DoneResponse>, ApiError> {
    let params = json!({ "sessionId": session, "prompt": prompt, "before": place.before });
    state.hub.call_method(Method::ControlMove, &params).await?;
    Ok(Json(DoneResponse { ok: true }))
}
