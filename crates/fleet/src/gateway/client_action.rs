//! Actions of clients for the audit log: which client opened, changed, read or ended what.

use super::{
    Gateway, GatewayOutput, client::Client, handshake::Handshake, host_connection::fault_code,
};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::{Frame, acp::AuditRule};
use serde_json::Value;

/// An action of a client, successful or refused. The content is in the log of the session, not
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAction {
    pub conn: ConnId,
    /// The tenant of the client.
    pub tenant: Option<String>,
    /// The name in the client's `initialize`.
    pub client: Option<String>,
    pub method: String,
    pub session: Option<SessionId>,
    /// The option that the client chose, if the action answers a request.
    pub answer: Option<String>,
    /// The code of the error response.
    pub refused: Option<String>,
}

impl Gateway {
    /// Audits the response to a request.
    pub(super) fn audit_response(&mut self, conn: ConnId, request: &Frame, answer: &Frame) {
        let method = request.method().expect("a request has a method");
        if request.known_method().is_some_and(|it| it.row().audit == AuditRule::Skipped) {
            return;
        }
        // A new session has its id in the response.
        let session = answer.session_id().or_else(|| request.session_id());
        self.output_action(conn, &method, session.map(|it| SessionId::from(&*it)), None, answer);
    }

    /// Audits a client's answer to a request that went to all clients.
    pub(super) fn audit_choice(
        &mut self,
        conn: ConnId,
        method: &str,
        session: Option<SessionId>,
        answer: &Frame,
    ) {
        let chosen = answer.result().and_then(|it| serde_json::from_str::<Value>(it).ok());
        let chosen = chosen.and_then(|it| {
            let option = it.pointer("/outcome/optionId").or_else(|| it.pointer("/outcome/outcome"));
            option.or_else(|| it.get("action"))?.as_str().map(str::to_owned)
        });
        self.output_action(conn, method, session, chosen, answer);
    }

    fn output_action(
        &mut self,
        conn: ConnId,
        method: &str,
        session: Option<SessionId>,
        chosen: Option<String>,
        answer: &Frame,
    ) {
        let action = ClientAction {
            conn,
            tenant: self.tenant_name(conn).map(str::to_owned),
            client: self.clients.get(&conn).and_then(client_name),
            method: method.to_owned(),
            session,
            answer: chosen,
            refused: answer
                .error()
                .map(|error| fault_code(answer).unwrap_or_else(|| error_number(error))),
        };
        self.outputs.push_back(GatewayOutput::ClientAction(action));
    }
}

fn client_name(client: &Client) -> Option<String> {
    let initialize = client.handshake.frames[Handshake::INITIALIZE].as_ref()?;
    let params: Value = serde_json::from_str(initialize.params()?).ok()?;
    params.pointer("/clientInfo/name")?.as_str().map(str::to_owned)
}

/// The number of an error without a Jackfield code.
fn error_number(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    error["code"].to_string()
}
