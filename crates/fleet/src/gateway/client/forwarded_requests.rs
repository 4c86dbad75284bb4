//! Requests from hosts to a client. Two hosts may use the same id, so clients see ids of the
//! gateway.

use super::relay_connections::RelayConnections;
use crate::gateway::{
    context::GatewayContext, frame_fields::session_of, host_connection_id::HostConnectionId,
};
use jackfield_hub::{SessionId, cancel_notice};
use jackfield_protocol::{
    Fault, Frame,
    acp::{Audience, Method},
    is_planted,
};
use std::collections::BTreeMap;

/// Requests from hosts that the client has not answered, by the gateway's id.
#[derive(Debug, Default)]
pub(super) struct ForwardedRequests {
    by_id: BTreeMap<u64, ForwardedRequest>,
    last_id: u64,
}

/// A request from a host that a client has not answered.
#[derive(Debug)]
pub(super) struct ForwardedRequest {
    host_conn: HostConnectionId,
    /// The host's id of the request, as JSON text.
    id: Box<str>,
    session: Option<SessionId>,
    method: Box<str>,
    /// The request was sent to this client only.
    is_exclusive: bool,
}

impl ForwardedRequests {
    /// Adds a request and returns the id under which the client gets it.
    pub(super) fn add_request(&mut self, request: ForwardedRequest) -> u64 {
        self.last_id += 1;
        let keeps_host_id = is_planted("gateway-keeps-host-request-id");
        let client_request_id =
            if keeps_host_id { request.id.parse().unwrap_or_default() } else { self.last_id };
        self.by_id.insert(client_request_id, request);
        client_request_id
    }

    /// Removes the request that a response of the client answers.
    pub(super) fn take_answered(&mut self, answer: &Frame) -> Option<ForwardedRequest> {
        let client_request_id = answer.id()?.parse::<u64>().ok()?;
        self.by_id.remove(&client_request_id)
    }

    pub(super) fn clear(&mut self) {
        self.by_id.clear();
    }

    /// A host cancels its request.
    pub(super) fn cancel_by_host(
        &mut self,
        cx: &mut GatewayContext,
        relay: &mut RelayConnections,
        host_conn: HostConnectionId,
        id: &str,
    ) {
        self.cancel(cx, relay, |it| it.host_conn == host_conn && *it.id == *id);
    }

    /// The connection is lost.
    pub(super) fn cancel_of_connection(
        &mut self,
        cx: &mut GatewayContext,
        relay: &mut RelayConnections,
        host_conn: HostConnectionId,
    ) {
        self.cancel(cx, relay, |it| it.host_conn == host_conn);
    }

    /// The session is no longer served by this connection.
    pub(super) fn cancel_of_session(
        &mut self,
        cx: &mut GatewayContext,
        relay: &mut RelayConnections,
        host_conn: HostConnectionId,
        session: &SessionId,
    ) {
        self.cancel(cx, relay, |it| {
            it.host_conn == host_conn && it.session.as_ref() == Some(session)
        });
    }

    /// Cancels these requests at the client.
    fn cancel(
        &mut self,
        cx: &mut GatewayContext,
        relay: &mut RelayConnections,
        is_cancelled: impl Fn(&ForwardedRequest) -> bool,
    ) {
        for (client_request_id, request) in self.by_id.extract_if(.., |_, it| is_cancelled(it)) {
            let notice = cancel_notice(client_request_id);
            relay.send_to_client(cx, notice, Some(request.host_conn));
        }
    }

    /// The client can no longer answer: refuses the requests that were sent to this client only.
    pub(super) fn refuse_exclusive(
        &mut self,
        cx: &mut GatewayContext,
        relay: &mut RelayConnections,
    ) {
        let requests = std::mem::take(&mut self.by_id);
        for request in requests.into_values().filter(|it| it.is_exclusive) {
            request.send_refusal(cx, relay);
        }
    }
}

impl ForwardedRequest {
    /// `None` if the frame is not a request.
    pub(super) fn parse(host_conn: HostConnectionId, frame: &Frame) -> Option<ForwardedRequest> {
        let method = frame.method()?;
        let is_for_everyone =
            Method::from_name(&method).is_some_and(|it| it.row().audience == Audience::Everyone);
        Some(ForwardedRequest {
            host_conn,
            id: frame.id()?.into(),
            session: session_of(frame),
            method: (&*method).into(),
            is_exclusive: !is_for_everyone,
        })
    }

    pub(super) fn host_conn(&self) -> HostConnectionId {
        self.host_conn
    }

    pub(super) fn host_request_id(&self) -> &str {
        &self.id
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// Answers the host instead of the client.
    pub(super) fn send_refusal(&self, cx: &mut GatewayContext, relay: &mut RelayConnections) {
        let fault =
            Fault::NoClient { why: "the client disconnected before it answered".to_owned() };
        let answer = Frame::error_for(&self.id, &fault);
        relay.send_to_host(cx, self.host_conn, answer.into_bytes());
    }
}
