//! Frames from hosts, and what happens when a host connection ends.

use super::{
    Gateway, GatewayNote, GatewayOutput, HostConnectionId, HostId,
    client::RequestTarget,
    handshake::HandshakeProgress,
    replay_position::{event_seq, log_head},
};
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId, cancel_notice};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, is_planted};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct HostConnection {
    pub(super) conn: ConnId,
    pub(super) host: HostId,
    /// The incarnation of the host when the connection was opened.
    pub(super) incarnation: Option<u64>,
    pub(super) handshake: HandshakeProgress,
    /// Requests that the host has not answered, by the gateway's id.
    pub(super) sent_requests: BTreeMap<u64, SentRequest>,
    /// Bytes that were sent on it and are not yet written.
    pub(super) unwritten: usize,
    /// It is not read at the moment.
    pub(super) paused: bool,
    /// The host has sent at least one frame on it.
    has_received: bool,
}

/// What a response from a host belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SentRequest {
    /// A request of the client, by the client's id.
    Client(Box<str>),
    /// A handshake frame, which is sent on every host connection.
    Handshake(usize),
    /// The gateway attached the client to this session.
    Attach(SessionId),
    /// A request to all hosts.
    Merge(u64),
}

/// A host connection that ended.
struct LostConnection<'a> {
    host_conn: HostConnectionId,
    host: &'a HostId,
    why: &'a str,
    has_received: bool,
}

/// How often a request is sent again that a stopping host refused, each time after a delay.
const REFUSALS_MAX: u32 = 100;

impl Gateway {
    /// The client's connection to this host; opens one if there is none.
    pub(super) fn host_conn_to(&mut self, conn: ConnId, host: &HostId) -> HostConnectionId {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if let Some(host_conn) = client.host_conns.get(host) {
            return *host_conn;
        }
        self.next_host_conn += 1;
        let host_conn = HostConnectionId(self.next_host_conn);
        client.host_conns.insert(host.clone(), host_conn);
        let it = HostConnection {
            conn,
            host: host.clone(),
            incarnation: self.hosts.get(host).map(|it| it.incarnation),
            handshake: HandshakeProgress::default(),
            sent_requests: BTreeMap::new(),
            unwritten: 0,
            paused: false,
            has_received: false,
        };
        self.host_conns.insert(host_conn, it);
        self.outputs.push_back(GatewayOutput::OpenHostConnection { host_conn, host: host.clone() });
        self.send_to_host(
            host_conn,
            Frame::notification(Method::ControlRelay.name(), "{}").into_bytes(),
        );
        if let Some((_, binding)) = &self.clients[&conn].tenant {
            let binding = binding.bytes().clone();
            self.send_to_host(host_conn, binding);
        }
        host_conn
    }

    pub(super) fn on_host_conn_opened(&mut self, host_conn: HostConnectionId) {
        let Some(it) = self.host_conns.get(&host_conn) else { return };
        let (host, conn) = (it.host.clone(), it.conn);
        self.counters.host_connections_opened += 1;
        self.note(GatewayNote::HostConnectionOpened { host_conn, host, conn });
    }

    /// Registers a request that is sent to a host, and returns it with an id of the gateway.
    pub(super) fn add_sent_request(
        &mut self,
        host_conn: HostConnectionId,
        request: SentRequest,
        frame: &Frame,
    ) -> Bytes {
        let host_request_id = self.next_id();
        self.host_conns
            .get_mut(&host_conn)
            .expect("the caller found it")
            .sent_requests
            .insert(host_request_id, request);
        frame.with_id(&host_request_id.to_string()).into_bytes()
    }

    /// Sends a request of a client on this connection, for the first time or again.
    pub(super) fn send_request(&mut self, conn: ConnId, id: &str, host_conn: HostConnectionId) {
        let host_request_id = self.next_id();
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let request = client.requests.get_mut(id).expect("the caller found it");
        request.sent = Some((host_conn, host_request_id));
        let text = request.frame.with_id(&host_request_id.to_string()).into_bytes();
        let cancelled = request.cancelled;
        let it = self.host_conns.get_mut(&host_conn).expect("the caller found it");
        it.sent_requests.insert(host_request_id, SentRequest::Client(id.into()));
        self.send_to_host(host_conn, text);
        if cancelled {
            self.cancel_request(host_conn, host_request_id);
        }
    }

