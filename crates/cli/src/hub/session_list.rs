//! Lists the sessions of the hub and finds one by name, id, prefix of an id, title or directory.

use super::{CommandConnection, storage_warning};
use crate::{out::parse_rfc3339, plain_text::to_one_line, report::CommandError};
use jackfield_hub_client::parse_session_list;
use jackfield_protocol::acp::Method;
use jackfield_views::fallback::describe_fallback;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// One session in the response to `_jackfield/sessions`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRow {
    /// Empty while the agent starts for a client that has no session yet.
    #[serde(default)]
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) argv: Vec<String>,
    #[serde(default)]
    pub(crate) cwd: String,
    /// The name that a client gave the session.
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) turns: u64,
    #[serde(default)]
    pub(crate) queued: u64,
    #[serde(default)]
    pub(crate) asks: u64,
    #[serde(default)]
    pub(crate) clients: u64,
    pub(crate) pid: Option<u64>,
    #[serde(default)]
    pub(crate) events: u64,
    #[serde(default)]
    pub(crate) opened_at: String,
    #[serde(default)]
    pub(crate) updated_at: String,
    #[serde(default)]
    pub(crate) agent_session: String,
    /// Why the policy cannot be enforced, if it cannot.
    pub(crate) unheard: Option<String>,
    /// Agents and launch variants that were tried before, each with the reason why it is not used.
    #[serde(default)]
    pub(crate) fallback: Value,
    /// The sandbox profile; none if the agent runs without limits.
    pub(crate) sandbox: Option<String>,
    /// What the session waits for, in a sentence.
    pub(crate) doing: Option<String>,
    /// The unchanged JSON, for `--format json`.
    #[serde(skip)]
    pub(crate) raw: Value,
}

impl SessionRow {
    /// Why another agent or launch variant than the first one is used, if so.
    pub(crate) fn describe_fallback(&self) -> Option<String> {
        describe_fallback(&self.fallback).into_iter().next()
    }

    /// Whether the session has an agent process.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state.as_str(), "asleep" | "closed")
    }

    /// The time of the last event in milliseconds since the epoch.
    pub(crate) fn updated_at_ms(&self) -> u64 {
        parse_rfc3339(&self.updated_at).unwrap_or(0)
    }

    /// One line for a list of candidates.
    fn summary_line(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let line = format!("{}  {}  {}  {title}", self.session_id, self.agent, self.state);
        to_one_line(&line, 100)
    }
}

/// All sessions, the most recently updated first.
pub(crate) fn list_sessions(conn: &mut CommandConnection) -> Result<Vec<SessionRow>, CommandError> {
    Ok(list_sessions_and_starts(conn)?.0)
}

/// All sessions, and the agents that start for clients that have no session yet. Those have no session id.
pub(crate) fn list_sessions_and_starts(
    conn: &mut CommandConnection,
) -> Result<(Vec<SessionRow>, Vec<SessionRow>), CommandError> {
    let mut result = conn.call_hub(Method::ControlSessions, &json!({}), "the list of sessions")?;
    if let Some(warning) = storage_warning(&result["storage"]) {
        conn.print_warning(&warning);
    }
    let starting = json!({ "sessions": result["starting"].take() });
    Ok((parse_rows(result), parse_rows(starting)))
}

fn parse_rows(result: Value) -> Vec<SessionRow> {
    let rows = parse_session_list::<Value>(result).into_iter().filter_map(|raw| {
        Some(SessionRow { raw: raw.clone(), ..serde_json::from_value(raw).ok()? })
    });
    let mut rows: Vec<SessionRow> = rows.collect();
    rows.sort_by(|a, b| {
        (b.updated_at_ms(), &a.session_id).cmp(&(a.updated_at_ms(), &b.session_id))
    });
    rows
}

/// Finds a session by its id, its name, a unique prefix of the id (tenant and `s-` may be left out), or its title.
pub(crate) fn find_session(rows: &[SessionRow], named: &str) -> Result<SessionRow, CommandError> {
    if let Some(row) = rows.iter().find(|it| it.session_id == named) {
        return Ok(row.clone());
    }
    let has_name = |it: &&SessionRow| it.name.as_deref() == Some(named);
    let has_prefix = |it: &&SessionRow| {
        let id = it.session_id.as_str();
        let without_tenant = id.rsplit_once('.').map_or(id, |(_, rest)| rest);
        let bare = without_tenant.strip_prefix("s-").unwrap_or(without_tenant);
        [id, without_tenant, bare].into_iter().any(|it| it.starts_with(named))
    };
    let mut matches: Vec<&SessionRow> = rows.iter().filter(has_name).collect();
    if matches.is_empty() {
        matches = rows.iter().filter(has_prefix).collect();
    }
    if named.is_empty() || matches.is_empty() {
        matches = rows.iter().filter(|it| it.title.as_deref() == Some(named)).collect();
    }
    let named = named.to_owned();
    match matches[..] {
        [row] => Ok(row.clone()),
        [] => {
            let known =
                rows.iter().filter(|it| it.is_live()).map(SessionRow::summary_line).collect();
            Err(CommandError::NoSession { named, known })
        }
        _ => {
            let known = matches.into_iter().map(SessionRow::summary_line).collect();
            Err(CommandError::AmbiguousSession { named, known })
        }
    }
}

