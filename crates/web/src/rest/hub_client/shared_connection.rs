//! One connection for all short requests. A task owns the connection and receives the requests over a
//! channel.

use jackfield_hub_client::{HubClientError, HubConnection, HubMessage};
use jackfield_protocol::acp::Method;
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
    method: Method,
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
    pub(super) async fn call_method(&self, method: Method, params: &Value) -> Option<CallResult> {
        let (response, received) = oneshot::channel();
        let request = SharedRequest { method, params: params.clone(), response };
        self.requests.send(request).await.ok()?;
        // Without a response it is unknown whether the hub handled the request: the caller decides
        // about a retry.
        Some(received.await.unwrap_or(Err(HubClientError::Closed)))
    }
}

/// Runs until the hub closes the connection or the connection is idle.
async fn run(mut connection: HubConnection, mut pending: mpsc::Receiver<SharedRequest>) {
    let (mut callers, mut is_closed) = (BTreeMap::new(), false);
    while !(is_closed && callers.is_empty()) {
        tokio::select! {
            request = pending.recv(), if !is_closed => match request {
                Some(SharedRequest { method, params, response }) => {
                    match connection.send_request(method, &params).await {
                        Ok(id) => drop(callers.insert(id, response)),
                        Err(error) => return drop(response.send(Err(error))),
                    }
                }
                None => is_closed = true,
            },
            message = connection.next_message() => match message {
                Ok(HubMessage::Response(response)) => {
                    if let Some(caller) = callers.remove(&response.id) {
                        // The caller may be gone.
                        let _sent = caller.send(response.into_result().map_err(Into::into));
                    }
                }
                Ok(HubMessage::Frame(frame)) => {
                    // If this fails, the next message is an error, too.
                    let _refused = connection.refuse_request(&frame).await;
                }
                Ok(HubMessage::Event(_)) => {}
                Err(_) => return,
            },
            // Requests that are already in the channel are still sent.
            () = tokio::time::sleep(IDLE_TIMEOUT), if callers.is_empty() => pending.close(),
        }
    }
}
