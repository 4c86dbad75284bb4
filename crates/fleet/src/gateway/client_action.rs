//! Actions of clients for the audit log: which client opened, changed, read or ended what.

use super::frame_fields::{fault_code, session_of};
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

/// The client of an action.
#[derive(Debug)]
pub(super) struct ClientIdentity {
    pub(super) conn: ConnId,
    pub(super) tenant: Option<String>,
    pub(super) name: Option<String>,
}

impl ClientAction {
    /// A request and its response.
    pub(super) fn from_response(
        identity: ClientIdentity,
        request: &Frame,
        answer: &Frame,
    ) -> ClientAction {
        let method = request.method().unwrap_or_default();
        // A new session has its id in the response.
        let session = session_of(answer).or_else(|| session_of(request));
        ClientAction::new(identity, &method, session, None, answer)
    }

    /// A client's answer to a request that went to all clients.
    pub(super) fn from_choice(
        identity: ClientIdentity,
        method: &str,
        session: Option<SessionId>,
        answer: &Frame,
    ) -> ClientAction {
        let chosen = answer.result().and_then(|it| serde_json::from_str::<Value>(it).ok());
        let chosen = chosen.and_then(|it| {
            let option = it.pointer("/outcome/optionId").or_else(|| it.pointer("/outcome/outcome"));
            option.or_else(|| it.get("action"))?.as_str().map(str::to_owned)
        });
        ClientAction::new(identity, method, session, chosen, answer)
    }

    fn new(
        identity: ClientIdentity,
        method: &str,
        session: Option<SessionId>,
        chosen: Option<String>,
        answer: &Frame,
    ) -> ClientAction {
        ClientAction {
            conn: identity.conn,
            tenant: identity.tenant,
            client: identity.name,
            method: method.to_owned(),
            session,
            answer: chosen,
            refused: answer
                .error()
                .map(|error| fault_code(answer).unwrap_or_else(|| error_number(error))),
        }
    }
}

/// Whether a request and its response are audited.
pub(super) fn is_audited(request: &Frame) -> bool {
    request.known_method().is_none_or(|it| it.row().audit != AuditRule::Skipped)
}

/// The number of an error without a Jackfield code.
fn error_number(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    error["code"].to_string()
}
