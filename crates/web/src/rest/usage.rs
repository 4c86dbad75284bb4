//! The route `/api/usage`: tokens and cost over all sessions, as far as agents report them.

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::QueryParams,
    sessions::{SessionResource, list_all},
};
use axum::{Json, extract::State};
use jackfield_hub_client::{HubClientError, LogEntry};
use jackfield_views::{SessionUsage, UsageGroup, UsageGrouping, UsageReport};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::Mutex;
use utoipa::{IntoParams, ToSchema};

/// Sessions whose usage is kept in memory, so that only their new events are read the next time.
const KEPT_SESSIONS_MAX: usize = 10_000;
const HOUR_MS: u64 = 3_600_000;

/// What the turns of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UsageGrouping)]
pub(crate) enum GroupingParam {
    /// In UTC.
    #[default]
    Day,
    Agent,
    Model,
    /// The working directory.
    Project,
}

impl From<GroupingParam> for UsageGrouping {
    fn from(grouping: GroupingParam) -> UsageGrouping {
        match grouping {
            GroupingParam::Day => UsageGrouping::Day,
            GroupingParam::Agent => UsageGrouping::Agent,
            GroupingParam::Model => UsageGrouping::Model,
            GroupingParam::Project => UsageGrouping::Project,
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageQuery {
    /// What the groups are [default: day].
    #[param(inline)]
    by: Option<GroupingParam>,
    /// Only turns of the last hours, days or weeks: `12h`, `30d`, `4w`.
    #[param(example = "30d")]
    since: Option<String>,
}

/// Tokens and cost by day, agent, model or project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageTable {
    by: GroupingParam,
    groups: Vec<NamedGroup>,
    sum: UsageGroup,
}

/// The turns of one day, agent, model or project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedGroup {
    /// The day (`2026-11-18`), agent, model or directory; `unknown` if it is not reported.
    name: String,
    #[serde(flatten)]
    group: UsageGroup,
}

/// The usage of sessions up to the event until which their logs were read.
#[derive(Debug, Default)]
pub(crate) struct UsageCache(Mutex<BTreeMap<String, KnownUsage>>);

#[derive(Debug, Default)]
struct KnownUsage {
    upto: u64,
    usage: SessionUsage,
}

/// Sum the tokens and cost that agents report, over all sessions
///
/// What an agent does not report is unknown, not zero: `known` is the number of turns with known tokens. The first
/// request reads the logs of all sessions of that time, later ones only new events.
#[utoipa::path(
    get, path = "/api/usage", tag = "sessions", params(UsageQuery),
    responses(
        (status = 200, description = "the groups by name, and their sum", body = UsageTable),
        (status = 400, description = "the query is invalid", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn show_usage(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<UsageQuery>,
) -> Result<Json<UsageTable>, ApiError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let since = match &query.since {
        Some(span) => now_ms.saturating_sub(parse_span(span)?),
        None => 0,
    };
    let by = query.by.unwrap_or_default();
    let mut report = UsageReport::new(by.into(), since);
    let rows = list_all(&state.hub).await?;
    let mut known = state.usage.0.lock().await;
    let listed: BTreeSet<&str> = rows.iter().map(|it| &*it.session_id).collect();
    known.retain(|id, _| listed.contains(&**id));
    let first = jackfield_protocol::rfc3339(since);
    for row in rows.iter().filter(|it| 0 < it.turns && *first <= *it.updated_at) {
        match read_usage(&state, &mut known, row).await {
            Ok(usage) => report.add_session(&row.agent, &row.cwd, usage),
            // It was deleted meanwhile.
            Err(error) if error.error_name() == "session_not_found" => {}
            Err(error) => return Err(error.into()),
        }
    }
    let groups = report.groups().iter();
    let groups =
        groups.map(|(name, group)| NamedGroup { name: name.clone(), group: group.clone() });
    Ok(Json(UsageTable { by, groups: groups.collect(), sum: report.sum().clone() }))
}

/// Folds the events of a session that were not read yet.
async fn read_usage<'a>(
    state: &RestState,
    known: &'a mut BTreeMap<String, KnownUsage>,
    row: &SessionResource,
) -> Result<&'a SessionUsage, HubClientError> {
    while KEPT_SESSIONS_MAX <= known.len() && !known.contains_key(&row.session_id) {
        known.pop_first();
    }
    let session = known.entry(row.session_id.clone()).or_default();
    if session.upto < row.events {
        let mut log = state.hub.open_log(&row.session_id, session.upto).await?;
        while let LogEntry::Event(line) = log.next_entry().await? {
            session.upto = line.seq;
            // Events with usage are flat: an event that nests too deep to be parsed has none.
            if let Some(event) = line.to_event() {
                session.usage.fold_event(&event);
            }
        }
    }
    Ok(&session.usage)
}

/// `12h`, `30d` or `4w` in milliseconds.
fn parse_span(text: &str) -> Result<u64, ApiError> {
    let unit_ms = match text.chars().last() {
        Some('h') => Some(HOUR_MS),
        Some('d') => Some(24 * HOUR_MS),
        Some('w') => Some(7 * 24 * HOUR_MS),
        _ => None,
    };
    let count = text.get(..text.len().saturating_sub(1)).and_then(|it| it.parse::<u64>().ok());
    let span = count.zip(unit_ms).and_then(|(count, unit)| count.checked_mul(unit));
    span.ok_or_else(|| {
        ApiError::invalid(format!("`since={text}` is not like `12h`, `30d` or `4w`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_is_a_number_of_hours_days_or_weeks() {
        assert_eq!(parse_span("12h").unwrap(), 12 * HOUR_MS);
        assert_eq!(parse_span("30d").unwrap(), 720 * HOUR_MS);
        assert_eq!(parse_span("2w").unwrap(), 336 * HOUR_MS);
        for text in ["", "d", "12", "-1d", "1.5d", "9999999999999999d", "1é"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }
}
