//! The list of sessions: filtered, sorted and in pages.

use super::session::{SessionResource, list_all, list_latest};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::QueryParams,
};
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, fmt, sync::Arc};
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

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SortKey {
    /// The time of the last event.
    #[default]
    Updated,
    Opened,
    /// The name of a session, or else its title.
    Title,
    Agent,
    Cost,
}

/// The direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SortOrder {
    Asc,
    Desc,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// Only sessions in one of these states, separated by commas.
    #[param(example = "working,asks")]
    state: Option<String>,
    /// Only sessions of this agent.
    agent: Option<String>,
    /// Only sessions in this working directory.
    cwd: Option<String>,
    /// Only sessions with this text in their id, name, title, agent or directory; case does not matter.
    text: Option<String>,
    /// What the list is sorted by [default: updated].
    #[param(inline)]
    sort: Option<SortKey>,
    /// The direction [default: `asc` for texts, `desc` for times and costs].
    #[param(inline)]
    order: Option<SortOrder>,
    /// The maximum number of sessions [default: 100].
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `nextCursor` of the previous page of the same query.
    cursor: Option<String>,
}

impl SessionsQuery {
    /// Whether these are the sessions that changed last, in this order, without a filter.
    fn selects_the_latest(&self) -> bool {
        let filters = [&self.state, &self.agent, &self.cwd, &self.text];
        let is_by_change = self.sort.is_none_or(|it| it == SortKey::Updated);
        let is_descending = self.order.is_none_or(|it| it == SortOrder::Desc);
        is_by_change && is_descending && filters.into_iter().all(Option::is_none)
    }
}

/// List all sessions, the latest first, or as the query says
///
/// A session that changes while the pages are read is listed on the last pages, possibly for the second time. In a list
/// that is not sorted by `updated`, it may be missed.
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
    let sort = ListSort::new(query.sort.unwrap_or_default(), query.order);
    let invalid = || ApiError::invalid("`cursor` is invalid: omit it to start over");
    let cursor = query.cursor.as_deref().map(|it| ListCursor::parse(it).ok_or_else(invalid));
    let cursor = cursor.transpose()?;
    let mut sessions = if cursor.is_none() && query.selects_the_latest() {
        // One more shows whether there is a next page.
        list_latest(&state.hub, limit + 1).await?
    } else {
        list_all(&state.hub).await?
    };
    let filter = SessionFilter::new(&query);
    sessions.retain(|it| filter.matches(it));
    Ok(Json(build_page(sessions, sort, cursor.as_ref(), limit)))
}

/// Which sessions are listed.
struct SessionFilter<'a> {
    states: Option<Vec<&'a str>>,
    agent: Option<&'a str>,
    cwd: Option<&'a str>,
    text: Option<String>,
}

