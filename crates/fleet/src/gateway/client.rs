//! Frames from clients, and the cleanup when a client disconnects.

use super::{
    Gateway, GatewayNote, GatewayOutput, HostConnectionId, HostId, config::RETAINED_BYTES_MIN,
    forwarded_request::ForwardedRequest, handshake::Handshake, merge::MergedRequest,
    session::ClientSession,
};
use jackfield_hub::{ConnId, SessionId, Tenant, Time};
use jackfield_protocol::{
    Fault, Frame, Kind,
    acp::{GatewayRoute, Method},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Debug, Default)]
pub(super) struct Client {
    /// The tenant, and the frame that binds each host connection to it; `None` is the operator.
    pub(super) tenant: Option<(Arc<Tenant>, Frame)>,
    /// Requests of the client without a response, by the client's id.
    pub(super) requests: BTreeMap<Box<str>, PendingRequest>,
    pub(super) sessions: BTreeMap<SessionId, ClientSession>,
    /// One connection per host.
    pub(super) host_conns: BTreeMap<HostId, HostConnectionId>,
    /// Receives messages that concern no session.
    pub(super) default_host_conn: Option<HostConnectionId>,
    pub(super) handshake: Handshake,
    /// Requests that wait for an eligible host, and since when.
    pub(super) unplaced: VecDeque<(Box<str>, Time)>,
    /// Requests from hosts that the client has not answered, by the gateway's id.
    pub(super) forwarded: BTreeMap<u64, ForwardedRequest>,
    pub(super) next_forwarded_id: u64,
    /// Bytes that were sent to the client and are not yet written.
    pub(super) unwritten: usize,
    /// Bytes of the client that are not yet written to hosts.
    pub(super) unwritten_to_hosts: usize,
    /// Bytes of its pending requests and of messages that wait for a session.
    pub(super) retained_bytes: usize,
    /// Its socket is not read at the moment.
    pub(super) paused: bool,
    /// It has closed its sending side.
    pub(super) finished: bool,
    /// The gateway is closing it; further frames are ignored.
    pub(super) closing: bool,
    /// Number of messages that could not be routed.
    unrouted: u64,
}

/// A request without a response. The frame is retained, to be sent again when its host is lost.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) frame: Frame,
    pub(super) target: RequestTarget,
    /// The order of arrival.
    pub(super) order: u64,
    /// The connection it was sent on, and the gateway's id for it.
    pub(super) sent: Option<(HostConnectionId, u64)>,
    /// How often a host refused it.
    pub(super) refusals: u32,
    /// The client cancelled it; the next host it is sent to receives a cancellation, too.
    pub(super) cancelled: bool,
    /// Since when it waits for a responsive host, if one is chosen for it.
    pub(super) waiting_since: Option<Time>,
}

/// Which host serves a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// The owner of this session.
    Session(SessionId),
    /// A host that is chosen for a new session.
    NewSession,
    DefaultHost,
    /// Every host that serves the client; the response of the default host is forwarded.
    Handshake,
    /// All hosts.
    AllHosts,
}

impl Gateway {
    pub(super) fn on_client_opened(&mut self, conn: ConnId) {
        self.counters.clients_opened += 1;
        let known = self.clients.insert(conn, Client::default());
        assert!(known.is_none(), "a conn id is used once");
        let request = self.clients.len();
        if self.config.limits.clients_max < request {
            let what = format!("{} clients are connected, which is the limit", request - 1);
            self.send_own_frame(conn, &Frame::error_for("null", &Fault::Overloaded { what }));
            self.close_client(conn);
        } else if self.stopping {
            self.close_client(conn);
        }
    }

    pub(super) fn on_client_frame(&mut self, conn: ConnId, frame: &Frame) {
        if self.clients.get(&conn).is_none_or(|it| it.closing) {
            return;
        }
        self.counters.count_received(frame);
        match frame.kind() {
            Kind::Request => self.on_client_request(conn, frame),
            Kind::Notification => self.on_client_notification(conn, frame),
            Kind::Response => self.on_client_response(conn, frame),
        }
    }

