//! One session as the hub tells it.

use crate::rest::{
    error::ApiError,
    hub::{Hub, Trouble},
};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Reverse;
use utoipa::ToSchema;

/// A session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session, example = json!({
    "sessionId": "s-7f3abcdefghi", "agent": "codex", "argv": ["codex-acp"], "cwd": "/srv/project",
    "title": "fix the parser", "state": "idle", "turns": 2, "queued": 0, "asks": 0, "clients": 1,
    "pid": 4711, "events": 120, "openedAt": "2026-11-15T08:30:00.123Z",
    "updatedAt": "2026-11-15T08:31:10.456Z", "agentSession": "0192f0c1",
}))]
pub(crate) struct Row {
    pub(crate) session_id: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) agent: String,
    /// The agent's command; empty if it is only known by name.
    #[serde(default)]
    #[schema(required)]
    pub(crate) argv: Vec<String>,
    /// The directory it works in.
    #[serde(default)]
    #[schema(required)]
    pub(crate) cwd: String,
    pub(crate) title: Option<String>,
    /// `working`, `asks`, `idle`, `asleep`, `closed`, …
    #[serde(default)]
    #[schema(required)]
    pub(crate) state: String,
    /// What it waits for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
    #[serde(default)]
    #[schema(required)]
    pub(crate) turns: u64,
    /// Prompts that wait.
    #[serde(default)]
    #[schema(required)]
    pub(crate) queued: u64,
    /// What its agent asks and nobody has answered.
    #[serde(default)]
    #[schema(required)]
    pub(crate) asks: u64,
    #[serde(default)]
    #[schema(required)]
    pub(crate) clients: u64,
    pub(crate) pid: Option<u64>,
    /// Why rules about what it may do are not heard, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unheard: Option<String>,
    /// The number of the last event of its log.
    #[serde(default)]
    #[schema(required)]
    pub(crate) events: u64,
    #[serde(default)]
    #[schema(required)]
    pub(crate) opened_at: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) updated_at: String,
    /// The agent's own name for it.
    #[serde(default)]
    #[schema(required)]
    pub(crate) agent_session: String,
}

impl Row {
    /// Its place in the list: the latest first, then by name.
    pub(crate) fn place(&self) -> (Reverse<&str>, &str) {
        (Reverse(&self.updated_at), &self.session_id)
    }
}

/// All sessions, the latest first.
pub(crate) async fn all(hub: &Hub) -> Result<Vec<Row>, Trouble> {
    let mut answer = hub.call(Method::ControlSessions.name(), &json!({})).await?;
    let rows = answer.get_mut("sessions").map_or(Value::Null, Value::take);
    let rows = if let Value::Array(rows) = rows { rows } else { Vec::new() };
    let mut rows: Vec<Row> =
        rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect();
    rows.sort_by(|a, b| a.place().cmp(&b.place()));
    Ok(rows)
}

/// The session of this id.
pub(crate) async fn one(hub: &Hub, id: &str) -> Result<Row, ApiError> {
    let rows = all(hub).await?;
    rows.into_iter().find(|it| it.session_id == id).ok_or_else(|| missing(id))
}

/// There is no such session.
pub(crate) fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("no session `{id}`: GET /api/sessions lists all"))
}
