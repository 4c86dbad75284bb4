//! One session as the hub lists it.

use crate::rest::{error::ApiError, hub_client::HubClient};
use jackfield_hub_client::{HubClientError, parse_session_list};
use jackfield_protocol::acp::Method;
use jackfield_views::UsageCost;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Reverse;
use utoipa::ToSchema;

/// A session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session, example = json!({
    "sessionId": "s-7f3abcdefghi", "agent": "codex", "argv": ["codex-acp"], "cwd": "/srv/project",
    "title": "fix the parser", "cost": { "amount": 0.42, "currency": "USD" }, "state": "idle", "turns": 2, "queued": 0, "asks": 0, "clients": 1,
    "pid": 4711, "events": 120, "openedAt": "2026-11-15T08:30:00.123Z",
    "updatedAt": "2026-11-15T08:31:10.456Z", "agentSession": "0192f0c1",
}))]
pub(crate) struct SessionResource {
    pub(crate) session_id: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) agent: String,
    /// The command of the agent; empty if only its name is known.
    #[serde(default)]
    #[schema(required)]
    pub(crate) argv: Vec<String>,
    /// The working directory.
    #[serde(default)]
    #[schema(required)]
    pub(crate) cwd: String,
    /// The name that a client gave the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    /// `working`, `asks`, `idle`, `asleep`, `closed`, …
    #[serde(default)]
    #[schema(required)]
    pub(crate) state: String,
    /// What the session waits for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
    #[serde(default)]
    #[schema(required)]
    pub(crate) turns: u64,
    /// The number of queued prompts.
    #[serde(default)]
    #[schema(required)]
    pub(crate) queued: u64,
    /// The number of open requests to the user.
    #[serde(default)]
    #[schema(required)]
    pub(crate) asks: u64,
    /// Since when a request waits for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waiting_since: Option<String>,
    /// What the session has cost, if its agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<UsageCost>,
    /// The host of the session in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    #[serde(default)]
    #[schema(required)]
    pub(crate) clients: u64,
    pub(crate) pid: Option<u64>,
    /// Why the policy cannot be enforced, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unheard: Option<String>,
    /// The profile of the sandbox that the agent runs in, if it runs in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<String>,
    /// The sequence number of the last event.
    #[serde(default)]
    #[schema(required)]
    pub(crate) events: u64,
    #[serde(default)]
    #[schema(required)]
    pub(crate) opened_at: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) updated_at: String,
    /// The agent's session id.
    #[serde(default)]
    #[schema(required)]
    pub(crate) agent_session: String,
}

impl SessionResource {
    /// The sort key of the list: the latest first, then by id.
    fn sort_key(&self) -> (Reverse<&str>, &str) {
        (Reverse(&self.updated_at), &self.session_id)
    }
}

/// Lists all sessions, the latest first.
pub(crate) async fn list_all(hub: &HubClient) -> Result<Vec<SessionResource>, HubClientError> {
    list_selected(hub, &json!({})).await
}

/// Lists at least the latest sessions, the latest first.
pub(crate) async fn list_latest(
    hub: &HubClient,
    limit: usize,
) -> Result<Vec<SessionResource>, HubClientError> {
    list_selected(hub, &json!({ "limit": limit })).await
}

/// A gateway may list other sessions, too, if it knows them without asking a host.
async fn list_selected(
    hub: &HubClient,
    params: &Value,
) -> Result<Vec<SessionResource>, HubClientError> {
    let response = hub.call_method(Method::ControlSessions, params).await?;
    let mut rows: Vec<SessionResource> = parse_session_list(response);
    rows.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    Ok(rows)
}

/// Finds the session with this id.
pub(crate) async fn find_session(hub: &HubClient, id: &str) -> Result<SessionResource, ApiError> {
    let rows = match list_selected(hub, &json!({ "sessionId": id })).await {
        // The hub refuses the id of another tenant, which must look like one that does not exist.
        Err(error) if error.error_name() == "session_not_found" => Vec::new(),
        rows => rows?,
    };
    rows.into_iter().find(|it| it.session_id == id).ok_or_else(|| session_not_found(id))
}

fn session_not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("no session `{id}`: GET /api/sessions lists all"))
}
