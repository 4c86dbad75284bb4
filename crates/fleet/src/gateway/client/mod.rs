//! A client of the gateway, with everything that belongs to it alone: its host connections,
//! sessions and pending requests.
//!
//! This file answers requests and closes the client. Read then `from_client` and `from_host` (the
//! frames of both sides), `placement` (requests for which a host is chosen), `session_owner`
//! (requests for the owner of a session), `all_hosts` (requests that all hosts answer), `watch`
//! (changes on all hosts) and `unhosted` (sessions without an eligible host). The other files are the parts of a client; they
//! have their own state and do not know each other's.

mod all_hosts;
mod forwarded_requests;
mod from_client;
mod from_host;
mod handshake;
mod host_connection;
mod pending_requests;
mod placement;
mod relay_connections;
mod session;
mod session_owner;
mod sessions;
mod unhosted;
mod watch;

use super::{
    client_action::{ClientAction, ClientIdentity, is_audited},
    config::HostId,
    host_connection_id::HostConnectionId,
    output::{GatewayNote, GatewayOutput},
    parts::GatewayParts,
    tenant::TenantBinding,
};
use forwarded_requests::ForwardedRequests;
use handshake::ClientHandshake;
use host_connection::SentRequest;
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::{Fault, Frame};
use pending_requests::{PendingRequest, PendingRequests, RequestTarget};
use relay_connections::RelayConnections;
use sessions::ClientSessions;
use std::collections::VecDeque;
use watch::WatchState;

#[derive(Debug)]
pub(super) struct ClientConnection {
    conn: ConnId,
    tenant: TenantBinding,
    handshake: ClientHandshake,
    relay: RelayConnections,
    requests: PendingRequests,
    sessions: ClientSessions,
    forwarded: ForwardedRequests,
    /// Requests that wait for an eligible host, and since when.
    unplaced: VecDeque<(Box<str>, Time)>,
    /// It has closed its sending side.
    is_finished: bool,
    /// Number of messages that could not be routed.
    unrouted_count: u64,
    watch: WatchState,
}

impl ClientConnection {
    pub(super) fn new(conn: ConnId) -> ClientConnection {
        ClientConnection {
            conn,
            tenant: TenantBinding::default(),
            handshake: ClientHandshake::default(),
            relay: RelayConnections::new(conn),
            requests: PendingRequests::default(),
            sessions: ClientSessions::default(),
            forwarded: ForwardedRequests::default(),
            unplaced: VecDeque::new(),
            is_finished: false,
            unrouted_count: 0,
            watch: WatchState::default(),
        }
    }

