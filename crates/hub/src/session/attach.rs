//! Attaches clients to an existing session (load, resume, attach), and closes and deletes sessions.

use super::{Session, SessionFork};
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    context::HubContext,
    fanout::{EventSubscriber, Phase, attach_notice},
    hub::HubParts,
    peer::{Clients, with_seq},
    session::Sessions,
};
use bytes::Bytes;
use jackfield_events::EventBody;
use jackfield_protocol::{Fault, Frame, Kind, is_planted};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// How a client attaches to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachMode {
    /// `session/load`: all events, then the answer, then live events.
    Load,
    /// `session/resume`: live events only.
    Resume,
    /// `session/new` with a key that has opened this session: live events only.
    Known,
    /// `_jackfield/attach`: all events after a sequence number, then the answer, then live events. An observer gets no
    /// requests. With `facts` it gets events instead of ACP messages; `skips_damaged` skips events that cannot be read.
    After { seq: Seq, observer: bool, facts: bool, skips_damaged: bool },
}

/// Why a session is removed.
struct End<'a> {
    /// The client that opened it, and its request.
    opener: Option<(ConnId, Box<str>)>,
    fault: &'a Fault,
    /// Relay connections that are notified that the session moved, if it may be elsewhere.
    relays: Option<BTreeSet<ConnId>>,
}

impl End<'_> {
    /// Whether this is the answer that tells a client the id of the session.
    fn is_its_name(&self, conn: ConnId, answer: &Frame) -> bool {
        let opener = self.opener.as_ref().filter(|(it, _)| *it == conn);
        opener.is_some_and(|(_, request)| answer.id() == Some(&**request))
    }
}

/// Closes the session only if no other client uses it: `_meta.jackfield.ifUnused`.
fn is_only_if_unused(close: &Frame) -> bool {
    let meta: Value = close.meta().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    meta["jackfield"]["ifUnused"] == true
}

/// The result of `session/new`.
fn with_session_id(setup: &str, session: &SessionId) -> String {
    let mut result: Map<String, Value> = serde_json::from_str(setup).unwrap_or_default();
    result.insert("sessionId".to_owned(), Value::from(&**session));
    Value::Object(result).to_string()
}

impl Clients {
    fn end_subscription(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        conn: ConnId,
        subscriber: EventSubscriber,
        end: &mut End<'_>,
    ) {
        if let Some(it) = self.connections.get_mut(&conn) {
            it.attached.remove(id);
        }
        if let Some(relays) = end.relays.as_mut().filter(|_| self.is_relay(conn)) {
            relays.insert(conn);
        }
        for request in subscriber.owed.values().flatten() {
            self.refuse_request(cx, conn, request, end);
        }
        for text in subscriber.into_deferred() {
            let frame = Frame::parse(text.clone()).ok();
            let names = |it: &Frame| end.is_its_name(conn, it);
            if self.is_redirected(conn, end) && frame.as_ref().is_some_and(names) {
                self.send(cx, conn, text); // It is there, and will be found.
            } else {
                self.send_final_message(cx, conn, text, end);
            }
        }
    }

    /// Sends a message that waited for events that will never be durable. A successful answer would not be true any more.
    fn send_final_message(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        text: Bytes,
        end: &mut End<'_>,
    ) {
        let frame = Frame::parse(text.clone()).ok();
        let answer = frame.as_ref().filter(|it| it.kind() == Kind::Response);
        let untrue = answer.filter(|it| it.result().is_some() || self.is_redirected(conn, end));
        match untrue.and_then(|it| Some((it, it.id()?))) {
            // A client that does not know the id cannot look for the session.
            Some((it, id)) if end.is_its_name(conn, it) => {
                self.answer_request(cx, conn, id, Err(end.fault));
            }
            Some((_, id)) => self.refuse_request(cx, conn, id, end),
            None => self.send(cx, conn, text),
        }
    }

    /// Leaves the request of a relay connection unanswered if the session may be elsewhere; answers all others.
    fn refuse_request(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        request: &str,
        end: &mut End<'_>,
    ) {
        if self.is_redirected(conn, end) {
            self.finish_request(conn, request);
            end.relays.get_or_insert_default().insert(conn);
        } else {
            self.answer_request(cx, conn, request, Err(end.fault));
        }
    }

