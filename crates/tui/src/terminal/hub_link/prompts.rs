//! Sends the prompts of one session in order. A prompt that may have been lost with its connection is sent again
//! under the same key, so that it runs once.

use super::{
    DaemonStart, UpdateSender,
    access::{HubAccess, LinkError, call_hub},
    agent_launch::prepare_agent_restart,
    retry::RetryDelay,
};
use crate::hub::{HubUpdate, PromptDelivery, RequestNumber, SessionRow};
use jackfield_hub_client::{HubConnection, HubMessage, attach_params};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How often a prompt is sent again after its connection was lost.
const ATTEMPTS_MAX: usize = 8;

/// A prompt that is to be sent.
#[derive(Debug)]
pub(super) struct OutgoingPrompt {
    pub(super) number: RequestNumber,
    /// Unique in all clients.
    pub(super) key: String,
    pub(super) blocks: Vec<Value>,
    pub(super) delivery: PromptDelivery,
    /// The row of the session when the prompt was written.
    pub(super) row: Option<SessionRow>,
}

/// Runs until the interface ends.
pub(super) async fn run_prompts(
    hub: HubAccess,
    session: String,
    mut prompts: mpsc::Receiver<OutgoingPrompt>,
    updates: UpdateSender,
) {
    while let Some(prompt) = prompts.recv().await {
        let result = send_prompt(&hub, &session, &prompt).await;
        let result = result.map_err(|it| it.describe());
        if updates.send(HubUpdate::Outcome { number: prompt.number, result }).await.is_err() {
            return;
        }
    }
}

/// Sends a prompt until it is in the log or was refused.
async fn send_prompt(
    hub: &HubAccess,
    session: &str,
    prompt: &OutgoingPrompt,
) -> Result<Value, LinkError> {
    let mut delay = RetryDelay::default();
    for _ in 1..ATTEMPTS_MAX {
        match try_prompt(hub, session, prompt).await {
            Err(error) if error.is_lost_connection() => delay.wait().await,
            result => return result,
        }
    }
    try_prompt(hub, session, prompt).await
}

async fn try_prompt(
    hub: &HubAccess,
    session: &str,
    prompt: &OutgoingPrompt,
) -> Result<Value, LinkError> {
    let mut connection = hub.connect(DaemonStart::Always).await?;
    if let Some(row) = &prompt.row {
        prepare_agent_restart(hub, &mut connection, row).await;
    }
    // As an observer it gets no requests of the agent: those are in the list of open requests.
    let attach = attach_params(session, i64::MAX.unsigned_abs());
    call_hub(&mut connection, Method::ControlAttach, &attach).await?;
    let mut meta = json!({ "key": prompt.key });
    if prompt.delivery == PromptDelivery::Steer {
        meta["steer"] = json!(true);
    }
    let params = json!({
        "sessionId": session,
        "prompt": prompt.blocks,
        "_meta": { "jackfield": meta },
    });
    let id = connection.send_request(Method::SessionPrompt, &params).await?;
    wait_accepted(&mut connection, id, &prompt.key).await
}

/// Waits until the prompt is in the log, or was answered.
async fn wait_accepted(
    connection: &mut HubConnection,
    id: u64,
    key: &str,
) -> Result<Value, LinkError> {
    loop {
        match connection.next_message().await? {
            HubMessage::Event(line) if line.contains(key) => return Ok(Value::Null),
            HubMessage::Response(response) if response.id == id => {
                return response.into_result().map_err(|it| LinkError::Client(it.into()));
            }
            HubMessage::Event(_) | HubMessage::Response(_) | HubMessage::Frame(_) => {}
        }
    }
}