    pub(super) fn cancel_request(&mut self, host_conn: HostConnectionId, host_request_id: u64) {
        self.send_to_host(host_conn, cancel_notice(host_request_id));
    }

    pub(super) fn on_host_frame(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let Some(it) = self.host_conns.get_mut(&host_conn) else {
            self.counters.stray += 1;
            return;
        };
        it.has_received = true;
        self.suspect_hosts.remove(&it.host);
        self.counters.count_received(frame);
        match frame.kind() {
            Kind::Response => self.on_host_response(host_conn, frame),
            Kind::Notification => self.on_host_notification(host_conn, frame),
            Kind::Request => self.forward_request(host_conn, frame),
        }
    }

    fn on_host_response(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let it = self.host_conns.get_mut(&host_conn).expect("it sent a frame");
        let host_request_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        match host_request_id.and_then(|host_request_id| it.sent_requests.remove(&host_request_id))
        {
            Some(SentRequest::Client(id)) => self.on_request_answered(host_conn, &id, frame),
            Some(SentRequest::Handshake(which)) => {
                self.on_handshake_response(host_conn, which, frame);
            }
            Some(SentRequest::Attach(session)) => self.on_reattached(host_conn, &session, frame),
            Some(SentRequest::Merge(token)) => self.on_merge_response(token, host_conn, frame),
            // A response to a request that was sent again after a lost connection.
            None => self.counters.stray += 1,
        }
    }

    fn on_request_answered(&mut self, host_conn: HostConnectionId, id: &str, frame: &Frame) {
        let (conn, host) =
            (self.host_conns[&host_conn].conn, self.host_conns[&host_conn].host.clone());
        let client = self.clients.get_mut(&conn).expect("its host connection sent a frame");
        let Some(request) = client.requests.get_mut(id) else { return };
        match (&request.target, fault_code(frame).as_deref()) {
            // The session may have moved a moment ago.
            (RequestTarget::Session(session), Some("session_not_found"))
                if request.refusals == 0 =>
            {
                request.refusals += 1;
                let session = session.clone();
                return self.on_owner_lost(conn, &session, Some(host), true);
            }
            // The host ends in a moment; the next owner gets the request.
            (RequestTarget::Session(_), Some("stopping")) => return,
            (RequestTarget::NewSession | RequestTarget::DefaultHost, Some("stopping"))
                if request.refusals < REFUSALS_MAX =>
            {
                request.refusals += 1;
                request.sent = None;
                self.suspect_hosts.insert(host);
                self.clear_default_host(conn, host_conn);
                return self.retry_placement(conn, id);
            }
            _ => {}
        }
        let request = request.frame.clone();
        self.apply_response(conn, host_conn, &request, frame);
        self.send_response(conn, &frame.with_id(id), Some(host_conn));
    }

    /// A notification of a host.
    fn on_host_notification(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let (conn, host) =
            (self.host_conns[&host_conn].conn, self.host_conns[&host_conn].host.clone());
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        match (frame.known_method(), session) {
            (Some(Method::CancelRequest), _) => self.on_host_cancel(host_conn, frame),
            (Some(Method::ControlMoved), Some(session)) => {
                if self.is_bound_to(conn, &session, host_conn) {
                    let note = GatewayNote::Moved { session: session.clone(), host: host.clone() };
                    self.note(note);
                    if !is_planted("gateway-ignores-moved-session") {
                        self.on_owner_lost(conn, &session, Some(host), false);
                    }
                }
            }
            (_, Some(session)) => {
                if self.should_deliver(conn, &session, host_conn, event_seq(frame)) {
                    self.send_to_client(conn, frame.bytes().clone(), Some(host_conn));
                } else {
                    self.counters.repeated += 1;
                }
            }
            (_, None) => self.send_to_client(conn, frame.bytes().clone(), Some(host_conn)),
        }
    }

    fn on_reattached(&mut self, host_conn: HostConnectionId, session: &SessionId, frame: &Frame) {
        let conn = self.host_conns[&host_conn].conn;
        if !self.is_bound_to(conn, session, host_conn) {
            return;
        }
        match log_head(frame) {
            Some(head) => self.on_reattach_complete(conn, session, head),
            // The session is not on this host: not any more, or not yet.
            None => self.on_owner_lost(conn, session, None, true),
        }
    }