    fn is_redirected(&self, conn: ConnId, end: &End<'_>) -> bool {
        end.relays.is_some() && self.is_relay(conn)
    }
}

impl Sessions {
    /// Whether another client is attached, or has a turn or a queued prompt in the session.
    fn is_used_by_others(&self, id: &SessionId, conn: ConnId) -> bool {
        let session = &self.by_id[id];
        let own = session.queue.iter().filter(|it| it.conn == conn && it.number.is_some()).count();
        session.subscribers.keys().any(|it| *it != conn)
            || session.parked.iter().any(|(it, _, _)| *it != conn)
            || session.turn.as_ref().is_some_and(|it| it.driver != conn)
            || own < session.summary().queue.len()
    }
}

impl Session {
    /// Ends the subscription of a client that cannot be served, and answers what it waits for.
    pub(crate) fn remove_reader(&mut self, parts: &mut HubParts, conn: ConnId, fault: &Fault) {
        if let Some(subscriber) = self.subscribers.remove(&conn) {
            let mut end = End { opener: None, fault, relays: None };
            let (clients, cx) = (&mut parts.clients, &mut parts.cx);
            clients.end_subscription(cx, &self.id, conn, subscriber, &mut end);
            cx.schedule_unattended_check(&self.id);
        }
    }
}

impl Hub {
    pub(crate) fn on_attach(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
        how: AttachMode,
    ) -> Result<(), Fault> {
        let session = self.sessions.find_session(frame)?;
        self.attach(conn, id, &session, how)
    }

    pub(super) fn attach(
        &mut self,
        conn: ConnId,
        id: &str,
        session_id: &SessionId,
        how: AttachMode,
    ) -> Result<(), Fault> {
        let is_stuck = self.parts.storage.is_stuck();
        let session =
            self.sessions.by_id.get_mut(session_id).expect("the caller found this session");
        let durable = session.log.durable();
        // Events that cannot be stored without the operator are not awaited.
        let head = if is_stuck { durable } else { session.log.head() };
        let unwritten = if is_stuck { session.log.pending_events().count() } else { 0 };
        let setup = session.summary().setup.as_str();
        let aware = self.parts.clients.connections.get(&conn).is_some_and(|it| it.aware);
        let setup = if aware { with_seq(setup, head) } else { setup.to_owned() };
        let (from, result) = match how {
            AttachMode::Load => (Seq(0), setup),
            AttachMode::Resume => (durable, setup),
            AttachMode::Known => (durable, with_session_id(&setup, session_id)),
            AttachMode::After { seq, .. } => {
                (seq.min(durable), attach_notice(session_id, head.0, unwritten))
            }
        };
        let answer = Frame::result_for(id, &result);
        let Some(it) = self.parts.clients.connections.get(&conn) else {
            return Err(Fault::Stopping);
        };
        let charge = self.parts.cx.retained_bytes.charge(&it.kept, answer.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        let facts = matches!(how, AttachMode::After { facts: true, .. });
        let observer = facts || matches!(how, AttachMode::After { observer: true, .. });
        let skips_damaged = facts && matches!(how, AttachMode::After { skips_damaged: true, .. });
        if let Some(subscriber) = session.subscribers.get_mut(&conn) {
            subscriber.rewind(from);
        } else {
            let subscriber = EventSubscriber::new(from, Phase::Live);
            self.subscribe(session_id, conn, subscriber);
        }
        self.parts.clients.finish_request(conn, id);
        let session =
            self.sessions.by_id.get_mut(session_id).expect("the caller found this session");
        let subscriber = session.subscribers.get_mut(&conn).expect("subscribed above");
        (subscriber.observer, subscriber.facts) = (observer, facts);
        subscriber.skips_damaged = skips_damaged;
        subscriber.defer(head, answer.into_bytes(), charge);
        if !is_planted("attach-without-open-requests") {
            self.with_session(session_id, |it, parts| it.issue_open_requests(parts, conn));
        }
        if !is_planted("attach-without-replay") {
            self.with_session(session_id, |it, parts| it.request_read(&mut parts.cx, conn));
        }
        self.with_session(session_id, |it, parts| it.flush_deferred(parts, conn));
        Ok(())
    }

    pub(crate) fn on_close(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session = self.sessions.find_session(frame)?;
        let if_unused = is_only_if_unused(frame);
        let closes = !if_unused || !self.sessions.is_used_by_others(&session, conn);
        if closes {
            self.close(&session);
        }
        let result = if if_unused {
            format!(r#"{{"_meta":{{"jackfield":{{"closed":{closes}}}}}}}"#)
        } else {
            "{}".to_owned()
        };
        self.answer_in(&session, conn, &Frame::result_for(id, &result));
        Ok(())
    }

    /// Interrupts the session and gives up its agent. The log stays.
    fn close(&mut self, id: &SessionId) {
        self.abandon(id, &Fault::Interrupted { why: "the session was closed".into() });
        if !self.sessions.by_id[id].summary().closed {
            self.sessions.append_event(&mut self.parts.cx, id, EventBody::Closed);
        }
    }

    pub(crate) fn on_delete(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session = self.sessions.find_session(frame)?;
        self.abandon(&session, &Fault::Interrupted { why: "the session was deleted".into() });
        self.parts.cx.outputs.push_back(Output::Delete { session: session.clone() });
        let leaves = self.sessions.by_id[&session].release.is_some();
        if leaves {
            // A relay connection repeats requests that are not answered.
            self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok("{}"));
        }
        self.remove(&session, &Fault::SessionNotFound { session: session.to_string() });
        self.parts.cx.note(Note::SessionDeleted { session });
        if !leaves {
            self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok("{}"));
        }
        Ok(())
    }

