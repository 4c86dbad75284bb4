//! The turns of a session as spans of time.

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{LogNumber, PathParams, QueryParams},
};
use axum::{Json, extract::State};
use jackfield_hub_client::EventLine;
use jackfield_views::{TurnSpans, TurnSpansView};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The default number of turns, and the largest.
const TURNS: usize = 20;
const TURNS_MAX: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineQuery {
    /// Only turns before this one.
    #[param(value_type = Option<u64>)]
    before: Option<LogNumber>,
    /// The maximum number of turns [default: 20].
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// The last turns of a session, in order.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionTurns {
    turns: Vec<TurnSpans>,
    /// Whether there are earlier turns.
    has_before: bool,
}

/// Show the last turns of a session as spans: queue, model, thinking, text, tools, requests to the user
///
/// The whole log is read, and the session is not woken.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/timeline", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), TimelineQuery),
    responses(
        (status = 200, description = "the turns", body = SessionTurns),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn session_timeline(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<TimelineQuery>,
) -> Result<Json<SessionTurns>, ApiError> {
    let limit = query.limit.unwrap_or(TURNS);
    if !(1..=TURNS_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` must be from 1 to {TURNS_MAX}")));
    }
    let mut view = TurnSpansView::new(query.before.map(|it| it.0), limit);
    let fold = |line: EventLine| line.to_event().iter().for_each(|it| view.fold_event(it));
    state.hub.open_log(&id, 0).await?.read_existing(fold).await?;
    let (turns, has_before) = view.finish();
    Ok(Json(SessionTurns { turns, has_before }))
}
