//! `session/fork`: copies the log of a session up to an event into a new session. This works with every agent; the agent
//! restores the copy when it is first used.

use super::{Session, SessionStage};
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    fanout::{EventSubscriber, Phase},
    peer::check_setup,
    session_name::tenant_of,
};
use jackfield_events::{EventBody, RawJson, SessionEvent, SessionForked, SessionSummary};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Map, Value, json};

/// A pending copy. No client knows the new session yet.
#[derive(Debug)]
pub(crate) struct SessionFork {
    pub(super) conn: ConnId,
    pub(super) request: Box<str>,
    pub(super) from: SessionId,
}

impl Hub {
    pub(crate) fn on_fork(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let from = self.sessions.find_session(frame)?;
        check_setup(frame)?;
        self.parts.storage.require_working()?;
        let params: Map<String, Value> = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let session = &self.sessions.by_id[&from];
        let seq = branches_at(&params, session.log.durable())?;
        let (cwd, params) = opened_with(session.summary(), &params);
        let to = self.sessions.new_session_id(
            &mut self.parts.cx,
            tenant_of(&from).filter(|_| !is_planted("fork-without-tenant")),
        );
        let body =
            EventBody::Forked(SessionForked { from: from.clone(), seq_there: seq, cwd, params });
        let last = SessionEvent { seq: seq.next(), at: self.parts.cx.now, body };
        let fork = SessionFork { conn, request: id.into(), from: from.clone() };
        self.sessions.forks.insert(to.clone(), fork);
        self.parts.cx.outputs.push_back(Output::Copy { from, upto: seq, to, last });
        Ok(())
    }

    /// The copy is stored, up to the event that describes it.
    pub(crate) fn on_copied(&mut self, id: &SessionId, state: SessionSummary) {
        let fork = self
            .sessions
            .forks
            .remove(id)
            .filter(|it| self.parts.clients.connections.contains_key(&it.conn));
        let Some(SessionFork { conn, request, from }) = fork else {
            // The client has disconnected, and no other one knows the copy.
            self.parts.cx.outputs.push_back(Output::Delete { session: id.clone() });
            return;
        };
        let mut result: Map<String, Value> =
            serde_json::from_str(state.setup.as_str()).unwrap_or_default();
        result.insert("sessionId".into(), json!(&**id));
        let heard = state.upto();
        let mut session = Session::new(id.clone(), state, SessionStage::Asleep);
        session.count_queue(&self.parts.cx.retained_bytes);
        self.sessions.by_id.insert(id.clone(), session);
        let why = "the session was forked during the turn";
        if !is_planted("fork-with-open-turn") {
            self.sessions.end_open_work(
                &mut self.parts.cx,
                id,
                "the session was forked before it was answered",
                why,
            );
        }
        self.subscribe(id, conn, EventSubscriber::new(heard, Phase::Live));
        let answer = Frame::result_for(&request, &Value::from(result).to_string());
        self.sessions.by_id.get_mut(id).expect("inserted above").opener = Some((conn, request));
        self.answer_in(id, conn, &answer);
        self.parts.cx.note(Note::SessionForked { session: id.clone(), from });
    }

    pub(crate) fn on_copy_failed(&mut self, id: &SessionId, why: &str) {
        if let Some(SessionFork { conn, request, .. }) = self.sessions.forks.remove(id) {
            let why = format!("the session could not be copied: {why}");
            self.parts.clients.answer_request(
                &mut self.parts.cx,
                conn,
                &request,
                Err(&Fault::Internal { why }),
            );
        }
    }
}

/// The event after which the copy diverges: the last durable one, or an earlier one.
fn branches_at(params: &Map<String, Value>, durable: Seq) -> Result<Seq, Fault> {
    let named = params.get("_meta").and_then(|it| it.pointer("/jackfield/seq"));
    let seq = named.map_or(Some(durable.0), Value::as_u64);
    let there = |it: &u64| (1..=durable.0).contains(it);
    let why = || format!("`_meta.jackfield.seq` must be a number from 1 to {}", durable.0);
    seq.filter(there).map(Seq).ok_or_else(|| Fault::InvalidParams { why: why() })
}

/// The parameters of the copy: those of the session, except for what the client sent.
fn opened_with(state: &SessionSummary, said: &Map<String, Value>) -> (String, RawJson) {
    let mut params: Map<String, Value> =
        serde_json::from_str(state.params.as_str()).unwrap_or_default();
    for name in ["cwd", "mcpServers", "additionalDirectories"] {
        if let Some(value) = said.get(name) {
            params.insert(name.into(), value.clone());
        }
    }
    let cwd = said.get("cwd").and_then(Value::as_str).unwrap_or(&state.cwd).to_owned();
    (cwd, RawJson::trusted(Value::from(params).to_string()))
}
