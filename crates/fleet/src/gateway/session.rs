//! A client's use of a session: the host connection, the waiting messages, the replay position.

use super::{
    Gateway, GatewayNote, HostConnectionId, HostId, Timer, client::RequestTarget,
    host_connection::SentRequest, replay_position::ReplayPosition,
};
use jackfield_hub::{ConnId, SessionId, Time};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A session that a client uses.
#[derive(Debug, Default)]
pub(super) struct ClientSession {
    /// The connection to the owner, if the owner is known.
    pub(super) host_conn: Option<HostConnectionId>,
    /// Messages that wait for the owner, in order, and since when.
    pub(super) waiting: VecDeque<(Time, WaitingMessage)>,
    /// The options of the client's subscription, if it has one.
    pub(super) attached: Option<AttachOptions>,
    /// The session is being imported by the host of `host_conn`. It has no owner yet, so a search
    /// would not find it.
    pub(super) is_importing: bool,
    pub(super) position: ReplayPosition,
    /// Since when no owner has shown that it serves the session.
    pub(super) unserved_since: Option<Time>,
}

#[derive(Debug)]
pub(super) enum WaitingMessage {
    Request(Box<str>),
    Notification(Frame),
}

/// The options of `_jackfield/attach`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AttachOptions {
    pub(super) observe: bool,
    pub(super) facts: bool,
}

/// Methods that attach the client to an existing session.
pub(super) const ATTACH_METHODS: [Method; 3] =
    [Method::SessionLoad, Method::SessionResume, Method::ControlAttach];

impl Gateway {
    /// Handles a request about a session.
    pub(super) fn send_session_request(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        frame: &Frame,
    ) {
        let id = frame.id().expect("a request has an id");
        if let Err(fault) = self.check_waiting_limit(conn, session) {
            self.send_own_frame(conn, &Frame::error_for(id, &fault));
            return self.note_unrouted(conn, frame, &fault);
        }
        let is_prompt = frame.is_method(Method::SessionPrompt);
        let frame_to_send = if is_prompt { self.with_prompt_key(frame) } else { frame.clone() };
        self.register_request(conn, frame_to_send, RequestTarget::Session(session.clone()));
        let it = self.session_entry(conn, session);
        if is_prompt {
            // A client that sends a prompt is attached to the session.
            it.attached.get_or_insert_default();
        } else if replays_history(frame) {
            it.position.request_replay();
        }
        self.send_or_queue(conn, session, WaitingMessage::Request(id.into()));
    }

    pub(super) fn send_session_notification(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        frame: &Frame,
    ) {
        let check = self
            .check_retained_bytes(conn, frame)
            .and_then(|()| self.check_waiting_limit(conn, session));
        if let Err(fault) = check {
            return self.note_unrouted(conn, frame, &fault);
        }
        self.clients.get_mut(&conn).expect("it sent a frame").retained_bytes += frame.bytes().len();
        self.session_entry(conn, session);
        self.send_or_queue(conn, session, WaitingMessage::Notification(frame.clone()));
    }

    fn check_waiting_limit(&self, conn: ConnId, session: &SessionId) -> Result<(), Fault> {
        let waiting = self.clients[&conn].sessions.get(session).map_or(0, |it| it.waiting.len());
        if waiting < self.config.limits.waiting_max {
            return Ok(());
        }
        let what = format!(
            "{waiting} messages wait for the owner of session `{session}`, which is the limit"
        );
        Err(Fault::Overloaded { what })
    }

    pub(super) fn session_entry(
        &mut self,
        conn: ConnId,
        session: &SessionId,
    ) -> &mut ClientSession {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        client.sessions.entry(session.clone()).or_default()
    }

    /// Sends a message to the owner, or queues it until the owner is known.
    fn send_or_queue(&mut self, conn: ConnId, session: &SessionId, message: WaitingMessage) {
        let (now, owner_wait_ms) = (self.now, self.config.limits.owner_wait_ms);
        let it = self.session_entry(conn, session);
        if let Some(host_conn) = it.host_conn {
            return self.send_waiting(conn, session, host_conn, message);
        }
        it.waiting.push_back((now, message));
        self.timers.set(now.plus(owner_wait_ms), Timer::SessionWait(conn, session.clone()));
        self.search_owner(session, conn, None, false);
    }