    /// Removes a session. Waiting requests are answered; relay connections are notified last that the session may be
    /// elsewhere.
    pub(crate) fn remove(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.by_id.get(id) else { return };
        let agent_session_id = session.known_agent_session_id();
        if let Some(agent) = session.agent {
            self.leave(agent, id, &agent_session_id);
        }
        self.forsake(id);
        let Some(mut session) = self.sessions.by_id.remove(id) else { return };
        let release = session.release.take();
        let asked = release.as_ref().is_some_and(|it| it.asked);
        let opener = session.opener.take();
        let mut end = End { opener, fault, relays: release.map(|it| it.relays) };
        for (conn, subscriber) in session.subscribers {
            self.parts.clients.end_subscription(&mut self.parts.cx, id, conn, subscriber, &mut end);
        }
        // Messages that wait for events are newer than those that were delivered.
        for (conn, text) in session
            .log
            .into_client_messages()
            .skip(usize::from(is_planted("drop-answer-of-deleted-session")))
        {
            self.parts.clients.send_final_message(&mut self.parts.cx, conn, text, &mut end);
        }
        self.parts.clients.withdraw_user_requests(&mut self.parts.cx, id);
        for (conn, frame, _) in session.parked {
            self.parts.clients.refuse_request(
                &mut self.parts.cx,
                conn,
                frame.id().expect("parked requests have ids"),
                &mut end,
            );
        }
        for (conn, request) in session.queue.into_iter().flat_map(|it| it.waiters) {
            self.parts.clients.refuse_request(&mut self.parts.cx, conn, &request, &mut end);
        }
        self.give_up_forks_of(id, &mut end);
        self.parts.clients.send_moved_notices(
            &mut self.parts.cx,
            id,
            end.relays.unwrap_or_default(),
        );
        if asked {
            self.parts.cx.outputs.push_back(Output::LetGone { session: id.clone() });
        }
    }

    /// Gateways repeat requests for forks at the next host.
    fn give_up_forks_of(&mut self, id: &SessionId, end: &mut End<'_>) {
        let asked = self.sessions.forks.iter().filter(|(_, it)| it.from == *id);
        let asked = asked.filter(|(_, it)| self.parts.clients.is_relay(it.conn));
        for copy in asked.map(|(to, _)| to.clone()).collect::<Vec<_>>() {
            let Some(SessionFork { conn, request, .. }) = self.sessions.forks.remove(&copy) else {
                continue;
            };
            self.parts.clients.refuse_request(&mut self.parts.cx, conn, &request, end);
        }
    }

    pub(crate) fn on_control_attach(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let seq = Seq(params.get("after").and_then(Value::as_u64).unwrap_or(0));
        let flag = |name: &str| params.get(name).and_then(Value::as_bool).unwrap_or(false);
        let (observer, facts) = (flag("observe"), flag("facts"));
        let skips_damaged = flag("skipDamaged");
        self.on_attach(conn, id, frame, AttachMode::After { seq, observer, facts, skips_damaged })
    }
}
