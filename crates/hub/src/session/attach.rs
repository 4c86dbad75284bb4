//! Coming to a session that exists: load, resume, attach; and leaving it for good: close, delete.

use super::Fork;
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    fanout::{Phase, Subscriber, attach_notice},
    peer::with_seq,
};
use bytes::Bytes;
use jackfield_events::EventBody;
use jackfield_protocol::{Fault, Frame, Kind, is_planted};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// How a client comes to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attach {
    /// ACP's `session/load`: everything from the start, then the answer, then live.
    Load,
    /// ACP's `session/resume`: live from now on.
    Resume,
    /// ACP's `session/new` under a key that has opened this session: live from now on.
    Known,
    /// Ours: everything after a seq, then the answer, then live. An observer is asked nothing. With `facts` it
    /// hears events and no ACP; with `skips_damaged` also those behind an event that cannot be read.
    After { seq: Seq, observer: bool, facts: bool, skips_damaged: bool },
}

/// Why nobody hears more of a session.
struct End<'a> {
    /// Who made it, and with which request.
    opener: Option<(ConnId, Box<str>)>,
    fault: &'a Fault,
    /// The relay connections that are told to look elsewhere, where that may help.
    relays: Option<BTreeSet<ConnId>>,
}

impl End<'_> {
    /// Whether this is the answer that tells a client of the session for the first time.
    fn is_its_name(&self, conn: ConnId, answer: &Frame) -> bool {
        let opener = self.opener.as_ref().filter(|(it, _)| *it == conn);
        opener.is_some_and(|(_, request)| answer.id() == Some(&**request))
    }
}

/// A command that is done closes the session only if nobody else uses it: `_meta.jackfield.ifUnused`.
fn is_only_if_unused(close: &Frame) -> bool {
    let meta: Value = close.meta().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    meta["jackfield"]["ifUnused"] == true
}

/// What `session/new` is answered with.
fn with_session_id(setup: &str, session: &SessionId) -> String {
    let mut result: Map<String, Value> = serde_json::from_str(setup).unwrap_or_default();
    result.insert("sessionId".to_owned(), Value::from(&**session));
    Value::Object(result).to_string()
}

impl Hub {
    pub(crate) fn on_attach(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
        how: Attach,
    ) -> Result<(), Fault> {
        let session = self.session_of(frame)?;
        self.attach(conn, id, &session, how)
    }

