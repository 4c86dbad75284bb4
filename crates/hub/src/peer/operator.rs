//! What only the operator may do, and an agent and its child processes may not.
//!
//! Every request, notification and answer of a client is checked here. The daemon reports where the process of a client is
//! ([`PeerPlace`]) when it connects. A client whose place is unknown is refused like one that belongs to an agent:
//! otherwise a process could connect, pass on its socket and end. A client without a [`PeerProcess`] connected over TCP
//! or HTTP and has the token.

use super::Clients;
use crate::{ConnId, PeerPlace, PeerProcess, unique_json};
use jackfield_events::RawJson;
use jackfield_protocol::{
    Frame,
    acp::{Method, OperatorRule},
};
use serde_json::Value;

impl Clients {
    /// The process of a client as events name it, if it is known.
    pub(crate) fn describe_peer(&self, conn: ConnId) -> Option<RawJson> {
        self.connections.get(&conn)?.peer.as_ref().map(PeerProcess::to_json)
    }

    pub(crate) fn is_operator(&self, conn: ConnId) -> bool {
        self.find_untrusted_peer(conn).is_none()
    }

    /// The process of a client that may not be the operator.
    pub(crate) fn find_untrusted_peer(&self, conn: ConnId) -> Option<&PeerProcess> {
        let peer = self.connections.get(&conn)?.peer.as_ref()?;
        (peer.place != PeerPlace::Outside).then_some(peer)
    }
}

/// Whether only the operator may send this request or notification.
pub(crate) fn is_for_operator(frame: &Frame) -> bool {
    match frame.known_method().map(|it| it.row().operator) {
        Some(OperatorRule::Refused) => true,
        Some(OperatorRule::Checked) => needs_operator(frame),
        Some(OperatorRule::Allowed) | None => false,
    }
}

/// What happened, why, and the way out.
pub(crate) fn refusal_reason(peer: &PeerProcess, operation: &str) -> String {
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

/// Whether a request chooses an agent, has an MCP server that is a program, names a configured server, or asks for an
/// agent that approves everything, cannot be limited by rules or has another sandbox. A notation that ACP does not define counts as a program,
/// because an agent may understand it. An environment is ignored and not refused: every command sends its own.
fn needs_operator(frame: &Frame) -> bool {
    let Ok(params) = unique_json::parse(frame.params().unwrap_or("{}")) else { return true };
    if frame.known_method() == Some(Method::ControlConnect) {
        let chooses = |name: &str| !params[name].is_null();
        return chooses("agent") || chooses("sandbox") || params["unenforced"] == true;
    }
    let options = params.pointer("/_meta/jackfield").unwrap_or(&Value::Null);
    if ["mcp", "approve", "sandbox"].iter().any(|it| !options[*it].is_null()) {
        return true;
    }
    match &params["mcpServers"] {
        Value::Null => false,
        Value::Array(servers) => servers.iter().any(|it| {
            let is_remote = matches!(it["type"].as_str(), Some("http" | "sse" | "acp"));
            !is_remote || it.get("command").is_some()
        }),
        _ => true,
    }
}
