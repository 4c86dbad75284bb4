//! The route `/api/agents`.

use super::{AgentDescription, LearnedAbilities};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{QueryFlag, QueryParams},
    streaming::{self, ChunkWriter, KEEP_ALIVE_INTERVAL, ServerEvent},
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// All agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentDescription>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AgentsQuery {
    /// `1`: send an `agent` event for each agent as soon as it is fully known, then `done`.
    #[param(value_type = Option<QueryFlag>, inline)]
    stream: QueryFlag,
    /// `1`: probe all programs again for version, login and models.
    #[param(value_type = Option<QueryFlag>, inline)]
    probe: QueryFlag,
}

/// List the known agents, and which of them are installed
///
/// Programs whose version, login and models are not known yet are probed once, which takes up to five
/// seconds.
#[utoipa::path(
    get, path = "/api/agents", tag = "agents", params(AgentsQuery),
    responses(
        (status = 200, description = "the list; with `stream`, events instead", content(
            (AgentList = "application/json"), (ServerEvent = "text/event-stream"),
        )),
        (status = 400, description = "the query is invalid", body = ErrorBody),
    ),
)]
pub(crate) async fn list_agents(
    State(state): State<Arc<RestState>>,
    QueryParams(query): QueryParams<AgentsQuery>,
) -> Result<Response, ApiError> {
    let mut receiver = state.agents.list(query.probe.is_set()).await;
    if query.stream.is_set() {
        let (writer, chunks) = streaming::chunk_channel();
        let learned = state.learned().clone();
        tokio::spawn(stream_agents(receiver, learned, writer));
        return Ok(chunks.into_event_response());
    }
    let mut agents = Vec::new();
    while let Some(agent) = receiver.recv().await {
        let learned = state.learned().get(&agent.id).cloned();
        agents.push(agent.with_learned(learned.as_ref()));
    }
    // Available agents come first.
    agents.sort_by(|a, b| (!a.available, &a.id).cmp(&(!b.available, &b.id)));
    Ok(Json(AgentList { agents }).into_response())
}

async fn stream_agents(
    mut receiver: mpsc::Receiver<AgentDescription>,
    learned: BTreeMap<String, LearnedAbilities>,
    mut writer: ChunkWriter,
) -> Result<(), streaming::ReaderDisconnected> {
    let mut count = 0;
    loop {
        let Ok(next) = tokio::time::timeout(KEEP_ALIVE_INTERVAL, receiver.recv()).await else {
            writer.keep_alive().await?;
            continue;
        };
        count += 1;
        let id = count.to_string();
        let Some(agent) = next else {
            writer.write_event(Some(&id), Some("done"), &json!({}));
            return writer.flush().await;
        };
        let agent = {
            let learned = learned.get(&agent.id);
            agent.with_learned(learned)
        };
        writer.write_event(Some(&id), Some("agent"), &agent);
        writer.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test(start_paused = true)]
    async fn waiting_client_receives_keep_alive_comments() {
        let (sender, receiver) = mpsc::channel(1);
        let (writer, chunks) = streaming::chunk_channel();
        tokio::spawn(stream_agents(receiver, BTreeMap::new(), writer));
        tokio::spawn(async move {
            tokio::time::sleep(KEEP_ALIVE_INTERVAL * 2 + KEEP_ALIVE_INTERVAL / 2).await;
            drop(sender);
        });
        let body = to_bytes(chunks.into_event_response().into_body(), usize::MAX).await.unwrap();
        let alive = ": keepalive\n\n".repeat(2);
        assert_eq!(body, format!("{alive}id: 1\nevent: done\ndata: {{}}\n\n"));
    }
}
