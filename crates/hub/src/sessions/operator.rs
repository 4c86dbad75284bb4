//! Refuses operations of clients that run below an agent, and logs that in the sessions that they concern.

use super::Sessions;
use crate::{ConnId, Note, PeerPlace, PeerProcess, SessionId, parts::HubParts, peer};
use jackfield_events::{EventBody, OperationRefused};
use jackfield_protocol::{Fault, Frame};
use std::{collections::BTreeSet, sync::Arc};

const OPERATION_CHARS_MAX: usize = 64;

impl Sessions {
    /// Refuses a request or notification that only the operator may send.
    pub(crate) fn require_operator(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<(), Fault> {
        if parts.clients.is_operator(conn) || !peer::is_for_operator(frame) {
            return Ok(());
        }
        let session = self.find_session(frame).ok().map(|it| it.id.clone());
        let method = frame.method().unwrap_or_default();
        self.refuse_operation(parts, conn, &method, session.as_ref())
    }

    /// Whether a client may answer a request to the user. A refusal is logged.
    pub(crate) fn may_answer_user_request(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &SessionId,
        number: u64,
    ) -> bool {
        if parts.clients.is_operator(conn) {
            return true;
        }
        let ask = self.by_id.get(id).and_then(|it| it.asks.get(&number));
        let method = ask.and_then(|it| it.frame.method()).unwrap_or_default().into_owned();
        self.refuse_operation(parts, conn, &method, Some(id)).is_ok()
    }

    /// `_jackfield/operator`: a command that reads or changes files of the operator asks first whether it was started by an
    /// agent.
    pub(crate) fn check_operation(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params = frame.params_value();
        let named = params["operation"].as_str();
        let Some(operation) = named.filter(|it| it.chars().count() <= OPERATION_CHARS_MAX) else {
            let why = format!("`operation` must be a text of at most {OPERATION_CHARS_MAX} chars");
            return Err(Fault::InvalidParams { why });
        };
        self.refuse_operation(parts, conn, operation, None)?;
        parts.clients.answer_request(&mut parts.cx, conn, id, Ok("{}"));
        Ok(())
    }

    /// Refuses the operation of a client that is not the operator, logs that in the sessions that it concerns, and
    /// reports it.
    fn refuse_operation(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        operation: &str,
        target: Option<&SessionId>,
    ) -> Result<(), Fault> {
        let Some(peer) = parts.clients.find_untrusted_peer(conn).cloned() else { return Ok(()) };
        let by = parts.clients.describe_client(conn);
        let why: Arc<str> = peer::refusal_reason(&peer, operation).into();
        for session in self.concerned_sessions(parts, &peer, target) {
            let refused = OperationRefused {
                operation: operation.into(),
                by: Arc::clone(&by),
                why: Arc::clone(&why),
                peer: Some(peer.to_json()),
            };
            self.with(&session, |it| {
                it.append_event(&mut parts.cx, EventBody::Refused(refused));
            });
        }
        let operation = operation.to_owned();
        parts.cx.note(Note::OperationRefused { conn, operation, by, peer });
        Err(Fault::NotAllowed { why: why.to_string() })
    }

    /// The sessions of the agent that the client belongs to, and the session that it named.
    fn concerned_sessions(
        &self,
        parts: &HubParts,
        peer: &PeerProcess,
        target: Option<&SessionId>,
    ) -> BTreeSet<SessionId> {
        let own = match peer.place {
            PeerPlace::BelowAgent(agent) => self.served_by(parts, agent),
            PeerPlace::Outside | PeerPlace::Unknown => Vec::new(),
        };
        let known = own.into_iter().chain(target.cloned());
        known.filter(|it| self.by_id.get(it).is_some_and(|it| !it.is_opening())).collect()
    }
}
