//! What clients do that somebody may want to know of later: who changed, opened, read or ended what.

use super::{
    Gateway, GatewayOutput, client::Client, host_connection::fault_name, opening::Opening,
};
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::{Frame, acp::AuditRule};
use serde_json::Value;

/// Something that a client did, or was refused. What was said is in the log of the session, not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAction {
    pub conn: ConnId,
    /// In whose name it came in.
    pub tenant: Option<String>,
    /// What the client calls itself.
    pub client: Option<String>,
    pub method: String,
    pub session: Option<SessionId>,
    /// What it chose, where it was asked.
    pub answer: Option<String>,
    /// The error it got.
    pub refused: Option<String>,
}

impl Gateway {
    /// A request is answered.
    pub(super) fn on_done(&mut self, conn: ConnId, request: &Frame, answer: &Frame) {
        let method = request.method().expect("a request has a method");
        if request.known_method().is_some_and(|it| it.row().audit == AuditRule::Skipped) {
            return;
        }
        // What was opened has its name in the answer.
        let session = answer.session_id().or_else(|| request.session_id());
        self.tell_deed(conn, &method, session.map(|it| SessionId::from(&*it)), None, answer);
    }

    /// A client has answered what an agent asked of whoever is there.
    pub(super) fn on_chosen(
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
        self.tell_deed(conn, method, session, chosen, answer);
    }

    fn tell_deed(
        &mut self,
        conn: ConnId,
        method: &str,
        session: Option<SessionId>,
        chosen: Option<String>,
        answer: &Frame,
    ) {
        let deed = ClientAction {
            conn,
            tenant: self.tenant_name(conn).map(str::to_owned),
            client: self.clients.get(&conn).and_then(called),
            method: method.to_owned(),
            session,
            answer: chosen,
            refused: answer.error().map(|error| fault_name(answer).unwrap_or_else(|| code(error))),
        };
        self.outputs.push_back(GatewayOutput::ClientAction(deed));
    }
}

fn called(client: &Client) -> Option<String> {
    let hello = client.opening.frames[Opening::HELLO].as_ref()?;
    let params: Value = serde_json::from_str(hello.params()?).ok()?;
    params.pointer("/clientInfo/name")?.as_str().map(str::to_owned)
}

/// The number of an error that has no name of ours.
fn code(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    error["code"].to_string()
}
