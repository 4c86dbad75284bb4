//! Opens connections to the hub.

use crate::hub::AgentOverview;
use jackfield_hub_client::{ClientProtocol, HubClientError, HubConnection};
use jackfield_protocol::acp::Method;
use jackfield_transport::BlockingSocket;
use serde_json::{Map, Value, json};
use std::{error::Error, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long the hub itself may take to reply. It never waits for an agent.
const REPLY_MAX: Duration = Duration::from_secs(10);

/// Whether a daemon may be started for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonStart {
    /// A daemon is started if none runs.
    Always,
    /// A daemon is started if the last one was killed; not if it was stopped.
    IfKilled,
}

/// The daemon of the user. The methods block.
pub trait DaemonAccess: Send + Sync {
    /// Connects to the daemon; `None` if none runs and none may be started. The error is a sentence.
    fn dial(&self, start: DaemonStart) -> Result<Option<BlockingSocket>, String>;

    /// The agents that can be started.
    fn list_agents(&self) -> AgentOverview;
}

/// Why a request or a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the daemon was stopped; the next action starts it again")]
    Stopped,
    #[error("{0}")]
    NotReached(String),
    #[error("{0}")]
    Unavailable(String),
    #[error(transparent)]
    Client(#[from] HubClientError),
}

impl LinkError {
    /// The error and its causes as one sentence.
    pub(super) fn describe(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(it) = cause {
            text = format!("{text}: {it}");
            cause = it.source();
        }
        text
    }

    pub(super) fn is_unknown_session(&self) -> bool {
        matches!(self, LinkError::Client(it) if it.error_name() == "session_not_found")
    }

    /// Whether the request may not have reached the hub, or the hub has ended.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(self, LinkError::Client(HubClientError::Closed))
    }
}

/// What is needed to open connections.
#[derive(Clone)]
pub(super) struct HubAccess {
    pub(super) daemon: Arc<dyn DaemonAccess>,
    /// The environment of the user, for agents that are started.
    pub(super) environment: Arc<Map<String, Value>>,
}

impl HubAccess {
    /// Opens a connection without `initialize`.
    pub(super) async fn dial(&self, start: DaemonStart) -> Result<HubConnection, LinkError> {
        let daemon = self.daemon.clone();
        let dialed = tokio::task::spawn_blocking(move || daemon.dial(start)).await;
        let dialed = dialed.map_err(|_| LinkError::Stopped)?;
        let socket = dialed.map_err(LinkError::NotReached)?.ok_or(LinkError::Stopped)?;
        let stream = socket.into_stream().map_err(HubClientError::from)?;
        Ok(HubConnection::new(stream))
    }

    /// Opens a connection and sends `initialize`; the hub itself replies.
    pub(super) async fn connect(&self, start: DaemonStart) -> Result<HubConnection, LinkError> {
        let mut connection = self.dial(start).await?;
        initialize(&mut connection).await?;
        Ok(connection)
    }
}

/// Sends `initialize`. The interface shows forms of agents.
pub(super) async fn initialize(connection: &mut HubConnection) -> Result<Value, LinkError> {
    let initialized = connection.initialize("tui", ClientProtocol::AcpWithForms);
    within(REPLY_MAX, initialized).await
}

/// Sends a request that the hub itself answers.
pub(super) async fn call_hub(
    connection: &mut HubConnection,
    method: Method,
    params: &Value,
) -> Result<Value, LinkError> {
    within(REPLY_MAX, connection.call_method(method, params)).await
}

/// Limits the time of a request.
pub(super) async fn within(
    limit: Duration,
    request: impl Future<Output = Result<Value, HubClientError>>,
) -> Result<Value, LinkError> {
    let replied = timeout(limit, request).await;
    Ok(replied.map_err(|_| HubClientError::NoReply)??)
}

/// One event of a session; `None` if it does not exist or nests too deep to be parsed.
pub(super) async fn read_event(
    connection: &mut HubConnection,
    session: &str,
    seq: Option<u64>,
) -> Result<Option<Value>, LinkError> {
    let Some(seq) = seq else { return Ok(None) };
    let params = json!({ "sessionId": session, "after": seq.saturating_sub(1), "limit": 1 });
    let page = call_hub(connection, Method::ControlReadLog, &params).await?;
    let event = page["lines"].as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
    Ok(event.filter(|it| it["seq"] == seq))
}
