//! The end of subscriptions: what a client still waits for in a session is answered. A gateway gets no answer if the
//! session may be at another host, because it repeats its requests there.

use super::Session;
use crate::{
    ConnId, SessionId,
    context::HubContext,
    fanout::{EventSubscriber, moved_notice},
    parts::HubParts,
    peer::Clients,
};
use bytes::Bytes;
use jackfield_protocol::{Fault, Frame, Kind, is_planted};
use std::collections::BTreeSet;

/// Why subscriptions end, and who is notified.
pub(crate) struct SubscriptionEnd<'a> {
    /// The client that opened the session, and its request.
    opener: Option<(ConnId, Box<str>)>,
    fault: &'a Fault,
    /// Relay connections that are notified that the session moved, if it may be elsewhere.
    relays: Option<BTreeSet<ConnId>>,
}

impl SubscriptionEnd<'_> {
    /// Whether this is the answer that tells a client the id of the session.
    fn has_session_id(&self, conn: ConnId, answer: &Frame) -> bool {
        let opener = self.opener.as_ref().filter(|(it, _)| *it == conn);
        opener.is_some_and(|(_, request)| answer.id() == Some(&**request))
    }

    fn is_redirected(&self, clients: &Clients, conn: ConnId) -> bool {
        self.relays.is_some() && clients.is_relay(conn)
    }

    fn end_subscription(
        &mut self,
        clients: &mut Clients,
        cx: &mut HubContext,
        id: &SessionId,
        conn: ConnId,
        subscriber: EventSubscriber,
    ) {
        if let Some(it) = clients.connections.get_mut(&conn) {
            it.attached.remove(id);
        }
        if let Some(relays) = self.relays.as_mut().filter(|_| clients.is_relay(conn)) {
            relays.insert(conn);
        }
        for request in subscriber.owed.values().flatten() {
            self.refuse_request(clients, cx, conn, request);
        }
        for text in subscriber.into_deferred() {
            let frame = Frame::parse(text.clone()).ok();
            let has_session_id = |it: &Frame| self.has_session_id(conn, it);
            if self.is_redirected(clients, conn) && frame.as_ref().is_some_and(has_session_id) {
                clients.send(cx, conn, text); // The session exists, and the gateway finds it.
            } else {
                self.send_final_message(clients, cx, conn, text);
            }
        }
    }

    /// Sends a message that waited for events that will never be durable. A successful answer would not be true any more.
    fn send_final_message(
        &mut self,
        clients: &mut Clients,
        cx: &mut HubContext,
        conn: ConnId,
        text: Bytes,
    ) {
        let frame = Frame::parse(text.clone()).ok();
        let answer = frame.as_ref().filter(|it| it.kind() == Kind::Response);
        let untrue = answer.filter(|it| it.result().is_some() || self.is_redirected(clients, conn));
        match untrue.and_then(|it| Some((it, it.id()?))) {
            // A client that does not know the id cannot look for the session.
            Some((it, id)) if self.has_session_id(conn, it) => {
                clients.answer_request(cx, conn, id, Err(self.fault));
            }
            Some((_, id)) => self.refuse_request(clients, cx, conn, id),
            None => clients.send(cx, conn, text),
        }
    }

    /// Leaves the request of a relay connection unanswered if the session may be elsewhere; answers all others.
    pub(crate) fn refuse_request(
        &mut self,
        clients: &mut Clients,
        cx: &mut HubContext,
        conn: ConnId,
        request: &str,
    ) {
        if self.is_redirected(clients, conn) {
            clients.finish_request(conn, request);
            self.relays.get_or_insert_default().insert(conn);
        } else {
            clients.answer_request(cx, conn, request, Err(self.fault));
        }
    }

    /// Notifies relay connections that the session moved.
    pub(crate) fn send_moved_notices(
        self,
        clients: &mut Clients,
        cx: &mut HubContext,
        id: &SessionId,
    ) {
        for conn in self.relays.unwrap_or_default() {
            clients.send(cx, conn, moved_notice(id));
        }
    }
}

impl Session {
    /// Ends the subscription of a client that cannot be served, and answers what it waits for.
    pub(super) fn remove_reader(&mut self, parts: &mut HubParts, conn: ConnId, fault: &Fault) {
        if let Some(subscriber) = self.subscribers.remove(&conn) {
            let mut end = SubscriptionEnd { opener: None, fault, relays: None };
            let (clients, cx) = (&mut parts.clients, &mut parts.cx);
            end.end_subscription(clients, cx, &self.id, conn, subscriber);
            cx.schedule_unattended_check(&self.id);
        }
    }

    /// The session is removed: everything that clients wait for is answered. Returns whether its release was requested.
    pub(crate) fn end_subscriptions<'a>(
        mut self,
        parts: &mut HubParts,
        fault: &'a Fault,
    ) -> (bool, SubscriptionEnd<'a>) {
        let (clients, cx) = (&mut parts.clients, &mut parts.cx);
        if let Some((conn, request)) = self.opening_request() {
            // A client that does not know the id cannot look for the session.
            clients.answer_request(cx, conn, request, Err(fault));
        }
        let release = self.release.take();
        let was_requested = release.as_ref().is_some_and(|it| it.asked);
        let relays = release.map(|it| it.relays);
        let mut end = SubscriptionEnd { opener: self.opener.take(), fault, relays };
        for (conn, subscriber) in self.subscribers {
            end.end_subscription(clients, cx, &self.id, conn, subscriber);
        }
        // Messages that wait for events are newer than those that were delivered.
        let skipped = usize::from(is_planted("drop-answer-of-deleted-session"));
        for (conn, text) in self.log.into_client_messages().skip(skipped) {
            end.send_final_message(clients, cx, conn, text);
        }
        clients.withdraw_user_requests(cx, &self.id);
        for (conn, frame, _) in self.parked {
            let request = frame.id().expect("parked requests have ids");
            end.refuse_request(clients, cx, conn, request);
        }
        for (conn, request) in self.queue.into_iter().flat_map(|it| it.waiters) {
            end.refuse_request(clients, cx, conn, &request);
        }
        (was_requested, end)
    }
}
