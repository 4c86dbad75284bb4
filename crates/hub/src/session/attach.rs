//! Attaches clients to an existing session (load, resume, attach), and closes it.

use super::Session;
use crate::{
    ConnId, Seq, SessionId,
    fanout::{EventSubscriber, Phase, attach_notice},
    parts::HubParts,
    peer::with_seq,
};
use jackfield_events::EventBody;
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Map, Value};

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

impl Session {
    /// Whether another client is attached and not only observes, or has a turn or a queued prompt in the session.
    fn is_used_by_others(&self, conn: ConnId) -> bool {
        let own = self.queue.iter().filter(|it| it.conn == conn && it.number.is_some()).count();
        self.subscribers.iter().any(|(it, subscriber)| *it != conn && !subscriber.observer)
            || self.parked.iter().any(|(it, _, _)| *it != conn)
            || self.turn.as_ref().is_some_and(|it| it.driver != conn)
            || own < self.summary().queue.len()
    }

    pub(crate) fn attach(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        mode: AttachMode,
    ) -> Result<(), Fault> {
        let is_stuck = parts.storage.is_stuck();
        let durable = self.log.durable();
        // Events that cannot be stored without the operator are not awaited.
        let head = if is_stuck { durable } else { self.log.head() };
        let unwritten = if is_stuck { self.log.pending_events().count() } else { 0 };
        let setup = self.summary().setup.as_str();
        let aware = parts.clients.connections.get(&conn).is_some_and(|it| it.aware);
        let setup = if aware { with_seq(setup, head) } else { setup.to_owned() };
        let (from, result) = match mode {
            AttachMode::Load => (Seq(0), setup),
            AttachMode::Resume => (durable, setup),
            AttachMode::Known => (durable, with_session_id(&setup, &self.id)),
            AttachMode::After { seq, .. } => {
                (seq.min(durable), attach_notice(&self.id, head.0, unwritten))
            }
        };
        let answer = Frame::result_for(id, &result);
        let Some(it) = parts.clients.connections.get(&conn) else {
            return Err(Fault::Stopping);
        };
        let charge = parts.cx.retained_bytes.charge(&it.kept, answer.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        let facts = matches!(mode, AttachMode::After { facts: true, .. });
        let observer = facts || matches!(mode, AttachMode::After { observer: true, .. });
        let skips_damaged = facts && matches!(mode, AttachMode::After { skips_damaged: true, .. });
        match self.subscribers.get_mut(&conn) {
            Some(subscriber) => subscriber.rewind(from),
            None => self.subscribe(parts, conn, EventSubscriber::new(from, Phase::Live)),
        }
        parts.clients.finish_request(conn, id);
        let Some(subscriber) = self.subscribers.get_mut(&conn) else { return Ok(()) };
        (subscriber.observer, subscriber.facts) = (observer, facts);
        subscriber.skips_damaged = skips_damaged;
        subscriber.defer(head, answer.into_bytes(), charge);
        if !is_planted("attach-without-open-requests") {
            self.issue_open_requests(parts, conn);
        }
        if !is_planted("attach-without-replay") {
            self.request_read(&mut parts.cx, conn);
        }
        self.flush_deferred(parts, conn);
        Ok(())
    }

    pub(crate) fn on_close(&mut self, parts: &mut HubParts, conn: ConnId, id: &str, frame: &Frame) {
        let if_unused = is_only_if_unused(frame);
        let closes = !if_unused || !self.is_used_by_others(conn);
        if closes {
            self.close(parts);
        }
        let result = if if_unused {
            format!(r#"{{"_meta":{{"jackfield":{{"closed":{closes}}}}}}}"#)
        } else {
            "{}".to_owned()
        };
        self.answer_after_log(parts, conn, &Frame::result_for(id, &result));
    }

    /// Interrupts the session and gives up its agent. The log stays.
    fn close(&mut self, parts: &mut HubParts) {
        self.interrupt(parts, &Fault::Interrupted { why: "the session was closed".into() });
        if !self.summary().closed {
            self.append_event(&mut parts.cx, EventBody::Closed);
        }
    }
}

impl AttachMode {
    /// The parameters of `_jackfield/attach`.
    pub(crate) fn from_attach_params(frame: &Frame) -> AttachMode {
        let params = frame.params_value();
        let flag = |name: &str| params.get(name).and_then(Value::as_bool).unwrap_or(false);
        AttachMode::After {
            seq: Seq(params.get("after").and_then(Value::as_u64).unwrap_or(0)),
            observer: flag("observe"),
            facts: flag("facts"),
            skips_damaged: flag("skipDamaged"),
        }
    }
}
