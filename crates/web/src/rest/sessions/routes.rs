//! Listing, showing, forking, closing and removing sessions.

use super::row::{self, Row};
use crate::rest::{
    Api,
    body::{Body, Flag, Named, Params},
    error::{ApiError, ErrorBody},
};
use axum::{Json, extract::State, http::StatusCode};
use jackfield_protocol::acp::Method;
use jackfield_views::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{cmp::Reverse, fmt, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// So many sessions a page has, unless somebody wants fewer or more.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1000;

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionList {
    sessions: Vec<Row>,
    /// Given back as `cursor`, it gets the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// So many at most [default: 100].
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// All sessions, the latest first
///
/// A session that is used while the pages are read comes on the last ones; if it had been listed before, it comes once
/// more.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", params(SessionsQuery),
    responses(
        (status = 200, description = "a page of sessions", body = SessionList),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn list_sessions(
    State(api): State<Arc<Api>>,
    Params(query): Params<SessionsQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("`limit` must be from 1 to {PAGE_MAX}")));
    }
    let wrong = || ApiError::invalid("`cursor` is none of ours: leave it out to start over");
    let cursor =
        query.cursor.as_deref().map(|it| ListCursor::parse(it).ok_or_else(wrong)).transpose()?;
    let sessions = row::all(&api.hub).await?;
    Ok(Json(page(sessions, cursor.as_ref(), limit)))
}

/// Those that were used since the first page come behind all others, so that none is missed.
fn page(mut sessions: Vec<Row>, cursor: Option<&ListCursor>, limit: usize) -> SessionList {
    let latest = || sessions.iter().map(|it| &it.updated_at).max().cloned().unwrap_or_default();
    let listed_at = cursor.map_or_else(latest, |it| it.listed_at.clone());
    sessions.retain(|it| cursor.is_none_or(|cursor| cursor.after < ListPlace::of(it, &listed_at)));
    sessions.sort_by_cached_key(|it| ListPlace::of(it, &listed_at));
    let more = limit < sessions.len();
    sessions.truncate(limit);
    let last = sessions.last().filter(|_| more).map(|it| ListPlace::of(it, &listed_at));
    let next_cursor = last.map(|after| ListCursor { listed_at, after }.to_string());
    SessionList { sessions, next_cursor }
}

/// How far a client has read the list.
struct ListCursor {
    /// The latest change of any session when the first page was made.
    listed_at: String,
    /// The last session of the page before.
    after: ListPlace,
}

/// A session's place in the list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ListPlace {
    /// The latest first, then by name.
    Unchanged(Reverse<String>, String),
    /// Used since the first page: by name.
    Changed(String),
}

impl ListPlace {
    fn of(row: &Row, listed_at: &str) -> ListPlace {
        let id = row.session_id.clone();
        if listed_at < &*row.updated_at {
            ListPlace::Changed(id)
        } else {
            ListPlace::Unchanged(Reverse(row.updated_at.clone()), id)
        }
    }
}

impl ListCursor {
    fn parse(text: &str) -> Option<ListCursor> {
        let (listed_at, place) = text.split_once('~')?;
        let after = match place.split_once('~')? {
            ("", id) => ListPlace::Changed(id.to_owned()),
            (at, id) => ListPlace::Unchanged(Reverse(at.to_owned()), id.to_owned()),
        };
        Some(ListCursor { listed_at: listed_at.to_owned(), after })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.after {
            ListPlace::Unchanged(at, id) => write!(f, "{}~{}~{id}", self.listed_at, at.0),
            ListPlace::Changed(id) => write!(f, "{}~~{id}", self.listed_at),
        }
    }
}

/// One session, and what its turns have used if that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionShown {
    #[serde(flatten)]
    session: Row,
    /// Tokens, time and cost of each turn, and their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowQuery {
    /// `1`: with what its turns have used; the whole log is read for it.
    #[param(value_type = Option<Flag>, inline)]
    usage: Flag,
}

