//! `/api/agents`.

use super::Agent;
use crate::rest::{
    Api,
    body::{Flag, Params},
    error::{ApiError, ErrorBody},
    sse::{self, KEEP_ALIVE, ServerEvent, Writer},
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// All agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<Agent>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AgentsQuery {
    /// `1`: an event `agent` for each as soon as all is known of it, then `done`.
    #[param(value_type = Option<Flag>, inline)]
    stream: Flag,
    /// `1`: ask all programs again for version, login and models, also those that have told.
    #[param(value_type = Option<Flag>, inline)]
    probe: Flag,
}

/// Which agents there are, and which of them are on this machine
///
/// Programs that have not told their version, login and models yet are asked; that takes up to five
/// seconds, once.
#[utoipa::path(
    get, path = "/api/agents", tag = "agents", params(AgentsQuery),
    responses(
        (status = 200, description = "the list; with `stream` events instead", content(
            (AgentList = "application/json"), (ServerEvent = "text/event-stream"),
        )),
        (status = 400, description = "a query that is none", body = ErrorBody),
    ),
)]
pub(crate) async fn list_agents(
    State(api): State<Arc<Api>>,
    Params(query): Params<AgentsQuery>,
) -> Result<Response, ApiError> {
    let mut told = api.agents.tell(query.probe.is_set()).await;
    if query.stream.is_set() {
        let (writer, chunks) = sse::channel();
        tokio::spawn(stream(told, writer));
        return Ok(chunks.events());
    }
    let mut agents = Vec::new();
    while let Some(agent) = told.recv().await {
        agents.push(agent);
    }
    // Those that can be used come first.
    agents.sort_by(|a, b| (!a.available, &a.id).cmp(&(!b.available, &b.id)));
    Ok(Json(AgentList { agents }).into_response())
}

async fn stream(mut told: mpsc::Receiver<Agent>, mut writer: Writer) -> Result<(), sse::Left> {
    let mut count = 0;
    loop {
        let Ok(next) = tokio::time::timeout(KEEP_ALIVE, told.recv()).await else {
            writer.keep_alive().await?;
            continue;
        };
        count += 1;
        let id = count.to_string();
        let Some(agent) = next else {
            writer.event(Some(&id), Some("done"), &json!({}));
            return writer.flush().await;
        };
        writer.event(Some(&id), Some("agent"), &agent);
        writer.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_waits_hears_that_we_are_there() {
        let (found, told) = mpsc::channel(1);
        let (writer, chunks) = sse::channel();
        tokio::spawn(stream(told, writer));
        tokio::spawn(async move {
            tokio::time::sleep(KEEP_ALIVE * 2 + KEEP_ALIVE / 2).await;
            drop(found);
        });
        let body = to_bytes(chunks.events().into_body(), usize::MAX).await.unwrap();
        let alive = ": keepalive\n\n".repeat(2);
        assert_eq!(body, format!("{alive}id: 1\nevent: done\ndata: {{}}\n\n"));
    }
}
