//! Frames from hosts, and what happens when a host connection ends.

use super::{
    ClientConnection, RequestTarget, forwarded_requests::ForwardedRequest,
    host_connection::SentRequest,
};
use crate::gateway::{
    config::HostId,
    frame_fields::{fault_code, session_of},
    host_connection_id::HostConnectionId,
    output::GatewayNote,
    owner_searches::SearchStart,
    parts::GatewayParts,
};
use jackfield_hub::SessionId;
use jackfield_hub_client::{event_seq, log_head};
use jackfield_protocol::{Fault, Frame, Kind, Splice, acp::Method, is_planted};

/// How often a request is sent again that a stopping host refused, each time after a delay.
const REFUSALS_MAX: u32 = 100;

/// A host connection that ended.
struct LostConnection<'a> {
    host_conn: HostConnectionId,
    host: &'a HostId,
    why: &'a str,
    has_received: bool,
}

impl ClientConnection {
    pub(in crate::gateway) fn on_host_conn_opened(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
    ) {
        let Some(it) = self.relay.get(host_conn) else { return };
        let (host, conn) = (it.host().clone(), self.conn);
        parts.cx.count_host_connection_opened();
        parts.cx.note(GatewayNote::HostConnectionOpened { host_conn, host, conn });
    }

    pub(in crate::gateway) fn on_host_frame(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        frame: &Frame,
    ) {
        let Some(it) = self.relay.get_mut(host_conn) else { return };
        it.mark_received();
        let host = it.host().clone();
        parts.hosts.remove_suspect(&host);
        parts.cx.count_received(frame);
        match frame.kind() {
            Kind::Response => self.on_host_response(parts, host_conn, &host, frame),
            Kind::Notification => self.on_host_notification(parts, host_conn, host, frame),
            Kind::Request => self.forward_request(parts, host_conn, frame),
        }
    }

    fn on_host_response(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        host: &HostId,
        frame: &Frame,
    ) {
        let Some(it) = self.relay.get_mut(host_conn) else { return };
        let host_request_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        match host_request_id.and_then(|id| it.take_sent_request(id)) {
            Some(SentRequest::Client(id)) => {
                self.on_request_answered(parts, host_conn, host, &id, frame);
            }
            Some(SentRequest::Handshake(step)) => {
                it.handshake_mut().set_response(step, frame);
                self.answer_handshake(parts);
            }
            Some(SentRequest::Attach(session)) => {
                self.on_reattached(parts, host_conn, &session, frame);
            }
            Some(SentRequest::Merge(token)) => {
                self.update_merge(parts, token, |it| it.on_response(host_conn, frame));
            }
            // A response to a request that was sent again after a lost connection.
            None => parts.cx.count_stray(),
        }
    }

    fn on_request_answered(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        host: &HostId,
        id: &str,
        frame: &Frame,
    ) {
        let Some(request) = self.requests.get_mut(id) else { return };
        match (request.target().clone(), fault_code(frame).as_deref()) {
            // The session may have moved a moment ago.
            (RequestTarget::Session(session), Some("session_not_found"))
                if request.refusals() == 0 =>
            {
                request.count_refusal();
                let (avoid, start) = (Some(host.clone()), SearchStart::Delayed);
                return self.on_owner_lost(parts, &session, avoid, start);
            }
            // The host ends in a moment; the next owner gets the request.
            (RequestTarget::Session(_), Some("stopping")) => return,
            (RequestTarget::NewSession | RequestTarget::DefaultHost, Some("stopping"))
                if request.refusals() < REFUSALS_MAX =>
            {
                request.count_refusal();
                request.clear_sent();
                parts.hosts.add_suspect(host.clone());
                self.clear_default_host(parts, host_conn);
                return self.retry_placement(parts, id);
            }
            _ => {}
        }
        let request = request.frame();
        self.sessions.apply_response(host_conn, request, frame);
        parts.placed.apply_response(self.conn, request, frame, parts.cx.now());
        self.send_response(parts, &frame.with_id(id), Some(host_conn));
    }

    fn on_host_notification(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        host: HostId,
        frame: &Frame,
    ) {
        match (frame.known_method(), session_of(frame)) {
            (Some(Method::CancelRequest), _) => {
                if let Some(id) = frame.request_id() {
                    let relay = &mut self.relay;
                    self.forwarded.cancel_by_host(&mut parts.cx, relay, host_conn, id);
                }
            }
            (Some(Method::ControlMoved), Some(session)) => {
                if self.sessions.get_bound(&session, host_conn).is_some() {
                    let note = GatewayNote::Moved { session: session.clone(), host: host.clone() };
                    parts.cx.note(note);
                    if !is_planted("gateway-ignores-moved-session") {
                        self.on_owner_lost(parts, &session, Some(host), SearchStart::Immediate);
                    }
                }
            }
            (Some(Method::ControlChanges), _) => {
                self.forward_changes(parts, host_conn, &host, frame);
            }
            (_, session) => {
                let seq = event_seq(frame);
                if session.is_none_or(|it| self.sessions.accept_frame(&it, host_conn, seq)) {
                    let text = frame.bytes().clone();
                    self.relay.send_to_client(&mut parts.cx, text, Some(host_conn));
                } else {
                    parts.cx.count_repeated();
                }
            }
        }
    }