/// One session
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi"), ShowQuery),
    responses(
        (status = 200, description = "the session", body = SessionShown),
        (status = 400, description = "a query that is none", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn show_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    Params(query): Params<ShowQuery>,
) -> Result<Json<SessionShown>, ApiError> {
    let session = row::one(&api.hub, &id).await?;
    let usage = if query.usage.is_set() { Some(usage(&api, &id).await?) } else { None };
    Ok(Json(SessionShown { session, usage }))
}

async fn usage(api: &Api, id: &str) -> Result<Value, ApiError> {
    let mut usage = Usage::default();
    // Events about usage are flat; one that nests too deep to be read is not about it.
    let fold = |fact: crate::rest::hub::Fact| fact.event().iter().for_each(|it| usage.fold(it));
    api.hub.log(id, 0).await?.read(fold).await?;
    let mut told = serde_json::to_value(&usage).unwrap_or_default();
    told["sum"] = serde_json::to_value(usage.sum()).unwrap_or_default();
    Ok(told)
}

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "ok": true }))]
pub(crate) struct Done {
    pub(crate) ok: bool,
}

/// End what the session does and its agent; its log stays, and a prompt wakes it
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/close", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "it is closed", body = Done),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn close_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
) -> Result<Json<Done>, ApiError> {
    api.hub.call(Method::SessionClose.name(), &json!({ "sessionId": id })).await?;
    Ok(Json(Done { ok: true }))
}

/// Remove a session with its log, for good
#[utoipa::path(
    delete, path = "/api/sessions/{sessionId}", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "it is gone", body = Done),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
) -> Result<Json<Done>, ApiError> {
    api.hub.call(Method::SessionDelete.name(), &json!({ "sessionId": id })).await?;
    api.runs.forget(&id);
    Ok(Json(Done { ok: true }))
}

/// Where a fork branches off.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({ "at": 120 }))]
pub(crate) struct ForkBody {
    /// The event after which it goes its own way [default: the last].
    #[schema(minimum = 1)]
    at: Option<u64>,
}

/// The new session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "sessionId": "s-91cabcdefghi" }))]
pub(crate) struct Forked {
    session_id: String,
}

/// Make a session that branches off this one: the same past, a future of its own
#[utoipa::path(
    post, path = "/api/sessions/{sessionId}/fork", tag = "sessions",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    request_body = ForkBody,
    responses(
        (status = 201, description = "the new session", body = Forked),
        (status = 400, description = "it has no such event", body = ErrorBody),
        (status = 404, description = "there is no such session", body = ErrorBody),
        (status = 413, description = "the body is too long", body = ErrorBody),
        (status = 415, description = "the body is no JSON", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn fork_session(
    State(api): State<Arc<Api>>,
    Named(id): Named<String>,
    Body(body): Body<ForkBody>,
) -> Result<(StatusCode, Json<Forked>), ApiError> {
    let session = row::one(&api.hub, &id).await?;
    let mut params = json!({ "sessionId": id, "cwd": session.cwd });
    if let Some(at) = body.at {
        params["_meta"] = json!({ "jackfield": { "seq": at } });
    }
    // Whoever forks hears the fork: not on the connection that everyone shares.
    let answer = api.hub.talk().await?.call(Method::SessionFork.name(), &params).await?;
    let session_id = answer["sessionId"].as_str().unwrap_or_default().to_owned();
    Ok((StatusCode::CREATED, Json(Forked { session_id })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(updated: &[(&str, u32)]) -> Vec<Row> {
        let row = |(id, at): &(&str, u32)| json!({ "sessionId": id, "updatedAt": format!("{at}") });
        updated.iter().map(|it| serde_json::from_value(row(it)).unwrap()).collect()
    }

    fn names(list: &SessionList) -> Vec<&str> {
        list.sessions.iter().map(|it| &*it.session_id).collect()
    }

    #[test]
    fn a_session_that_is_used_between_two_pages_is_listed_behind_the_others() {
        let first = page(rows(&[("s-1", 1), ("s-2", 2), ("s-3", 3), ("s-4", 4)]), None, 2);
        assert_eq!(names(&first), ["s-4", "s-3"]);
        let cursor = ListCursor::parse(&first.next_cursor.unwrap()).unwrap();
        let used = [("s-1", 5), ("s-2", 2), ("s-3", 3), ("s-4", 6), ("s-5", 7)];
        let second = page(rows(&used), Some(&cursor), 2);
        assert_eq!(names(&second), ["s-2", "s-1"]);
        let cursor = ListCursor::parse(&second.next_cursor.unwrap()).unwrap();
        let third = page(rows(&used), Some(&cursor), 2);
        assert_eq!(names(&third), ["s-4", "s-5"]);
        assert_eq!(third.next_cursor, None);
    }
}