    pub(super) fn attach(
        &mut self,
        conn: ConnId,
        id: &str,
        session_id: &SessionId,
        how: Attach,
    ) -> Result<(), Fault> {
        let is_stuck = self.is_storage_stuck();
        let session = self.sessions.get_mut(session_id).expect("the caller found this session");
        let durable = session.log.durable();
        // What waits until somebody helps the storage is not waited for here.
        let head = if is_stuck { durable } else { session.log.head() };
        let unwritten = if is_stuck { session.log.pending_events().count() } else { 0 };
        let setup = session.summary().setup.as_str();
        let aware = self.conns.get(&conn).is_some_and(|it| it.aware);
        let setup = if aware { with_seq(setup, head) } else { setup.to_owned() };
        let (from, result) = match how {
            Attach::Load => (Seq(0), setup),
            Attach::Resume => (durable, setup),
            Attach::Known => (durable, with_session_id(&setup, session_id)),
            Attach::After { seq, .. } => {
                (seq.min(durable), attach_notice(session_id, head.0, unwritten))
            }
        };
        let answer = Frame::result_for(id, &result);
        let Some(it) = self.conns.get(&conn) else { return Err(Fault::Stopping) };
        let charge = self.cx.retained_bytes.charge(&it.kept, answer.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        let facts = matches!(how, Attach::After { facts: true, .. });
        let observer = facts || matches!(how, Attach::After { observer: true, .. });
        let skips_damaged = facts && matches!(how, Attach::After { skips_damaged: true, .. });
        if let Some(subscriber) = session.subscribers.get_mut(&conn) {
            subscriber.rewind(from);
        } else {
            let subscriber = Subscriber::new(from, Phase::Live);
            self.subscribe(session_id, conn, subscriber);
        }
        self.finish_request(conn, id);
        let session = self.sessions.get_mut(session_id).expect("the caller found this session");
        let subscriber = session.subscribers.get_mut(&conn).expect("subscribed above");
        (subscriber.observer, subscriber.facts) = (observer, facts);
        subscriber.skips_damaged = skips_damaged;
        subscriber.defer(head, answer.into_bytes(), charge);
        if !is_planted("attach-without-open-requests") {
            self.issue_open_asks(session_id, conn);
        }
        if !is_planted("attach-without-replay") {
            self.read_on(session_id, conn);
        }
        self.flush_deferred(session_id, conn);
        Ok(())
    }

    pub(crate) fn on_close(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session = self.session_of(frame)?;
        let if_unused = is_only_if_unused(frame);
        let closes = !if_unused || !self.is_used_by_others(&session, conn);
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

    /// Whether another client is attached, or something of another runs or waits in the session.
    fn is_used_by_others(&self, id: &SessionId, conn: ConnId) -> bool {
        let session = &self.sessions[id];
        let own = session.queue.iter().filter(|it| it.conn == conn && it.number.is_some()).count();
        session.subscribers.keys().any(|it| *it != conn)
            || session.parked.iter().any(|(it, _, _)| *it != conn)
            || session.turn.as_ref().is_some_and(|it| it.driver != conn)
            || own < session.summary().queue.len()
    }

    /// Ends whatever the session does and frees its agent; the log stays.
    fn close(&mut self, id: &SessionId) {
        self.abandon(id, &Fault::Interrupted { why: "the session was closed".into() });
        if !self.sessions[id].summary().closed {
            self.append(id, EventBody::Closed);
        }
    }

    pub(crate) fn on_delete(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let session = self.session_of(frame)?;
        self.abandon(&session, &Fault::Interrupted { why: "the session was deleted".into() });
        self.cx.outputs.push_back(Output::Delete { session: session.clone() });
        let leaves = self.sessions[&session].leaving.is_some();
        if leaves {
            // A relay connection that is sent away asks again whatever is not answered.
            self.answer(conn, id, Ok("{}"));
        }
        self.remove(&session, &Fault::SessionNotFound { session: session.to_string() });
        self.note(Note::SessionDeleted { session });
        if !leaves {
            self.answer(conn, id, Ok("{}"));
        }
        Ok(())
    }

    /// Forgets a session that is no longer ours; whoever still waits in it is told. Where it may be
    /// found elsewhere, relay connections are told that instead, last of all.
    pub(crate) fn remove(&mut self, id: &SessionId, fault: &Fault) {
        let Some(session) = self.sessions.get(id) else { return };
        let theirs = session.told_as();
        if let Some(agent) = session.agent {
            self.leave(agent, id, &theirs);
        }
        self.forsake(id);
        let Some(mut session) = self.sessions.remove(id) else { return };
        let leaving = session.leaving.take();
        let asked = leaving.as_ref().is_some_and(|it| it.asked);
        let opener = session.opener.take();
        let mut end = End { opener, fault, relays: leaving.map(|it| it.relays) };
        for (conn, subscriber) in session.subscribers {
            self.dismiss(id, conn, subscriber, &mut end);
        }
        // What has not left the gate is younger than what has.
        for (conn, text) in session
            .log
            .into_client_messages()
            .skip(usize::from(is_planted("drop-answer-of-deleted-session")))
        {
            self.say_without(conn, text, &mut end);
        }
        self.withdraw_asks_of(id);
        for (conn, frame, _) in session.parked {
            self.refuse(conn, frame.id().expect("parked requests have ids"), &mut end);
        }
        for (conn, request) in session.queue.into_iter().flat_map(|it| it.waiters) {
            self.refuse(conn, &request, &mut end);
        }
        self.give_up_forks_of(id, &mut end);
        self.send_away(id, end.relays.unwrap_or_default());
        if asked {
            self.cx.outputs.push_back(Output::LetGone { session: id.clone() });
        }
        self.check_storage();
    }

    /// A relay connection asks for its copies again, where the session is then, if it is anywhere.
    fn give_up_forks_of(&mut self, id: &SessionId, end: &mut End<'_>) {
        let asked = self.forks.iter().filter(|(_, it)| it.from == *id);
        let asked = asked.filter(|(_, it)| self.is_relay(it.conn));
        for copy in asked.map(|(to, _)| to.clone()).collect::<Vec<_>>() {
            let Some(Fork { conn, request, .. }) = self.forks.remove(&copy) else { continue };
            self.refuse(conn, &request, end);
        }
    }

    /// What a client should hear next cannot be read, now or later: it hears no more of the session,
    /// and whatever it waits for is answered.
    pub(crate) fn lose_reader(&mut self, id: &SessionId, conn: ConnId, fault: &Fault) {
        let session = self.sessions.get_mut(id);
        if let Some(subscriber) = session.and_then(|it| it.subscribers.remove(&conn)) {
            self.dismiss(id, conn, subscriber, &mut End { opener: None, fault, relays: None });
            self.is_unattended(id);
        }
    }

    fn dismiss(&mut self, id: &SessionId, conn: ConnId, subscriber: Subscriber, end: &mut End<'_>) {
        if let Some(it) = self.conns.get_mut(&conn) {
            it.attached.remove(id);
        }
        if let Some(relays) = end.relays.as_mut().filter(|_| self.is_relay(conn)) {
            relays.insert(conn);
        }
        for request in subscriber.owed.values().flatten() {
            self.refuse(conn, request, end);
        }
        for text in subscriber.into_deferred() {
            let frame = Frame::parse(text.clone()).ok();
            let names = |it: &Frame| end.is_its_name(conn, it);
            if self.is_sent_away(conn, end) && frame.as_ref().is_some_and(names) {
                self.send(conn, text); // It is there, and will be found.
            } else {
                self.say_without(conn, text, end);
            }
        }
    }

    /// Says what waited for events that will never come: a good answer would not be true any more.
    fn say_without(&mut self, conn: ConnId, text: Bytes, end: &mut End<'_>) {
        let frame = Frame::parse(text.clone()).ok();
        let answer = frame.as_ref().filter(|it| it.kind() == Kind::Response);
        let untrue = answer.filter(|it| it.result().is_some() || self.is_sent_away(conn, end));
        match untrue.and_then(|it| Some((it, it.id()?))) {
            // Who does not know its name cannot look for it.
            Some((it, id)) if end.is_its_name(conn, it) => self.answer(conn, id, Err(end.fault)),
            Some((_, id)) => self.refuse(conn, id, end),
            None => self.send(conn, text),
        }
    }

    /// A relay connection that may find the session elsewhere is told so and not answered; others are answered.
    fn refuse(&mut self, conn: ConnId, request: &str, end: &mut End<'_>) {
        if self.is_sent_away(conn, end) {
            self.finish_request(conn, request);
            end.relays.get_or_insert_default().insert(conn);
        } else {
            self.answer(conn, request, Err(end.fault));
        }
    }

    fn is_sent_away(&self, conn: ConnId, end: &End<'_>) -> bool {
        end.relays.is_some() && self.is_relay(conn)
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
        self.on_attach(conn, id, frame, Attach::After { seq, observer, facts, skips_damaged })
    }
}