    fn send_waiting(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
        message: WaitingMessage,
    ) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        match message {
            WaitingMessage::Request(id) if client.requests.contains_key(&id) => {
                self.send_request(conn, &id, host_conn);
            }
            // It was cancelled while it waited.
            WaitingMessage::Request(_) => {}
            WaitingMessage::Notification(frame) => {
                client.retained_bytes -= frame.bytes().len();
                self.send_to_host(host_conn, frame.bytes().clone());
            }
        }
        self.remove_unused_session(conn, session);
    }

    /// The owner is known: re-attaches the client and sends the waiting messages.
    pub(super) fn bind_owner(&mut self, conn: ConnId, session: &SessionId, host: &HostId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        if client.sessions.get(session).is_none_or(|it| it.host_conn.is_some()) {
            return;
        }
        let host_conn = self.host_conn_to(conn, host);
        self.send_handshake(host_conn);
        self.session_entry(conn, session).host_conn = Some(host_conn);
        self.reattach_session(conn, session, host_conn);
        for (_, message) in std::mem::take(&mut self.session_entry(conn, session).waiting) {
            self.send_waiting(conn, session, host_conn, message);
        }
        self.remove_unused_session(conn, session);
    }

    /// Re-attaches a subscribed client on this connection, after the last frame it received.
    pub(super) fn reattach_session(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) {
        let it = self.session_entry(conn, session);
        if let Some(AttachOptions { observe, facts }) = it.attached
            && let Some(after) = it.position.resume_after()
            && (is_planted("gateway-replays-twice") || !self.has_waiting_replay(conn, session))
        {
            let params = json!({
                "sessionId": &**session, "after": after, "observe": observe, "facts": facts,
            });
            let frame = Frame::request("0", Method::ControlAttach.name(), &params.to_string());
            let text =
                self.add_sent_request(host_conn, SentRequest::Attach(session.clone()), &frame);
            self.send_to_host(host_conn, text);
        }
    }

    /// Whether a waiting request replays the session anyway. Attaching in addition would replay it
    /// twice.
    fn has_waiting_replay(&self, conn: ConnId, session: &SessionId) -> bool {
        let client = &self.clients[&conn];
        client.sessions[session].waiting.iter().any(|(_, it)| match it {
            WaitingMessage::Request(id) => {
                client.requests.get(id).is_some_and(|it| replays_history(&it.frame))
            }
            WaitingMessage::Notification(_) => false,
        })
    }

    /// Unbinds the session from its connection. The gateway searches the owner and sends it the
    /// unanswered requests.
    pub(super) fn on_owner_lost(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        avoid: Option<HostId>,
        delay: bool,
    ) {
        let (now, owner_wait_ms) = (self.now, self.config.limits.owner_wait_ms);
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session) else { return };
        let Some(host_conn) = it.host_conn.take() else { return };
        it.position.on_connection_lost();
        it.is_importing = false;
        let (resend, not_repeatable) = self.take_sent_requests(conn, session, host_conn);
        self.counters.moves += 1;
        self.counters.resent += resend.len() as u64;
        let it = self.session_entry(conn, session);
        let since = *it.unserved_since.get_or_insert(now);
        for id in resend.into_iter().rev() {
            if !is_planted("gateway-forgets-open-request") {
                it.waiting.push_front((since, WaitingMessage::Request(id)));
            }
        }
        if !it.waiting.is_empty() {
            self.timers.set(since.plus(owner_wait_ms), Timer::SessionWait(conn, session.clone()));
        }
        if !is_planted("gateway-leaves-requests-open") {
            self.cancel_forwarded(conn, |it| {
                it.host_conn == host_conn && it.session.as_ref() == Some(session)
            });
        }
        for id in not_repeatable {
            let why = "its host was lost before it responded: check `session/list` for a fork";
            self.send_error(conn, &id, &Fault::HostLost { why: why.to_owned() });
        }
        if !self.clients.contains_key(&conn) {
            return;
        }
        self.remove_unused_session(conn, session);
        if self.clients[&conn].sessions.contains_key(session) {
            self.search_owner(session, conn, avoid, delay);
        }
    }

    /// Takes the requests in a session that were sent on a connection. Returns the ones to send
    /// again, in order, and the ones that must not be repeated, because they may have been executed
    /// and are not idempotent.
    fn take_sent_requests(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        host_conn: HostConnectionId,
    ) -> (Vec<Box<str>>, Vec<Box<str>>) {
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        let is_in_session =
            |target: &RequestTarget| matches!(target, RequestTarget::Session(of) if of == session);
        let (mut resend, mut not_repeatable) = (Vec::new(), Vec::new());
        for (id, request) in client.requests.iter_mut().filter(|(_, it)| is_in_session(&it.target))
        {
            let Some((_, host_request_id)) = request.sent.take() else { continue };
            let host_conn = self.host_conns.get_mut(&host_conn);
            // A late response is discarded. A request whose response has come was not executed.
            let is_undone = host_conn.is_some_and(|host_conn| {
                host_conn.sent_requests.remove(&host_request_id).is_none()
            });
            if !is_undone && request.frame.is_method(Method::SessionFork) {
                not_repeatable.push(id.clone());
            } else {
                resend.push((request.order, id.clone()));
            }
        }
        resend.sort_unstable();
        (resend.into_iter().map(|(_, id)| id).collect(), not_repeatable)
    }

    /// Fails messages that waited too long for an owner. The client stays connected.
    pub(super) fn expire_waiting(&mut self, conn: ConnId, session: &SessionId) {
        let owner_wait_ms = self.config.limits.owner_wait_ms;
        let mut has_noted = false;
        while let Some(client) = self.clients.get_mut(&conn)
            && let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none())
            && let Some((since, _)) = it.waiting.front()
        {
            let due = since.plus(owner_wait_ms);
            if self.now < due {
                return self.timers.set(due, Timer::SessionWait(conn, session.clone()));
            }
            let (_, message) = it.waiting.pop_front().expect("seen above");
            let fault = self.no_owner_fault(session);
            if !std::mem::replace(&mut has_noted, true) {
                let (session, reason) = (Some(session.clone()), fault.to_string());
                self.note(GatewayNote::GaveUp { conn, session, reason });
            }
            self.fail_waiting(conn, session, message, &fault);
        }
    }

    fn fail_waiting(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        message: WaitingMessage,
        fault: &Fault,
    ) {
        match message {
            WaitingMessage::Request(id) => self.send_error(conn, &id, fault),
            WaitingMessage::Notification(frame) => {
                let client = self.clients.get_mut(&conn).expect("the caller found it");
                client.retained_bytes -= frame.bytes().len();
                self.note_unrouted(conn, &frame, fault);
            }
        }
        self.remove_unused_session(conn, session);
    }

    /// The session does not exist: fails all messages that wait for it.
    pub(super) fn on_session_missing(&mut self, conn: ConnId, session: &SessionId, fault: &Fault) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none()) else {
            return;
        };
        it.attached = None;
        for (_, message) in std::mem::take(&mut it.waiting) {
            self.fail_waiting(conn, session, message, fault);
        }
        if let Some(client) = self.clients.get_mut(&conn) {
            client.sessions.remove(session);
        }
    }

    /// Removes a session without subscription and pending requests; its owner is searched again on
    /// the next use.
    pub(super) fn remove_unused_session(&mut self, conn: ConnId, session: &SessionId) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get(session) else { return };
        let is_unused = it.attached.is_none() && !it.is_importing && it.waiting.is_empty();
        let is_about =
            |target: &RequestTarget| matches!(target, RequestTarget::Session(of) if of == session);
        if is_unused && !client.requests.values().any(|it| is_about(&it.target)) {
            client.sessions.remove(session);
        }
    }

    /// Marks sent prompts as cancelled, so that they are cancelled again wherever they are sent
    /// again.
    pub(super) fn mark_prompts_cancelled(&mut self, conn: ConnId, session: &SessionId) {
        let client = self.clients.get_mut(&conn).expect("it sent a frame");
        for request in client.requests.values_mut() {
            let is_in_session =
                matches!(&request.target, RequestTarget::Session(of) if of == session);
            let sent = request.sent.is_some();
            request.cancelled |=
                is_in_session && sent && request.frame.is_method(Method::SessionPrompt);
        }
    }
}

/// Whether a request replays earlier events of the session.
fn replays_history(request: &Frame) -> bool {
    matches!(request.known_method(), Some(Method::SessionLoad | Method::ControlAttach))
}

pub(super) fn parse_attach_options(attach: &Frame) -> AttachOptions {
    let params: Value =
        attach.params().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let flag = |name: &str| params[name].as_bool().unwrap_or(false);
    AttachOptions { observe: flag("observe"), facts: flag("facts") }
}
