//! Sends requests to one incarnation of a host, and receives them there.

use crate::{
    connection::{FleetConnection, FleetConnectionError, REQUEST_TIMEOUT},
    host_entry::{HostEntry, HostInstance},
    host_messages::{HostRequest, HostResponse},
};
use async_nats::Subscriber;
use futures_util::{StreamExt as _, future::join_all};
use std::time::Duration;

/// A request that waits for its response.
#[derive(Debug)]
pub struct ReceivedRequest {
    pub request: HostRequest,
    connection: FleetConnection,
    reply_to: Option<async_nats::Subject>,
}

/// Receives the requests to one incarnation of a host.
pub struct RequestListener {
    connection: FleetConnection,
    subscriber: Subscriber,
}

impl FleetConnection {
    /// Subscribes to the requests to this incarnation of a host.
    pub async fn listen_for_requests(
        &self,
        host: &HostInstance,
    ) -> Result<RequestListener, FleetConnectionError> {
        let subject = self.request_subject(host, "*");
        let subscriber = self.client.subscribe(subject).await;
        let subscriber =
            subscriber.map_err(|it| FleetConnectionError::Unavailable(it.to_string()))?;
        Ok(RequestListener { connection: self.clone(), subscriber })
    }

    /// Sends a request to a host. Fails at once if the host has no subscription, so a dead host is
    /// distinguished from a slow one.
    pub async fn send_request(
        &self,
        host: &HostInstance,
        request: &HostRequest,
        timeout: Duration,
    ) -> Result<HostResponse, FleetConnectionError> {
        let body = serde_json::to_vec(request).expect("a request is plain data");
        let subject = self.request_subject(host, request.kind());
        let response = self.request_bytes(subject, body.into(), timeout).await?;
        serde_json::from_slice(&response)
            .map_err(|it| FleetConnectionError::Unavailable(it.to_string()))
    }

    /// Returns for each host whether it answers now. The list of hosts contains dead hosts for a
    /// while, which only a continuous observer can detect.
    pub async fn ping_hosts(&self, hosts: &[HostEntry]) -> Vec<bool> {
        let ping = async |it: &HostEntry| {
            self.send_request(&it.host, &HostRequest::Ping, REQUEST_TIMEOUT).await.is_ok()
        };
        join_all(hosts.iter().map(ping)).await
    }
}

impl RequestListener {
    /// The next request; `None` once the connection is closed. Requests that cannot be parsed are
    /// not answered.
    pub async fn next_request(&mut self) -> Option<ReceivedRequest> {
        loop {
            let message = self.subscriber.next().await?;
            let kind = message.subject.rsplit('.').next().unwrap_or_default();
            match serde_json::from_slice::<HostRequest>(&message.payload) {
                // The servers authorize requests by subject, so a request of another kind was not
                // authorized.
                Ok(request) if request.kind() != kind => {
                    let actual = request.kind();
                    tracing::warn!(
                        kind = actual,
                        subject = kind,
                        "refused request on wrong subject"
                    );
                }
                Ok(request) => {
                    let connection = self.connection.clone();
                    return Some(ReceivedRequest { request, connection, reply_to: message.reply });
                }
                Err(error) => tracing::warn!(%error, "failed to parse request to host"),
            }
        }
    }
}

impl ReceivedRequest {
    pub async fn respond(self, response: &HostResponse) {
        let body = serde_json::to_vec(response).expect("a response is plain data");
        if let Some(subject) = self.reply_to {
            // The sender times out if the response is lost.
            let _ = self.connection.client.publish(subject, body.into()).await;
        }
    }
}
