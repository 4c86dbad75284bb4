//! The hub's sessions, and finding the one that is meant.

use super::{Conn, Until, Wait, storage_warning};
use crate::{
    out::{one_line, parse_rfc3339},
    report::Failure,
};
use jackfield_protocol::acp::Method;
use serde::Deserialize;
use serde_json::{Value, json};

/// One session, as the hub tells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) argv: Vec<String>,
    #[serde(default)]
    pub(crate) cwd: String,
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
    /// Why rules about what it may do are not heard, if they are not.
    pub(crate) unheard: Option<String>,
    /// Agents that were to have it and could not be had, each with the reason.
    #[serde(default)]
    pub(crate) fallback: Vec<Fallen>,
    /// What it waits for, in a sentence.
    pub(crate) doing: Option<String>,
    /// As it came, for programs.
    #[serde(skip)]
    pub(crate) raw: Value,
}

/// An agent that another is used instead of.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fallen {
    pub(crate) agent: String,
    pub(crate) why: String,
}

impl Row {
    /// Why its agent is not the one that was asked for, if it is not.
    pub(crate) fn instead(&self) -> Option<String> {
        let why =
            |it: &Fallen| format!("{} is used instead of {}: {}", self.agent, it.agent, it.why);
        self.fallback.first().map(why)
    }

    /// Whether an agent process belongs to it.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state.as_str(), "asleep" | "closed")
    }

    /// Milliseconds since the epoch of the last event.
    pub(crate) fn updated(&self) -> u64 {
        parse_rfc3339(&self.updated_at).unwrap_or(0)
    }

    /// For lists of candidates.
    fn told(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let line = format!("{}  {}  {}  {title}", self.session_id, self.agent, self.state);
        one_line(&line, 100)
    }
}

/// All sessions, the latest first.
pub(crate) fn sessions(conn: &mut Conn) -> Result<Vec<Row>, Failure> {
    let wait = Wait { what: "the list of sessions", until: Until::Hub };
    let mut answer = conn.call(Method::ControlSessions.name(), &json!({}), wait)?;
    if let Some(warning) = storage_warning(&answer["storage"]) {
        conn.warn(&warning);
    }
    let rows = answer.get_mut("sessions").map_or(Value::Null, Value::take);
    let rows = rows.as_array().cloned().unwrap_or_default().into_iter();
    let mut rows: Vec<Row> = rows
        .filter_map(|raw| Some(Row { raw: raw.clone(), ..serde_json::from_value(raw).ok()? }))
        .collect();
    rows.sort_by(|a, b| (b.updated(), &a.session_id).cmp(&(a.updated(), &b.session_id)));
    Ok(rows)
}

/// The session meant by an id, by a prefix of one (its tenant and `s-` may be left out), or by a title.
pub(crate) fn find(rows: &[Row], named: &str) -> Result<Row, Failure> {
    if let Some(row) = rows.iter().find(|it| it.session_id == named) {
        return Ok(row.clone());
    }
    let prefixes = |it: &&Row| {
        let id = it.session_id.as_str();
        let plain = id.rsplit_once('.').map_or(id, |(_, plain)| plain);
        let bare = plain.strip_prefix("s-").unwrap_or(plain);
        [id, plain, bare].into_iter().any(|it| it.starts_with(named))
    };
    let mut matches: Vec<&Row> = rows.iter().filter(prefixes).collect();
    if named.is_empty() || matches.is_empty() {
        matches = rows.iter().filter(|it| it.title.as_deref() == Some(named)).collect();
    }
    let named = named.to_owned();
    match matches[..] {
        [row] => Ok(row.clone()),
        [] => {
            let known = rows.iter().filter(|it| it.is_live()).map(Row::told).collect();
            Err(Failure::NoSession { named, known })
        }
        _ => {
            let known = matches.into_iter().map(Row::told).collect();
            Err(Failure::Ambiguous { named, known })
        }
    }
}

/// How many characters tell every id of `rows` from the others, and no fewer than look like an id.
pub(crate) fn unique_chars(rows: &[Row]) -> usize {
    const CHARS_MIN: usize = "s-7f3".len();
    let mut ids: Vec<&str> = rows.iter().map(|it| it.session_id.as_str()).collect();
    ids.sort_unstable();
    let shared = |pair: &[&str]| {
        pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count() + 1
    };
    let least = |id: &&str| id.find('.').map_or(0, |dot| dot + 1) + CHARS_MIN;
    let least = ids.iter().map(least).max().unwrap_or(CHARS_MIN);
    ids.windows(2).map(shared).max().unwrap_or(0).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |id: &str, title: &str| -> Row {
            let raw = json!({ "sessionId": id, "title": title, "state": "idle" });
            serde_json::from_value(raw).unwrap()
        };
        vec![row("s-abcd", "one"), row("s-abef", "two"), row("s-zz", "two")]
    }

    fn found(named: &str) -> String {
        match find(&rows(), named) {
            Ok(row) => row.session_id,
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_session_is_meant_by_id_prefix_or_title() {
        assert_eq!(found("s-abcd"), "s-abcd");
        assert_eq!(found("s-abe"), "s-abef");
        assert_eq!(found("z"), "s-zz");
        assert_eq!(found("one"), "s-abcd");
    }

    #[test]
    fn what_fits_none_or_many_is_said() {
        assert_eq!(found("s-q"), "no session matches `s-q`");
        assert_eq!(found("s-ab"), "`s-ab` matches 2 sessions");
        assert_eq!(found("two"), "`two` matches 2 sessions");
        assert_eq!(found(""), "no session matches ``");
    }

    #[test]
    fn ids_are_cut_to_what_tells_them_apart() {
        assert_eq!(unique_chars(&rows()), 5);
        let mut rows = rows();
        rows[1].session_id = "s-abcdef".into();
        assert_eq!(unique_chars(&rows), 7);
        assert_eq!(unique_chars(&[]), 5);
    }
}
