//! Lists, shows, forks, closes and deletes sessions.

use super::session::{SessionResource, find_session, list_all};
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
use std::{cmp::Reverse, fmt, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The default number of sessions per page.
const PAGE_SIZE_DEFAULT: usize = 100;
const PAGE_SIZE_MAX: usize = 1000;

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionList {
    sessions: Vec<SessionResource>,
    /// The `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// The maximum number of sessions [default: 100].
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// List all sessions, the latest first
///
/// A session that changes while the pages are read is listed on the last pages, possibly for the second time.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", params(SessionsQuery),
    responses(
        (status = 200, description = "a page of sessions", body = SessionList),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_sessions(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<SessionsQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let limit = query.limit.unwrap_or(PAGE_SIZE_DEFAULT);
    if !(1..=PAGE_SIZE_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` must be from 1 to {PAGE_SIZE_MAX}")));
    }
    let invalid = || ApiError::invalid("`cursor` is invalid: omit it to start over");
    let cursor = query
        .cursor
        .as_deref()
        .map(|it| SessionListCursor::parse(it).ok_or_else(invalid))
        .transpose()?;
    let sessions = list_all(&state.hub).await?;
    Ok(Json(build_page(sessions, cursor.as_ref(), limit)))
}

/// Builds a page. Sessions that changed since the first page come last, so that none is missed.
fn build_page(
    mut sessions: Vec<SessionResource>,
    cursor: Option<&SessionListCursor>,
    limit: usize,
) -> SessionList {
    let latest = || sessions.iter().map(|it| &it.updated_at).max().cloned().unwrap_or_default();
    let listed_at = cursor.map_or_else(latest, |it| it.listed_at.clone());
    sessions
        .retain(|it| cursor.is_none_or(|cursor| cursor.after < ListPosition::new(it, &listed_at)));
    sessions.sort_by_cached_key(|it| ListPosition::new(it, &listed_at));
    let has_more = limit < sessions.len();
    sessions.truncate(limit);
    let last = sessions.last().filter(|_| has_more).map(|it| ListPosition::new(it, &listed_at));
    let next_cursor = last.map(|after| SessionListCursor { listed_at, after }.to_string());
    SessionList { sessions, next_cursor }
}

/// How far a client has read the list.
struct SessionListCursor {
    /// The latest change of any session when the first page was made.
    listed_at: String,
    /// The last session of the previous page.
    after: ListPosition,
}

/// The position of a session in the list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ListPosition {
    /// The latest first, then by id.
    Unchanged(Reverse<String>, String),
    /// Changed since the first page: by id.
    Changed(String),
}

impl ListPosition {
    fn new(row: &SessionResource, listed_at: &str) -> ListPosition {
        let id = row.session_id.clone();
        if listed_at < &*row.updated_at {
            ListPosition::Changed(id)
        } else {
            ListPosition::Unchanged(Reverse(row.updated_at.clone()), id)
        }
    }
}

impl SessionListCursor {
    fn parse(text: &str) -> Option<SessionListCursor> {
        let (listed_at, position) = text.split_once('~')?;
        let after = match position.split_once('~')? {
            ("", id) => ListPosition::Changed(id.to_owned()),
            (at, id) => ListPosition::Unchanged(Reverse(at.to_owned()), id.to_owned()),
        };
        Some(SessionListCursor { listed_at: listed_at.to_owned(), after })
    }
}

impl fmt::Display for SessionListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.after {
            ListPosition::Unchanged(at, id) => write!(f, "{}~{}~{id}", self.listed_at, at.0),
            ListPosition::Changed(id) => write!(f, "{}~~{id}", self.listed_at),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(updated: &[(&str, u32)]) -> Vec<SessionResource> {
        let row = |(id, at): &(&str, u32)| json!({ "sessionId": id, "updatedAt": format!("{at}") });
        updated.iter().map(|it| serde_json::from_value(row(it)).unwrap()).collect()
    }

    fn names(list: &SessionList) -> Vec<&str> {
        list.sessions.iter().map(|it| &*it.session_id).collect()
    }

    #[test]
    fn session_that_changes_between_pages_is_listed_last() {
        let first = build_page(rows(&[("s-1", 1), ("s-2", 2), ("s-3", 3), ("s-4", 4)]), None, 2);
        assert_eq!(names(&first), ["s-4", "s-3"]);
        let cursor = SessionListCursor::parse(&first.next_cursor.unwrap()).unwrap();
        let changed = [("s-1", 5), ("s-2", 2), ("s-3", 3), ("s-4", 6), ("s-5", 7)];
        let second = build_page(rows(&changed), Some(&cursor), 2);
        assert_eq!(names(&second), ["s-2", "s-1"]);
        let cursor = SessionListCursor::parse(&second.next_cursor.unwrap()).unwrap();
        let third = build_page(rows(&changed), Some(&cursor), 2);
        assert_eq!(names(&third), ["s-4", "s-5"]);
        assert_eq!(third.next_cursor, None);
    }
}
