//! Requests from hosts to clients. Two hosts may use the same id, so clients see ids of the
//! gateway.

use super::{Gateway, HostConnectionId, host_connection::SentRequest};
use jackfield_hub::{ConnId, SessionId, cancel_notice};
use jackfield_protocol::{
    Fault, Frame, Splice,
    acp::{Audience, Method},
    is_planted,
};

/// A request from a host that a client has not answered.
#[derive(Debug)]
pub(super) struct ForwardedRequest {
    pub(super) host_conn: HostConnectionId,
    /// The host's id of the request, as JSON text.
    id: Box<str>,
    pub(super) session: Option<SessionId>,
    method: Box<str>,
    /// The request was sent to this client only.
    is_exclusive: bool,
}

impl Gateway {
    pub(super) fn forward_request(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let it = &self.host_conns[&host_conn];
        let conn = it.conn;
        let session = frame.session_id().map(|it| SessionId::from(&*it));
        let client = self.clients.get_mut(&conn).expect("a host connection has a client");
        if let Some(session) = &session
            && client.sessions.get(session).is_some_and(|it| it.host_conn != Some(host_conn))
        {
            // The session has moved; its new owner repeats the request.
            self.counters.stray += 1;
            return;
        }
        let method = frame.method().expect("a request has a method");
        let is_for_everyone =
            Method::from_name(&method).is_some_and(|it| it.row().audience == Audience::Everyone);
        let id = frame.id().expect("a request has an id");
        if client.finished || client.closing {
            if is_for_everyone {
                // Another client may answer it.
                self.counters.stray += 1;
            } else {
                self.refuse_host_request(host_conn, id);
            }
            return;
        }
        // The request may refer to a pending request instead of a session.
        let request_id = frame.request_id().and_then(|it| it.parse().ok());
        let request_id = request_id.and_then(|it: u64| {
            match self.host_conns[&host_conn].sent_requests.get(&it) {
                Some(SentRequest::Client(id)) => Some(id.clone()),
                _ => None,
            }
        });
        client.next_forwarded_id += 1;
        let keeps_host_id = is_planted("gateway-keeps-host-request-id");
        let client_request_id =
            if keeps_host_id { id.parse().unwrap_or_default() } else { client.next_forwarded_id };
        let method = (&*method).into();
        let forwarded = ForwardedRequest {
            host_conn,
            id: id.into(),
            session,
            method,
            is_exclusive: !is_for_everyone,
        };
        client.forwarded.insert(client_request_id, forwarded);
        let client_request_id = client_request_id.to_string();
        let splice = Splice {
            id: Some(&client_request_id),
            request_id: request_id.as_deref(),
            ..Splice::default()
        };
        self.send_to_client(conn, frame.spliced(splice).into_bytes(), Some(host_conn));
    }

    /// Forwards the client's response to the host.
    pub(super) fn on_client_response(&mut self, conn: ConnId, frame: &Frame) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        let client_request_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        match client_request_id.and_then(|it| client.forwarded.remove(&it)) {
            Some(ForwardedRequest { host_conn, id, session, method, is_exclusive }) => {
                if !is_exclusive {
                    self.audit_choice(conn, &method, session, frame);
                }
                self.send_to_host(host_conn, frame.with_id(&id).into_bytes());
            }
            None => self.counters.stray += 1,
        }
    }

    /// A host cancels its request.
    pub(super) fn on_host_cancel(&mut self, host_conn: HostConnectionId, frame: &Frame) {
        let conn = self.host_conns[&host_conn].conn;
        let Some(id) = frame.request_id() else { return };
        self.cancel_forwarded(conn, |it| it.host_conn == host_conn && *it.id == *id);
    }

    /// Tells the client to cancel these requests.
    pub(super) fn cancel_forwarded(
        &mut self,
        conn: ConnId,
        which: impl Fn(&ForwardedRequest) -> bool,
    ) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let cancelled = client.forwarded.extract_if(.., |_, it| which(it));
        for (client_request_id, forwarded) in cancelled.collect::<Vec<_>>() {
            self.send_to_client(conn, cancel_notice(client_request_id), Some(forwarded.host_conn));
        }
    }

    /// The client can no longer answer: refuses the requests that were sent to this client only.
    pub(super) fn refuse_exclusive(&mut self, conn: ConnId) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let forwarded = std::mem::take(&mut client.forwarded);
        for it in forwarded.into_values().filter(|it| it.is_exclusive) {
            self.refuse_host_request(it.host_conn, &it.id);
        }
    }

    fn refuse_host_request(&mut self, host_conn: HostConnectionId, id: &str) {
        let fault =
            Fault::NoClient { why: "the client disconnected before it answered".to_owned() };
        self.send_to_host(host_conn, Frame::error_for(id, &fault).into_bytes());
    }
}
