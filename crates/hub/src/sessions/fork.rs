//! `session/fork`: copies the log of a session up to an event into a new session. This works with every agent; the agent
//! restores the copy when it is first used.

use super::Sessions;
use crate::{
    ConnId, Output, Seq, SessionId, parts::HubParts, peer::check_setup, session::Session,
    session_name::tenant_of,
};
use jackfield_events::{EventBody, RawJson, SessionEvent, SessionForked, SessionSummary};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Map, Value};

/// A pending copy. No client knows the new session yet.
#[derive(Debug)]
pub(super) struct SessionFork {
    pub(super) conn: ConnId,
    pub(super) request: Box<str>,
    pub(super) from: SessionId,
}

impl Sessions {
    pub(crate) fn fork_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session = self.find_session(frame)?;
        check_setup(frame)?;
        parts.storage.require_working()?;
        let params: Map<String, Value> = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let from = session.id.clone();
        let seq = fork_point(&params, session.log.durable())?;
        let (cwd, params) = fork_params(session.summary(), &params);
        let tenant = tenant_of(&from).filter(|_| !is_planted("fork-without-tenant"));
        let to = self.new_session_id(&mut parts.cx, tenant);
        let body =
            EventBody::Forked(SessionForked { from: from.clone(), seq_there: seq, cwd, params });
        let last = SessionEvent { seq: seq.next(), at: parts.cx.now, body };
        let fork = SessionFork { conn, request: id.into(), from: from.clone() };
        self.forks.insert(to.clone(), fork);
        parts.cx.outputs.push_back(Output::Copy { from, upto: seq, to, last });
        Ok(())
    }

    /// The copy is stored, up to the event that describes it.
    pub(crate) fn on_copied(
        &mut self,
        parts: &mut HubParts,
        id: &SessionId,
        state: SessionSummary,
    ) {
        let fork = self.forks.remove(id);
        let fork = fork.filter(|it| parts.clients.connections.contains_key(&it.conn));
        let Some(SessionFork { conn, request, from }) = fork else {
            // The client has disconnected, and no other one knows the copy.
            parts.cx.outputs.push_back(Output::Delete { session: id.clone() });
            return;
        };
        let mut session = Session::recovered(id.clone(), state);
        session.on_forked(parts, conn, request, from);
        self.by_id.insert(session);
    }

    pub(crate) fn on_copy_failed(&mut self, parts: &mut HubParts, id: &SessionId, why: &str) {
        if let Some(SessionFork { conn, request, .. }) = self.forks.remove(id) {
            let fault = Fault::Internal { why: format!("the session could not be copied: {why}") };
            parts.clients.answer_request(&mut parts.cx, conn, &request, Err(&fault));
        }
    }
}

/// The event after which the copy diverges: the last durable one, or an earlier one.
fn fork_point(params: &Map<String, Value>, durable: Seq) -> Result<Seq, Fault> {
    let named = params.get("_meta").and_then(|it| it.pointer("/jackfield/seq"));
    let seq = named.map_or(Some(durable.0), Value::as_u64);
    let exists = |it: &u64| (1..=durable.0).contains(it);
    let why = || format!("`_meta.jackfield.seq` must be a number from 1 to {}", durable.0);
    seq.filter(exists).map(Seq).ok_or_else(|| Fault::InvalidParams { why: why() })
}

/// The parameters of the copy: those of the session, except for what the client sent.
fn fork_params(state: &SessionSummary, sent: &Map<String, Value>) -> (String, RawJson) {
    let mut params: Map<String, Value> =
        serde_json::from_str(state.params.as_str()).unwrap_or_default();
    for name in ["cwd", "mcpServers", "additionalDirectories"] {
        if let Some(value) = sent.get(name) {
            params.insert(name.into(), value.clone());
        }
    }
    let cwd = sent.get("cwd").and_then(Value::as_str).unwrap_or(&state.cwd).to_owned();
    (cwd, RawJson::trusted(Value::from(params).to_string()))
}
