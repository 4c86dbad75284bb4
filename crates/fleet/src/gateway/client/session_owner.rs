//! Messages for the owner of a session: they are sent if the owner is known, and wait otherwise.

use super::{
    ClientConnection, RequestTarget, host_connection::SentRequest, session::WaitingMessage,
};
use crate::gateway::{
    config::HostId, context::GatewayTimer, host_connection_id::HostConnectionId,
    output::GatewayNote, owner_searches::SearchStart, parts::GatewayParts,
};
use jackfield_hub::SessionId;
use jackfield_hub_client::replays_history;
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};

impl ClientConnection {
    pub(super) fn send_session_request(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        frame: &Frame,
    ) {
        let Some(id) = frame.id() else { return };
        let is_prompt = frame.is_method(Method::SessionPrompt);
        let frame_to_send =
            if is_prompt { parts.prompt_keys.add_key(frame) } else { frame.clone() };
        self.register_request(parts, frame_to_send, RequestTarget::Session(session.clone()));
        let it = self.sessions.get_or_add(session);
        if is_prompt {
            it.attach_by_prompt();
        } else if replays_history(frame) {
            it.request_replay();
        }
        self.send_or_queue(parts, session, WaitingMessage::Request(id.into()));
    }

    pub(super) fn send_session_notification(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        frame: &Frame,
    ) {
        let limits = parts.cx.limits();
        let check = parts
            .retained
            .check_frame(limits, self.conn, frame)
            .and_then(|()| self.sessions.check_waiting_limit(session, limits.waiting_max));
        if let Err(fault) = check {
            return self.note_unrouted(parts, frame, &fault);
        }
        parts.retained.retain_frame(self.conn, frame);
        self.send_or_queue(parts, session, WaitingMessage::Notification(frame.clone()));
    }

    /// Sends a message to the owner, or queues it until the owner is known.
    fn send_or_queue(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        message: WaitingMessage,
    ) {
        let it = self.sessions.get_or_add(session);
        if let Some(host_conn) = it.host_conn() {
            return self.send_message(parts, session, host_conn, message);
        }
        let now = parts.cx.now();
        it.push_waiting(now, message);
        let due = now.plus(parts.cx.limits().owner_wait_ms);
        parts.cx.set_timer(due, GatewayTimer::SessionWait(self.conn, session.clone()));
        parts.searches.start_search(
            &mut parts.cx,
            session,
            self.conn,
            None,
            SearchStart::Immediate,
        );
    }

    fn send_message(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        host_conn: HostConnectionId,
        message: WaitingMessage,
    ) {
        match message {
            // A request that was cancelled while it waited is no longer pending and not sent.
            WaitingMessage::Request(id) => self.send_request(parts, &id, host_conn),
            WaitingMessage::Notification(frame) => {
                parts.retained.release_frame(self.conn, &frame);
                self.relay.send_to_host(&mut parts.cx, host_conn, frame.into_bytes());
            }
        }
        self.sessions.remove_unused(session, &self.requests);
    }

    /// The owner is known: re-attaches the client and sends the waiting messages.
    pub(in crate::gateway) fn bind_owner(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        host: &HostId,
    ) {
        if self.sessions.get_unbound(session).is_none() {
            return;
        }
        let host_conn = self.connect_to(parts, host);
        self.relay.send_handshake(&mut parts.cx, &self.handshake, host_conn);
        self.reattach_session(parts, session, host_conn);
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.set_owner(host_conn);
        for (_, message) in it.take_waiting() {
            self.send_message(parts, session, host_conn, message);
        }
        self.sessions.remove_unused(session, &self.requests);
    }

    /// Re-attaches a subscribed client on this connection, after the last frame it received.
    pub(super) fn reattach_session(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        if let Some(attach) = it.attach_request(session, &self.requests) {
            let sent = SentRequest::Attach(session.clone());
            _ = self.relay.send_request(&mut parts.cx, host_conn, sent, &attach);
        }
    }

    /// Unbinds the session from its connection. The gateway searches the owner and sends it the
    /// unanswered requests.
    pub(super) fn on_owner_lost(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        avoid: Option<HostId>,
        start: SearchStart,
    ) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        let Some(host_conn) = it.take_owner() else { return };
        let unanswered = self.requests.take_sent_in(session, self.relay.get_mut(host_conn));
        parts.cx.count_move(unanswered.repeatable.len());
        if let Some(since) = it.requeue_requests(unanswered.repeatable, parts.cx.now()) {
            let due = since.plus(parts.cx.limits().owner_wait_ms);
            parts.cx.set_timer(due, GatewayTimer::SessionWait(self.conn, session.clone()));
        }
        if !is_planted("gateway-leaves-requests-open") {
            let relay = &mut self.relay;
            self.forwarded.cancel_of_session(&mut parts.cx, relay, host_conn, session);
        }
        for id in unanswered.not_repeatable {
            let why = "its host was lost before it responded: check `session/list` for a fork";
            self.send_error(parts, &id, &Fault::HostLost { why: why.to_owned() });
        }
        self.sessions.remove_unused(session, &self.requests);
        if self.sessions.contains(session) {
            parts.searches.start_search(&mut parts.cx, session, self.conn, avoid, start);
        }
    }

    /// Fails messages that waited too long for an owner. The client stays connected.
    pub(in crate::gateway) fn expire_waiting(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
    ) {
        let owner_wait_ms = parts.cx.limits().owner_wait_ms;
        let mut has_noted = false;
        while let Some(it) = self.sessions.get_unbound(session)
            && let Some(since) = it.first_waiting_since()
        {
            let due = since.plus(owner_wait_ms);
            if parts.cx.now() < due {
                let timer = GatewayTimer::SessionWait(self.conn, session.clone());
                return parts.cx.set_timer(due, timer);
            }
            let Some(message) = it.pop_waiting() else { return };
            let fault = parts.searches.no_owner_fault(session);
            if !std::mem::replace(&mut has_noted, true) {
                let (session, reason) = (Some(session.clone()), fault.to_string());
                parts.cx.note(GatewayNote::GaveUp { conn: self.conn, session, reason });
            }
            self.fail_message(parts, session, message, &fault);
        }
    }

    fn fail_message(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        message: WaitingMessage,
        fault: &Fault,
    ) {
        match message {
            WaitingMessage::Request(id) => self.send_error(parts, &id, fault),
            WaitingMessage::Notification(frame) => {
                parts.retained.release_frame(self.conn, &frame);
                self.note_unrouted(parts, &frame, fault);
            }
        }
        self.sessions.remove_unused(session, &self.requests);
    }

    /// The session does not exist: fails all messages that wait for it.
    pub(in crate::gateway) fn on_session_missing(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        fault: &Fault,
    ) {
        let Some(it) = self.sessions.get_unbound(session) else { return };
        it.clear_attached();
        for (_, message) in it.take_waiting() {
            self.fail_message(parts, session, message, fault);
        }
        self.sessions.remove(session);
    }
}