    /// Answers a line that is not a JSON-RPC message. The connection stays open.
    pub(super) fn on_invalid_frame(&mut self, conn: ConnId, fault: &Fault) {
        self.counters.refused += 1;
        self.send_own_frame(conn, &Frame::error_for(fault.request_id(), fault));
    }

    fn on_client_request(&mut self, conn: ConnId, frame: &Frame) {
        let id = frame.id().expect("a request has an id");
        if let Err(fault) = self.check_request(conn, frame) {
            // Not `send_error`: that would end the pending request with the same id.
            self.send_own_frame(conn, &Frame::error_for(id, &fault));
            return self.note_unrouted(conn, frame, &fault);
        }
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        let method = frame.known_method();
        let route = method.map_or(GatewayRoute::Owner, |it| it.row().route);
        match (route, method, session) {
            (GatewayRoute::Opening, Some(Method::ControlConnect), _) => {
                self.on_handshake(conn, frame, Handshake::CONNECT);
            }
            (GatewayRoute::Opening, _, _) if self.is_first_initialize(conn) => {
                self.on_handshake(conn, frame, Handshake::INITIALIZE);
            }
            (GatewayRoute::AllHosts, Some(method), _) => {
                let request = MergedRequest::from_method(method);
                self.send_to_all_hosts(
                    conn,
                    frame,
                    request.expect("a method for all hosts is merged"),
                );
            }
            // A client of a fleet cannot stop a host, and is not a gateway.
            (GatewayRoute::Refused, _, _) => {
                let method = frame.method().unwrap_or_default().into_owned();
                let fault = Fault::NotServed { method };
                self.send_own_frame(conn, &Frame::error_for(id, &fault));
                self.note_unrouted(conn, frame, &fault);
            }
            // An import that names a session continues on the host of this session.
            (GatewayRoute::Placed, Some(Method::ControlImport), Some(session)) => {
                self.send_session_request(conn, &session, frame);
            }
            (GatewayRoute::Placed, _, _) => {
                self.register_request(conn, frame.clone(), RequestTarget::NewSession);
                self.place_request(conn, id);
            }
            (_, _, Some(session)) => self.send_session_request(conn, &session, frame),
            (_, _, None) => {
                self.register_request(conn, frame.clone(), RequestTarget::DefaultHost);
                self.place_request(conn, id);
            }
        }
    }

    fn check_request(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        self.check_session_visible(conn, frame)?;
        let (client, limits) = (&self.clients[&conn], &self.config.limits);
        let overloaded = |what: String| Err(Fault::Overloaded { what });
        if limits.pending_max <= client.requests.len() {
            return overloaded(format!("{} requests in flight", client.requests.len()));
        }
        if client.requests.contains_key(frame.id().expect("a request has an id")) {
            let why = "this id is in use by an open request".to_owned();
            return Err(Fault::InvalidRequest { why });
        }
        self.check_retained_bytes(conn, frame)
    }

    /// Checks the limits of retained bytes before a frame is retained until it is answered or the
    /// owner of its session is known.
    pub(super) fn check_retained_bytes(&self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        let (limits, own) = (&self.config.limits, self.clients[&conn].retained_bytes);
        let wanted = own + frame.bytes().len();
        if 0 < own && limits.retained_bytes_max < wanted {
            let what = format!("{own} bytes of this client wait for a response; wait for one");
            return Err(Fault::Overloaded { what });
        }
        if wanted <= RETAINED_BYTES_MIN {
            return Ok(());
        }
        let all: usize = self.clients.values().map(|it| it.retained_bytes).sum();
        if 0 < all && limits.retained_bytes_total_max < all + frame.bytes().len() {
            let what = format!("{all} bytes of all clients wait for a response; try again later");
            return Err(Fault::Overloaded { what });
        }
        Ok(())
    }

    /// Registers a request, which from now on gets exactly one response.
    pub(super) fn register_request(&mut self, conn: ConnId, frame: Frame, target: RequestTarget) {
        let order = self.next_id();
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        client.retained_bytes += frame.bytes().len();
        let id = frame.id().expect("a request has an id").into();
        let request = PendingRequest {
            frame,
            target,
            order,
            sent: None,
            refusals: 0,
            cancelled: false,
            waiting_since: None,
        };
        let known = client.requests.insert(id, request);
        assert!(known.is_none(), "`check_request` refuses an id that is in use");
    }

