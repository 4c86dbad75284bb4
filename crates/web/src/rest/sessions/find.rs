//! Finds a text in the whole log of a session.

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{LogNumber, PathParams, QueryParams},
};
use axum::{Json, extract::State};
use jackfield_events::EventKind;
use jackfield_hub_client::LogEntry;
use jackfield_views::{TextFinder, TextMatch};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The default number of matches, and the largest.
const MATCHES: usize = 100;
const MATCHES_MAX: usize = 1000;
/// The length of the text: longer than anybody types.
const TEXT_BYTES_MAX: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FindQuery {
    /// The text; case does not matter.
    text: String,
    /// The maximum number of matches [default: 100].
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only matches that begin before this event.
    #[param(value_type = Option<u64>)]
    before: Option<LogNumber>,
}

/// Matches in a session, the newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatchList {
    matches: Vec<TextMatch>,
    /// Whether there are earlier matches.
    has_more: bool,
}

/// Find a text in the prompts, messages, thoughts and tool calls of a session
///
/// A match may be split over several chunks of one message. The log is read from its beginning, and the session is not
/// woken.
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/find", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), FindQuery),
    responses(
        (status = 200, description = "the newest matches", body = MatchList),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn find_in_session(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<FindQuery>,
) -> Result<Json<MatchList>, ApiError> {
    let FindQuery { text, limit, before } = query;
    let limit = limit.unwrap_or(MATCHES);
    if !(1..=MATCHES_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` must be from 1 to {MATCHES_MAX}")));
    }
    if text.is_empty() || TEXT_BYTES_MAX < text.len() {
        return Err(ApiError::invalid(format!("`text` must have 1 to {TEXT_BYTES_MAX} bytes")));
    }
    let mut finder = TextFinder::new(&text, before.map(|it| it.0), limit);
    let mut log = state.hub.open_log(&id, 0).await?;
    while let LogEntry::Event(line) = log.next_entry().await? {
        if finder.is_complete_at(line.seq) {
            break;
        }
        if matches!(line.kind(), Some(EventKind::Said | EventKind::Prompted)) {
            finder.search_line(line.json());
        }
    }
    let (matches, has_more) = finder.finish();
    Ok(Json(MatchList { matches, has_more }))
}