/// Gives a session a name, or removes it.
pub(crate) fn rename_session(
    conn: &mut CommandConnection,
    session: &str,
    name: Option<&str>,
) -> Result<(), CommandError> {
    let params = json!({ "sessionId": session, "name": name });
    conn.call_hub(Method::ControlRename, &params, "the daemon to rename the session").map(drop)
}

/// The most recently used session whose directory is `cwd`.
pub(crate) fn find_latest_session(
    rows: &[SessionRow],
    cwd: &Path,
) -> Result<SessionRow, CommandError> {
    let is_here = |it: &&SessionRow| is_same_directory(Path::new(&it.cwd), cwd);
    rows.iter()
        .find(is_here)
        .cloned()
        .ok_or_else(|| CommandError::NoSessionInDirectory { cwd: cwd.to_owned() })
}

/// Whether two paths name the same directory. The directory of a session can be gone.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    let resolve = |it: &Path| it.canonicalize().ok();
    one == other || resolve(one).is_some_and(|it| Some(it) == resolve(other))
}

/// How many characters make every id in `rows` unique, and at least as many as look like an id.
pub(crate) fn unique_prefix_length(rows: &[SessionRow]) -> usize {
    const CHARS_MIN: usize = "s-7f3".len();
    let mut ids: Vec<&str> = rows.iter().map(|it| it.session_id.as_str()).collect();
    ids.sort_unstable();
    let distinct_length = |pair: &[&str]| {
        pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count() + 1
    };
    let length_min = |id: &&str| id.find('.').map_or(0, |dot| dot + 1) + CHARS_MIN;
    let length_min = ids.iter().map(length_min).max().unwrap_or(CHARS_MIN);
    ids.windows(2).map(distinct_length).max().unwrap_or(0).max(length_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<SessionRow> {
        let row = |id: &str, title: &str| -> SessionRow {
            let raw = json!({ "sessionId": id, "title": title, "state": "idle" });
            serde_json::from_value(raw).unwrap()
        };
        vec![row("s-abcd", "one"), row("s-abef", "two"), row("s-zz", "two")]
    }

    fn find_in_rows(named: &str) -> String {
        match find_session(&rows(), named) {
            Ok(row) => row.session_id,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn session_is_found_by_id_prefix_or_title() {
        assert_eq!(find_in_rows("s-abcd"), "s-abcd");
        assert_eq!(find_in_rows("s-abe"), "s-abef");
        assert_eq!(find_in_rows("z"), "s-zz");
        assert_eq!(find_in_rows("one"), "s-abcd");
    }

    #[test]
    fn name_takes_precedence_over_a_prefix_and_a_title() {
        let mut rows = rows();
        rows[0].name = Some("zz".into());
        rows[1].name = Some("one".into());
        let find = |named: &str| find_session(&rows, named).unwrap().session_id;
        assert_eq!(
            (find("zz"), find("one"), find("s-zz")),
            ("s-abcd".into(), "s-abef".into(), "s-zz".into())
        );
    }

    #[test]
    fn latest_session_of_a_directory_is_the_first_in_the_list() {
        let mut rows = rows();
        rows[1].cwd = "/x".into();
        rows[2].cwd = "/x".into();
        let find = |cwd: &str| find_latest_session(&rows, Path::new(cwd)).map(|it| it.session_id);
        assert_eq!(find("/x").unwrap(), "s-abef");
        assert_eq!(find("/y").unwrap_err().to_string(), "no session in `/y`");
    }

    #[test]
    fn no_match_and_several_matches_are_errors() {
        assert_eq!(find_in_rows("s-q"), "no session matches `s-q`");
        assert_eq!(find_in_rows("s-ab"), "`s-ab` matches 2 sessions");
        assert_eq!(find_in_rows("two"), "`two` matches 2 sessions");
        assert_eq!(find_in_rows(""), "no session matches ``");
    }

    #[test]
    fn ids_are_shortened_to_a_unique_prefix() {
        assert_eq!(unique_prefix_length(&rows()), 5);
        let mut rows = rows();
        rows[1].session_id = "s-abcdef".into();
        assert_eq!(unique_prefix_length(&rows), 7);
        assert_eq!(unique_prefix_length(&[]), 5);
    }
}
