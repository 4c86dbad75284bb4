//! `session/fork`: a session branches off another at any event. The log up to there is copied, so
//! it works for every agent; what the agent makes of it shows when the copy is woken.

use super::{Session, Stage};
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    fanout::{Phase, Subscriber},
    peer::check_setup,
    tenant::tenant_of,
};
use jackfield_events::{EventBody, RawJson, SessionEvent, SessionForked, SessionSummary};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Map, Value, json};

/// A copy under way, and who asked for it. Nobody knows the new session yet.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(super) conn: ConnId,
    pub(super) request: Box<str>,
    pub(super) from: SessionId,
}

impl Hub {
    pub(crate) fn on_fork(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let from = self.session_of(frame)?;
        check_setup(frame)?;
        self.require_storage()?;
        let params: Map<String, Value> = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let session = &self.sessions[&from];
        let seq = branches_at(&params, session.log.durable())?;
        let (cwd, params) = opened_with(session.summary(), &params);
        let to = self.new_name(tenant_of(&from).filter(|_| !is_planted("fork-without-tenant")));
        let body =
            EventBody::Forked(SessionForked { from: from.clone(), seq_there: seq, cwd, params });
        let last = SessionEvent { seq: seq.next(), at: self.cx.now, body };
        let fork = Fork { conn, request: id.into(), from: from.clone() };
        self.forks.insert(to.clone(), fork);
        self.cx.outputs.push_back(Output::Copy { from, upto: seq, to, last });
        Ok(())
    }

    /// The copy is in the journal, up to the event that says what it is.
    pub(crate) fn on_copied(&mut self, id: &SessionId, state: SessionSummary) {
        let fork = self.forks.remove(id).filter(|it| self.conns.contains_key(&it.conn));
        let Some(Fork { conn, request, from }) = fork else {
            // Whoever asked for it has left, and nobody else knows of it.
            self.cx.outputs.push_back(Output::Delete { session: id.clone() });
            return self.after_stop();
        };
        let mut result: Map<String, Value> =
            serde_json::from_str(state.setup.as_str()).unwrap_or_default();
        result.insert("sessionId".into(), json!(&**id));
        let heard = state.upto();
        let mut session = Session::new(state, Stage::Asleep);
        session.count_queue(&self.cx.retained_bytes);
        self.sessions.insert(id.clone(), session);
        let why = "the session was forked during the turn";
        if !is_planted("fork-with-open-turn") {
            self.settle(id, "the session was forked before it was answered", why);
        }
        self.subscribe(id, conn, Subscriber::new(heard, Phase::Live));
        let answer = Frame::result_for(&request, &Value::from(result).to_string());
        self.sessions.get_mut(id).expect("inserted above").opener = Some((conn, request));
        self.answer_in(id, conn, &answer);
        self.note(Note::SessionForked { session: id.clone(), from });
        self.after_stop();
    }

    pub(crate) fn on_copy_failed(&mut self, id: &SessionId, why: &str) {
        if let Some(Fork { conn, request, .. }) = self.forks.remove(id) {
            let why = format!("the session could not be copied: {why}");
            self.answer(conn, &request, Err(&Fault::Internal { why }));
        }
        self.after_stop();
    }
}

/// The event after which the copy goes its own way: the last that anyone can have heard, or one
/// before it.
fn branches_at(params: &Map<String, Value>, durable: Seq) -> Result<Seq, Fault> {
    let named = params.get("_meta").and_then(|it| it.pointer("/jackfield/seq"));
    let seq = named.map_or(Some(durable.0), Value::as_u64);
    let there = |it: &u64| (1..=durable.0).contains(it);
    let why = || format!("`_meta.jackfield.seq` must be a number from 1 to {}", durable.0);
    seq.filter(there).map(Seq).ok_or_else(|| Fault::InvalidParams { why: why() })
}

/// What the copy is opened with: what the session was, save for what the client says anew.
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