impl<'a> SessionFilter<'a> {
    fn new(query: &'a SessionsQuery) -> SessionFilter<'a> {
        let states = query.state.as_deref().filter(|it| !it.is_empty());
        SessionFilter {
            states: states.map(|it| it.split(',').map(str::trim).collect()),
            agent: query.agent.as_deref().filter(|it| !it.is_empty()),
            cwd: query.cwd.as_deref().filter(|it| !it.is_empty()),
            text: query.text.as_deref().filter(|it| !it.is_empty()).map(str::to_lowercase),
        }
    }

    fn matches(&self, row: &SessionResource) -> bool {
        let has_text = |text: &str| {
            let texts = [&*row.session_id, &*row.agent, &*row.cwd];
            let texts = texts.into_iter().chain(row.name.as_deref()).chain(row.title.as_deref());
            texts.map(str::to_lowercase).any(|it| it.contains(text))
        };
        self.states.as_ref().is_none_or(|it| it.contains(&&*row.state))
            && self.agent.is_none_or(|it| it == row.agent)
            && self.cwd.is_none_or(|it| it == row.cwd)
            && self.text.as_deref().is_none_or(has_text)
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListSort {
    key: SortKey,
    order: SortOrder,
}

impl ListSort {
    fn new(key: SortKey, order: Option<SortOrder>) -> ListSort {
        let default = match key {
            SortKey::Title | SortKey::Agent => SortOrder::Asc,
            SortKey::Updated | SortKey::Opened | SortKey::Cost => SortOrder::Desc,
        };
        ListSort { key, order: order.unwrap_or(default) }
    }

    /// A text that sorts like the key.
    fn key_of(self, row: &SessionResource) -> String {
        match self.key {
            SortKey::Updated => row.updated_at.clone(),
            SortKey::Opened => row.opened_at.clone(),
            SortKey::Agent => row.agent.clone(),
            SortKey::Title => {
                let title = row.name.as_deref().or(row.title.as_deref());
                title.unwrap_or_default().to_lowercase()
            }
            SortKey::Cost => {
                row.cost.as_ref().map(|it| format!("{:020.6}", it.amount)).unwrap_or_default()
            }
        }
    }

    /// The position of a session in the list whose first page was made at `listed_at`.
    fn position_of(self, row: &SessionResource, listed_at: &str) -> ListPosition {
        let id = row.session_id.clone();
        let is_by_change = self.key == SortKey::Updated && self.order == SortOrder::Desc;
        let is_changed = is_by_change && listed_at < &*row.updated_at;
        let key = if is_changed { String::new() } else { self.key_of(row) };
        ListPosition { is_changed, key, id }
    }

    fn compare(self, one: &ListPosition, other: &ListPosition) -> Ordering {
        let by_key = one.key.cmp(&other.key);
        let by_key = if self.order == SortOrder::Desc { by_key.reverse() } else { by_key };
        let by_change = one.is_changed.cmp(&other.is_changed);
        by_change.then(by_key).then_with(|| one.id.cmp(&other.id))
    }
}

/// The position of a session in the list.
#[derive(Debug, PartialEq, Eq)]
struct ListPosition {
    /// It changed since the first page, and comes after all that did not, by id.
    is_changed: bool,
    key: String,
    id: String,
}

/// How far a client has read the list.
#[derive(Debug, PartialEq, Eq)]
struct ListCursor {
    /// The latest change of any session when the first page was made.
    listed_at: String,
    /// The last session of the previous page.
    after: ListPosition,
}

impl ListCursor {
    fn parse(text: &str) -> Option<ListCursor> {
        let mut parts = text.split('~');
        let (listed_at, change, key, id) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_changed = match change {
            "c" => true,
            "u" => false,
            _ => return None,
        };
        let digits = key.as_bytes().chunks(2).map(|it| std::str::from_utf8(it).ok());
        let bytes =
            digits.map(|it| u8::from_str_radix(it?, 16).ok()).collect::<Option<Vec<u8>>>()?;
        let after =
            ListPosition { is_changed, key: String::from_utf8(bytes).ok()?, id: id.to_owned() };
        Some(ListCursor { listed_at: listed_at.to_owned(), after })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListPosition { is_changed, key, id } = &self.after;
        write!(f, "{}~{}~", self.listed_at, if *is_changed { "c" } else { "u" })?;
        key.bytes().try_for_each(|it| write!(f, "{it:02x}"))?;
        write!(f, "~{id}")
    }
}

/// Builds a page.
fn build_page(
    sessions: Vec<SessionResource>,
    sort: ListSort,
    cursor: Option<&ListCursor>,
    limit: usize,
) -> SessionList {
    let latest = || sessions.iter().map(|it| &it.updated_at).max().cloned().unwrap_or_default();
    let listed_at = cursor.map_or_else(latest, |it| it.listed_at.clone());
    let with_position = |it: SessionResource| (sort.position_of(&it, &listed_at), it);
    let mut rows: Vec<_> = sessions.into_iter().map(with_position).collect();
    rows.retain(|(it, _)| cursor.is_none_or(|cursor| sort.compare(&cursor.after, it).is_lt()));
    rows.sort_by(|(one, _), (other, _)| sort.compare(one, other));
    let has_more = limit < rows.len();
    rows.truncate(limit);
    let (mut positions, sessions): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let last = positions.pop().filter(|_| has_more);
    let next_cursor = last.map(|after| ListCursor { listed_at, after }.to_string());
    SessionList { sessions, next_cursor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const BY_CHANGE: ListSort = ListSort { key: SortKey::Updated, order: SortOrder::Desc };

    fn rows(updated: &[(&str, u32)]) -> Vec<SessionResource> {
        let row = |(id, at): &(&str, u32)| json!({ "sessionId": id, "updatedAt": format!("{at}") });
        updated.iter().map(|it| serde_json::from_value(row(it)).unwrap()).collect()
    }

    fn names(list: &SessionList) -> Vec<&str> {
        list.sessions.iter().map(|it| &*it.session_id).collect()
    }

    fn next_cursor(list: &SessionList) -> ListCursor {
        ListCursor::parse(list.next_cursor.as_deref().unwrap()).unwrap()
    }

    #[test]
    fn session_that_changes_between_pages_is_listed_last() {
        let all = rows(&[("s-1", 1), ("s-2", 2), ("s-3", 3), ("s-4", 4)]);
        let first = build_page(all, BY_CHANGE, None, 2);
        assert_eq!(names(&first), ["s-4", "s-3"]);
        let changed = [("s-1", 5), ("s-2", 2), ("s-3", 3), ("s-4", 6), ("s-5", 7)];
        let second = build_page(rows(&changed), BY_CHANGE, Some(&next_cursor(&first)), 2);
        assert_eq!(names(&second), ["s-2", "s-1"]);
        let third = build_page(rows(&changed), BY_CHANGE, Some(&next_cursor(&second)), 2);
        assert_eq!(names(&third), ["s-4", "s-5"]);
        assert_eq!(third.next_cursor, None);
    }

    fn various() -> Vec<SessionResource> {
        let rows: Vec<Value> = vec![
            json!({ "sessionId": "s-1", "agent": "codex", "title": "b~", "cwd": "/srv/One",
                    "state": "idle", "openedAt": "3", "cost": { "amount": 9.5, "currency": "USD" } }),
            json!({ "sessionId": "s-2", "agent": "claude", "name": "A", "title": "z", "cwd": "/srv",
                    "state": "asks", "openedAt": "1", "cost": { "amount": 10.0, "currency": "USD" } }),
            json!({ "sessionId": "s-3", "agent": "codex", "cwd": "/srv", "state": "working",
                    "openedAt": "2" }),
        ];
        rows.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect()
    }

    #[test]
    fn pages_of_every_order_have_all_sessions() {
        let expected = [
            (SortKey::Opened, None, ["s-1", "s-3", "s-2"]),
            (SortKey::Opened, Some(SortOrder::Asc), ["s-2", "s-3", "s-1"]),
            (SortKey::Title, None, ["s-3", "s-2", "s-1"]),
            (SortKey::Agent, None, ["s-2", "s-1", "s-3"]),
            (SortKey::Agent, Some(SortOrder::Desc), ["s-1", "s-3", "s-2"]),
            (SortKey::Cost, None, ["s-2", "s-1", "s-3"]),
            (SortKey::Updated, Some(SortOrder::Asc), ["s-1", "s-2", "s-3"]),
        ];
        for (key, order, expected) in expected {
            let sort = ListSort::new(key, order);
            let mut page = build_page(various(), sort, None, 1);
            let mut listed: Vec<String> = names(&page).into_iter().map(str::to_owned).collect();
            while page.next_cursor.is_some() {
                page = build_page(various(), sort, Some(&next_cursor(&page)), 1);
                listed.extend(names(&page).into_iter().map(str::to_owned));
            }
            assert_eq!(listed, expected, "{sort:?}");
        }
        for text in ["", "1~x~~s-1", "1~u~s-1", "1~u~zz~s-1", "1~u~ff~s-1"] {
            assert_eq!(ListCursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn filters_apply_together() {
        let matching = |query: SessionsQuery| -> Vec<String> {
            let filter = SessionFilter::new(&query);
            let rows = various().into_iter().filter(|it| filter.matches(it));
            rows.map(|it| it.session_id).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        let query = SessionsQuery::default;
        assert_eq!(matching(query()).len(), 3);
        assert_eq!(
            matching(SessionsQuery { state: some("asks, working"), ..query() }),
            ["s-2", "s-3"]
        );
        assert_eq!(matching(SessionsQuery { agent: some("codex"), ..query() }), ["s-1", "s-3"]);
        assert_eq!(matching(SessionsQuery { cwd: some("/srv"), ..query() }), ["s-2", "s-3"]);
        assert_eq!(matching(SessionsQuery { text: some("oNe"), ..query() }), ["s-1"]);
        assert_eq!(matching(SessionsQuery { text: some("S-2"), ..query() }), ["s-2"]);
        let both = SessionsQuery { text: some("codex"), cwd: some("/srv"), ..query() };
        assert_eq!(matching(both), ["s-3"]);
    }
}