    /// Sends the response to a request of a client.
    pub(super) fn send_response(
        &mut self,
        conn: ConnId,
        answer: &Frame,
        from: Option<HostConnectionId>,
    ) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let id = answer.id().expect("an answer has an id");
        let Some(request) = client.requests.remove(id) else { return };
        client.retained_bytes -= request.frame.bytes().len();
        client.handshake.release_id(id);
        self.audit_response(conn, &request.frame, answer);
        self.send_to_client(conn, answer.bytes().clone(), from);
        if let RequestTarget::Session(session) = request.target {
            self.remove_unused_session(conn, &session);
        }
        self.close_if_finished(conn);
    }

    pub(super) fn send_error(&mut self, conn: ConnId, id: &str, fault: &Fault) {
        self.counters.refused += 1;
        self.send_response(conn, &Frame::error_for(id, fault), None);
    }

    fn on_client_notification(&mut self, conn: ConnId, frame: &Frame) {
        if let Err(fault) = self.check_session_visible(conn, frame) {
            return self.note_unrouted(conn, frame, &fault);
        }
        match (frame.known_method(), frame.session_id()) {
            (Some(Method::ControlTenant), _) => self.bind_tenant(conn, frame),
            (Some(Method::CancelRequest), _) => self.on_client_cancel(conn, frame),
            (Some(Method::ControlConnect), _) => self.on_handshake(conn, frame, Handshake::CONNECT),
            (Some(Method::ControlRelay), _) => {}
            (method, Some(session)) => {
                let session = SessionId::from(&*session);
                if method == Some(Method::SessionCancel) {
                    self.mark_prompts_cancelled(conn, &session);
                }
                self.send_session_notification(conn, &session, frame);
            }
            (_, None) => {
                let Some(host_conn) = self.clients[&conn].default_host_conn else {
                    let why = "send `initialize` first".to_owned();
                    return self.note_unrouted(conn, frame, &Fault::NoHost { why });
                };
                self.send_to_host(host_conn, frame.bytes().clone());
            }
        }
    }

    /// The client cancels its own request. The id is translated.
    fn on_client_cancel(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        let Some((id, request)) =
            frame.request_id().and_then(|id| client.requests.get_key_value(id))
        else {
            // The response was already sent.
            return;
        };
        let (id, sent, is_for_all_hosts) =
            (id.clone(), request.sent, request.target == RequestTarget::AllHosts);
        match sent {
            Some((host_conn, host_request_id)) => {
                client.requests.get_mut(&id).expect("found above").cancelled = true;
                self.cancel_request(host_conn, host_request_id);
            }
            // It was not sent to any host, so there is nothing to cancel there.
            None if !is_for_all_hosts => self.send_error(conn, &id, &Fault::Cancelled),
            None => {}
        }
    }

    /// Logged at powers of two, so that one client cannot fill the log.
    pub(super) fn note_unrouted(&mut self, conn: ConnId, frame: &Frame, fault: &Fault) {
        self.counters.refused += 1;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.unrouted += 1;
        if client.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            self.note(GatewayNote::Unrouted { conn, method, reason: fault.to_string() });
        }
    }

    /// The client has closed its sending side: it still gets its responses, but cannot answer
    /// requests.
    pub(super) fn on_client_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.finished = true;
        self.refuse_exclusive(conn);
        self.close_if_finished(conn);
    }

    /// Closes a client that has closed its sending side and has all its responses.
    fn close_if_finished(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get(&conn) else { return };
        if client.finished && client.requests.is_empty() {
            self.close_client(conn);
        }
    }

    pub(super) fn close_client(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if !client.closing {
            client.closing = true;
            self.outputs.push_back(GatewayOutput::CloseClient { conn });
            self.close_host_conns(conn);
        }
    }

    pub(super) fn on_client_gone(&mut self, conn: ConnId) {
        if !self.clients.contains_key(&conn) {
            return;
        }
        self.counters.clients_closed += 1;
        self.close_host_conns(conn);
        self.clients.remove(&conn);
        self.merges.retain(|_, it| it.conn != conn);
        self.finish_stop();
    }
}
