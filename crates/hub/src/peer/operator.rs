//! What only the operator may do, and an agent and its child processes may not.
//!
//! Every request, notification and answer of a client is checked here. The daemon reports where the process of a client is
//! ([`PeerPlace`]) when it connects. A client whose place is unknown is refused like one that belongs to an agent:
//! otherwise a process could connect, pass on its socket and end. A client without a [`PeerProcess`] connected over TCP
//! or HTTP and has the token.

use crate::{ConnId, Hub, Note, PeerPlace, PeerProcess, SessionId, peer::Clients, unique_json};
use jackfield_events::{EventBody, OperationRefused, RawJson};
use jackfield_protocol::{Fault, Frame, acp::OperatorRule};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

const OPERATION_CHARS_MAX: usize = 64;

impl Clients {
    /// The process of a client as events name it, if it is known.
    pub(crate) fn describe_peer(&self, conn: ConnId) -> Option<RawJson> {
        self.connections.get(&conn)?.peer.as_ref().map(PeerProcess::to_json)
    }

    pub(super) fn is_operator(&self, conn: ConnId) -> bool {
        self.find_untrusted_peer(conn).is_none()
    }

    /// The process of a client that may not be the operator.
    fn find_untrusted_peer(&self, conn: ConnId) -> Option<&PeerProcess> {
        let peer = self.connections.get(&conn)?.peer.as_ref()?;
        (peer.place != PeerPlace::Outside).then_some(peer)
    }
}

impl Hub {
    /// Refuses a request or notification that only the operator may send.
    pub(crate) fn require_operator(&mut self, conn: ConnId, frame: &Frame) -> Result<(), Fault> {
        if self.parts.clients.find_untrusted_peer(conn).is_none() {
            return Ok(());
        }
        let method = frame.method().unwrap_or_default();
        let refused = match frame.known_method().map(|it| it.row().operator) {
            Some(OperatorRule::Refused) => true,
            Some(OperatorRule::ServerCommands) => has_server_command(frame),
            Some(OperatorRule::Allowed) | None => false,
        };
        if !refused {
            return Ok(());
        }
        let session = self.sessions.find_session(frame).ok();
        self.refuse_operation(conn, &method, session.as_ref())
    }

    /// Refuses an answer that only the operator may give.
    pub(crate) fn may_settle(&mut self, conn: ConnId, id: &SessionId, number: u64) -> bool {
        if self.parts.clients.find_untrusted_peer(conn).is_none() {
            return true;
        }
        let ask = self.sessions.by_id.get(id).and_then(|it| it.asks.get(&number));
        let method = ask.and_then(|it| it.frame.method()).unwrap_or_default().into_owned();
        self.refuse_operation(conn, &method, Some(id)).is_ok()
    }

    /// `_jackfield/operator`: a command that reads or changes files of the operator asks first whether it was started by an
    /// agent.
    pub(super) fn on_operator(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let named = params["operation"].as_str();
        let Some(operation) = named.filter(|it| it.chars().count() <= OPERATION_CHARS_MAX) else {
            let why = format!("`operation` must be a text of at most {OPERATION_CHARS_MAX} chars");
            return Err(Fault::InvalidParams { why });
        };
        self.refuse_operation(conn, operation, None)?;
        self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok("{}"));
        Ok(())
    }

    /// Refuses the operation, logs that in the sessions that it concerns, and reports it.
    fn refuse_operation(
        &mut self,
        conn: ConnId,
        operation: &str,
        target: Option<&SessionId>,
    ) -> Result<(), Fault> {
        let Some(peer) = self.parts.clients.find_untrusted_peer(conn).cloned() else {
            return Ok(());
        };
        let by = self
            .parts
            .clients
            .connections
            .get(&conn)
            .map_or_else(|| "gone".into(), |it| it.shown(conn));
        let why: Arc<str> = reason(&peer, operation).into();
        for session in self.concerned(&peer, target) {
            let operation = operation.into();
            let (by, peer, why) = (Arc::clone(&by), Some(peer.to_json()), Arc::clone(&why));
            self.sessions.append_event(
                &mut self.parts.cx,
                &session,
                EventBody::Refused(OperationRefused { operation, by, why, peer }),
            );
        }
        self.parts.cx.note(Note::OperationRefused {
            conn,
            operation: operation.to_owned(),
            by,
            peer,
        });
        Err(Fault::NotAllowed { why: why.to_string() })
    }

    /// The sessions of the agent that the client belongs to, and the session that it named.
    fn concerned(&self, peer: &PeerProcess, target: Option<&SessionId>) -> BTreeSet<SessionId> {
        let own = match peer.place {
            PeerPlace::BelowAgent(agent) => self.served_by(agent),
            PeerPlace::Outside | PeerPlace::Unknown => Vec::new(),
        };
        let known = own.into_iter().chain(target.cloned());
        known.filter(|it| self.sessions.by_id.get(it).is_some_and(|it| !it.is_opening())).collect()
    }
}

/// What happened, why, and the way out.
fn reason(peer: &PeerProcess, operation: &str) -> String {
    match peer.place {
        PeerPlace::BelowAgent(agent) => format!(
            "`{operation}` is for the operator, and {peer} runs below an agent of this daemon \
             ({agent}); run the command in your own terminal, which no agent has started"
        ),
        PeerPlace::Outside | PeerPlace::Unknown => format!(
            "`{operation}` is for the operator, and it cannot be told whether {peer} runs below an \
             agent: it had ended, or its ancestors had; run the command in your own terminal and \
             let the process that connects wait for its answer"
        ),
    }
}

/// Whether a request has an MCP server that is a program. A notation that ACP does not define counts as one, because an
/// agent may understand it.
fn has_server_command(frame: &Frame) -> bool {
    let Ok(params) = unique_json::parse(frame.params().unwrap_or("{}")) else { return true };
    match &params["mcpServers"] {
        Value::Null => false,
        Value::Array(servers) => servers.iter().any(|it| {
            let is_remote = matches!(it["type"].as_str(), Some("http" | "sse" | "acp"));
            !is_remote || it.get("command").is_some()
        }),
        _ => true,
    }
}
