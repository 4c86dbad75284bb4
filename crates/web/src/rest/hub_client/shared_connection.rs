//! One connection for all short requests. A task owns the connection and receives the requests over a
//! channel.

use super::{HubClientError, HubConnection, HubMessage};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// Requests that wait to be sent; the hub accepts them without waiting.
const PENDING_MAX: usize = 64;
/// An idle connection is closed after this time: it would keep the daemon from suspending.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

type CallResult = Result<Value, HubClientError>;

#[derive(Debug)]
struct SharedRequest {
    method: String,
    params: Value,
    response: oneshot::Sender<CallResult>,
}

/// A handle to the connection.
#[derive(Debug, Clone)]
pub(super) struct SharedConnection {
    requests: mpsc::Sender<SharedRequest>,
}

impl SharedConnection {
    pub(super) fn new(connection: HubConnection) -> SharedConnection {
        let (requests, pending) = mpsc::channel(PENDING_MAX);
        tokio::spawn(run(connection, pending));
        SharedConnection { requests }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Sends a request and waits for its response; `None` if the connection was closed before it
    /// accepted the request.
    pub(super) async fn call(&self, method: &str, params: &Value) -> Option<CallResult> {
        let (response, received) = oneshot::channel();
        let request = SharedRequest { method: method.to_owned(), params: params.clone(), response };
        self.requests.send(request).await.ok()?;
        // Without a response it is unknown whether the hub handled the request: the caller decides
        // about a retry.
        Some(received.await.unwrap_or(Err(HubClientError::Closed)))
    }
}

/// Runs until the hub closes the connection or the connection is idle.
async fn run(mut connection: HubConnection, mut pending: mpsc::Receiver<SharedRequest>) {
    let (mut open, mut is_closed) = (BTreeMap::new(), false);
    while !(is_closed && open.is_empty()) {
        tokio::select! {
            request = pending.recv(), if !is_closed => match request {
                Some(SharedRequest { method, params, response }) => {
                    match connection.send_request(&method, &params).await {
                        Ok(id) => drop(open.insert(id, response)),
                        Err(error) => return drop(response.send(Err(error))),
                    }
                }
                None => is_closed = true,
            },
            message = connection.next_message() => match message {
                Ok(HubMessage::Response(id, result)) => {
                    if let Some(response) = open.remove(&id) {
                        // The caller may be gone.
                        let _sent = response.send(result.map_err(HubClientError::Refused));
                    }
                }
                Ok(HubMessage::Event(_) | HubMessage::Other) => {}
                Err(_) => return,
            },
            // Requests that are already in the channel are still sent.
            () = tokio::time::sleep(IDLE_TIMEOUT), if open.is_empty() => pending.close(),
        }
    }
}