    fn on_reattached(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        session: &SessionId,
        frame: &Frame,
    ) {
        let Some(it) = self.sessions.get_bound(session, host_conn) else { return };
        match log_head(frame) {
            Some(head) => {
                it.mark_served();
                it.complete_replay(head);
            }
            // The session is not on this host: not any more, or not yet.
            None => self.on_owner_lost(parts, session, None, SearchStart::Delayed),
        }
    }

    /// Forwards a request of a host to the client.
    fn forward_request(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        frame: &Frame,
    ) {
        let Some(request) = ForwardedRequest::parse(host_conn, frame) else { return };
        let session = request.session().and_then(|it| self.sessions.get(it));
        if session.is_some_and(|it| it.host_conn() != Some(host_conn)) {
            // The session has moved; its new owner repeats the request.
            return parts.cx.count_stray();
        }
        if self.is_finished || self.relay.is_closing() {
            if request.is_exclusive() {
                request.send_refusal(&mut parts.cx, &mut self.relay);
            } else {
                // Another client may answer it.
                parts.cx.count_stray();
            }
            return;
        }
        // The request may refer to a pending request instead of a session.
        let request_id = frame.request_id().and_then(|it| it.parse().ok()).and_then(|id: u64| {
            match self.relay.get(host_conn)?.sent_request(id) {
                Some(SentRequest::Client(id)) => Some(id.clone()),
                _ => None,
            }
        });
        let client_request_id = self.forwarded.add_request(request).to_string();
        let splice = Splice {
            id: Some(&client_request_id),
            request_id: request_id.as_deref(),
            ..Splice::default()
        };
        let text = frame.spliced(splice).into_bytes();
        self.relay.send_to_client(&mut parts.cx, text, Some(host_conn));
    }

    /// A host connection has ended.
    pub(in crate::gateway) fn on_host_conn_gone(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
        why: &str,
    ) {
        let owners = &mut parts.host_conn_owners;
        let Some(it) = self.relay.remove_connection(owners, host_conn) else { return };
        let (host, has_received) = (it.host().clone(), it.has_received());
        parts.cx.count_host_connection_lost();
        parts.hosts.add_suspect(host.clone());
        self.clear_default_host(parts, host_conn);
        self.forwarded.cancel_of_connection(&mut parts.cx, &mut self.relay, host_conn);
        let sessions = self.sessions.bound_to(host_conn);
        parts.cx.note(GatewayNote::HostConnectionLost {
            host_conn,
            host: host.clone(),
            conn: self.conn,
            reason: why.to_owned(),
            sessions: sessions.len(),
        });
        let start = if has_received { SearchStart::Immediate } else { SearchStart::Delayed };
        for session in sessions {
            self.on_owner_lost(parts, &session, Some(host.clone()), start);
        }
        let lost = LostConnection { host_conn, host: &host, why, has_received };
        for request in it.into_sent_requests() {
            match request {
                SentRequest::Client(id) => self.retry_elsewhere(parts, &id, &lost),
                SentRequest::Merge(token) => {
                    self.update_merge(parts, token, |it| it.on_host_lost(host_conn));
                }
                SentRequest::Handshake(_) | SentRequest::Attach(_) => {}
            }
        }
        if has_received {
            self.restart_watch(parts);
        }
        self.relay.update_pause(&mut parts.cx);
    }

    /// Handles a request that was sent on a lost connection. A request about a session waits for
    /// the owner.
    fn retry_elsewhere(&mut self, parts: &mut GatewayParts, id: &str, lost: &LostConnection<'_>) {
        let Some(request) = self.requests.get_mut(id) else { return };
        if request.sent().is_none_or(|(host_conn, _)| host_conn != lost.host_conn) {
            return;
        }
        request.on_connection_lost(lost.has_received);
        let LostConnection { host, why, .. } = lost;
        match request.target() {
            RequestTarget::NewSession if is_planted("gateway-forgets-new-session") => {}
            RequestTarget::NewSession => self.retry_placement(parts, id),
            // The host may have executed it, so it is not sent again.
            RequestTarget::DefaultHost => {
                let why = format!("host `{host}` was lost before it responded: {why}; try again");
                self.send_error(parts, id, &Fault::HostLost { why });
            }
            RequestTarget::Session(_) | RequestTarget::Handshake | RequestTarget::AllHosts => {}
        }
    }
}