    pub(super) fn on_host_conn_gone(&mut self, host_conn: HostConnectionId, why: &str) {
        let Some(it) = self.host_conns.remove(&host_conn) else { return };
        let (conn, host) = (it.conn, it.host);
        self.counters.host_connections_lost += 1;
        self.suspect_hosts.insert(host.clone());
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        client.host_conns.remove(&host);
        client.unwritten_to_hosts -= it.unwritten;
        self.clear_default_host(conn, host_conn);
        self.cancel_forwarded(conn, |it| it.host_conn == host_conn);
        let bound =
            self.clients[&conn].sessions.iter().filter(|(_, it)| it.host_conn == Some(host_conn));
        let sessions: Vec<SessionId> = bound.map(|(id, _)| id.clone()).collect();
        let count = sessions.len();
        let note = |why: &str| {
            let (host, reason) = (host.clone(), why.to_owned());
            GatewayNote::HostConnectionLost { host_conn, host, conn, reason, sessions: count }
        };
        self.note(note(why));
        for session in sessions {
            self.on_owner_lost(conn, &session, Some(host.clone()), !it.has_received);
        }
        for request in it.sent_requests.into_values() {
            match request {
                SentRequest::Client(id) => {
                    let lost = LostConnection {
                        host_conn,
                        host: &host,
                        why,
                        has_received: it.has_received,
                    };
                    self.retry_elsewhere(conn, &id, &lost);
                }
                SentRequest::Merge(token) => self.on_merge_host_lost(token, host_conn, &host),
                SentRequest::Handshake(_) | SentRequest::Attach(_) => {}
            }
        }
        self.update_client_pause(conn);
    }

    /// Handles a request that was sent on a lost connection. A request about a session waits for
    /// the owner.
    fn retry_elsewhere(&mut self, conn: ConnId, id: &str, lost: &LostConnection<'_>) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let Some(request) = client.requests.get_mut(id) else { return };
        if request.sent.is_none_or(|(by, _)| by != lost.host_conn) {
            return;
        }
        request.sent = None;
        request.waiting_since.take_if(|_| lost.has_received);
        let LostConnection { host, why, .. } = lost;
        match request.target {
            RequestTarget::NewSession if is_planted("gateway-forgets-new-session") => {}
            RequestTarget::NewSession => self.retry_placement(conn, id),
            // The host may have executed it, so it is not sent again.
            RequestTarget::DefaultHost => {
                let why = format!("host `{host}` was lost before it responded: {why}; try again");
                self.send_error(conn, id, &Fault::HostLost { why });
            }
            RequestTarget::Session(_) | RequestTarget::Handshake | RequestTarget::AllHosts => {}
        }
    }

    /// Unsets the default host if it is on this connection. The next one answers the handshake.
    fn clear_default_host(&mut self, conn: ConnId, host_conn: HostConnectionId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if client.default_host_conn != Some(host_conn) {
            return;
        }
        (client.default_host_conn, client.handshake.has_opened_session) = (None, false);
        let handshakes =
            client.requests.iter().filter(|(_, it)| it.target == RequestTarget::Handshake);
        for id in handshakes.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.retry_placement(conn, &id);
        }
    }

    /// Closes all host connections of a client.
    pub(super) fn close_host_conns(&mut self, conn: ConnId) {
        self.log_readings.retain(|_, it| it.conn != conn);
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        client.sessions.clear();
        client.forwarded.clear();
        client.unplaced.clear();
        (client.default_host_conn, client.unwritten_to_hosts) = (None, 0);
        for host_conn in std::mem::take(&mut client.host_conns).into_values() {
            self.host_conns.remove(&host_conn);
            self.outputs.push_back(GatewayOutput::CloseHostConnection { host_conn });
        }
    }
}

/// The error code of an error response that Jackfield created.
pub(super) fn fault_code(answer: &Frame) -> Option<String> {
    let error: serde_json::Value = serde_json::from_str(answer.error()?).ok()?;
    error.pointer("/data/jackfield/code")?.as_str().map(str::to_owned)
}