    pub(super) fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn pending_count(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn unwritten_bytes(&self) -> usize {
        self.relay.all_unwritten()
    }

    pub(super) fn uses_session(&self, session: &SessionId) -> bool {
        self.sessions.contains(session)
    }

    pub(super) fn has_unplaced_requests(&self) -> bool {
        !self.unplaced.is_empty()
    }

    /// The host of a connection, and its incarnation when the connection was opened.
    pub(super) fn host_incarnation(
        &self,
        host_conn: HostConnectionId,
    ) -> Option<(&HostId, Option<u64>)> {
        self.relay.get(host_conn).map(|it| (it.host(), it.incarnation()))
    }

    /// The client has read this many bytes.
    pub(super) fn on_client_wrote(&mut self, parts: &mut GatewayParts, bytes: usize) {
        self.relay.subtract_unwritten(&mut parts.cx, bytes);
        let unwritten = self.relay.unwritten();
        parts.log_readings.resume_client(&mut parts.cx, self.conn, unwritten);
        self.relay.update_pause(&mut parts.cx);
    }

    /// The host has read this many bytes.
    pub(super) fn on_host_conn_wrote(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        bytes: usize,
    ) {
        self.relay.on_host_conn_wrote(&mut parts.cx, host_conn, bytes);
    }

    /// The client has closed its sending side: it still gets its responses, but cannot answer
    /// requests.
    pub(super) fn on_finished(&mut self, parts: &mut GatewayParts) {
        self.is_finished = true;
        self.forwarded.refuse_exclusive(&mut parts.cx, &mut self.relay);
        self.close_if_finished(parts);
    }

    /// Answers all requests and closes the client.
    pub(super) fn stop_client(&mut self, parts: &mut GatewayParts) {
        for id in self.requests.ids() {
            self.send_error(parts, &id, &Fault::Stopping);
        }
        self.close_client(parts);
    }

    /// Refuses a client that has just connected.
    pub(super) fn refuse_client(&mut self, parts: &mut GatewayParts, fault: &Fault) {
        self.send_own_frame(parts, &Frame::error_for("null", fault));
        self.close_client(parts);
    }

    pub(super) fn close_client(&mut self, parts: &mut GatewayParts) {
        if self.relay.close_client(&mut parts.cx) {
            self.release_resources(parts);
        }
    }

    /// Closes the host connections and ends everything that needs them.
    fn release_resources(&mut self, parts: &mut GatewayParts) {
        parts.log_readings.remove_client(self.conn);
        self.sessions.clear();
        self.forwarded.clear();
        self.unplaced.clear();
        self.relay.close_host_connections(&mut parts.cx, &mut parts.host_conn_owners);
    }

    /// The client has disconnected.
    pub(super) fn on_gone(mut self, parts: &mut GatewayParts) {
        parts.cx.count_client_closed();
        self.release_resources(parts);
        parts.merges.remove_client(self.conn);
        parts.placed.end_requests_of(self.conn);
        parts.retained.release_client(self.conn);
        parts.client_counts.remove_client(self.tenant.name());
    }

    /// Closes a client that has closed its sending side and has all its responses.
    fn close_if_finished(&mut self, parts: &mut GatewayParts) {
        if self.is_finished && self.requests.is_empty() {
            self.close_client(parts);
        }
    }

    /// Sends a frame that the gateway created.
    fn send_own_frame(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        self.relay.send_to_client(&mut parts.cx, frame.bytes().clone(), None);
    }

    /// Registers a request, which from now on gets exactly one response.
    fn register_request(&mut self, parts: &mut GatewayParts, frame: Frame, target: RequestTarget) {
        let Some(id) = frame.id().map(Box::<str>::from) else { return };
        parts.retained.retain_frame(self.conn, &frame);
        let request = PendingRequest::new(frame, target, parts.cx.next_id());
        self.requests.add_request(&id, request);
    }

    /// Sends the response to a request of the client.
    fn send_response(
        &mut self,
        parts: &mut GatewayParts,
        answer: &Frame,
        from: Option<HostConnectionId>,
    ) {
        let Some(id) = answer.id() else { return };
        let Some(request) = self.requests.remove_request(id) else { return };
        parts.retained.release_frame(self.conn, request.frame());
        self.handshake.release_id(id);
        if *request.target() == RequestTarget::NewSession {
            parts.placed.end_request(self.conn, id);
        }
        if is_audited(request.frame()) {
            let action = ClientAction::from_response(self.identity(), request.frame(), answer);
            parts.cx.push_output(GatewayOutput::ClientAction(action));
        }
        self.relay.send_to_client(&mut parts.cx, answer.bytes().clone(), from);
        if let RequestTarget::Session(session) = request.target() {
            self.sessions.remove_unused(session, &self.requests);
        }
        self.close_if_finished(parts);
    }

    fn send_error(&mut self, parts: &mut GatewayParts, id: &str, fault: &Fault) {
        parts.cx.count_refused();
        self.send_response(parts, &Frame::error_for(id, fault), None);
    }

    /// The client in the audit log.
    fn identity(&self) -> ClientIdentity {
        ClientIdentity {
            conn: self.conn,
            tenant: self.tenant.name().map(ToString::to_string),
            name: self.handshake.client_name(),
        }
    }

    /// Logged at powers of two, so that one client cannot fill the log.
    fn note_unrouted(&mut self, parts: &mut GatewayParts, frame: &Frame, fault: &Fault) {
        parts.cx.count_refused();
        self.unrouted_count += 1;
        if self.unrouted_count.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let (conn, reason) = (self.conn, fault.to_string());
            parts.cx.note(GatewayNote::Unrouted { conn, method, reason });
        }
    }

    /// The connection to this host; opens one if there is none.
    fn connect_to(&mut self, parts: &mut GatewayParts, host: &HostId) -> HostConnectionId {
        self.relay.connection_to(host).unwrap_or_else(|| {
            let incarnation = parts.hosts.incarnation_of(host);
            let owners = &mut parts.host_conn_owners;
            let binding = self.tenant.frame();
            self.relay.open_connection(&mut parts.cx, owners, host, incarnation, binding)
        })
    }

    /// Sends a pending request on this connection, for the first time or again.
    fn send_request(&mut self, parts: &mut GatewayParts, id: &str, host_conn: HostConnectionId) {
        let Some(request) = self.requests.get_mut(id) else { return };
        let sent = SentRequest::Client(id.into());
        let host_request_id =
            self.relay.send_request(&mut parts.cx, host_conn, sent, request.frame());
        request.set_sent(host_conn, host_request_id);
        if request.is_cancelled() {
            self.relay.cancel_request(&mut parts.cx, host_conn, host_request_id);
        }
    }
}
