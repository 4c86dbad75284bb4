//! Each request gets exactly one response, which is its own and follows the events it must follow.

use super::{DeliveryPosition, check_invariant};
use crate::hub_sim::markers;
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId};

/// A client's request that waits for its response.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub(in crate::hub_sim) struct ClientRequest {
    pub(in crate::hub_sim) kind: RequestKind,
    pub(in crate::hub_sim) token: u64,
    /// Unique. If two requests have the same mark, the second repeats the first.
    pub(in crate::hub_sim) number: u64,
    pub(in crate::hub_sim) session: Option<SessionId>,
    /// The hub has received it.
    pub(in crate::hub_sim) delivered: bool,
    /// It repeats a prompt that had ended when the hub received it.
    pub(in crate::hub_sim) repeats_ended_prompt: bool,
    /// The end of the log when the hub received it, or when the agent's response came: the response follows that.
    pub(in crate::hub_sim) follows_seq: u64,
    /// The client has cancelled the request.
    pub(in crate::hub_sim) withdrawn: bool,
    /// The session was closed while the request was open. Its error may still wait for the client to catch up.
    pub(in crate::hub_sim) session_was_closed: bool,
    /// The subscription before this request changed it.
    pub(in crate::hub_sim) earlier_subscription: (Option<DeliveryPosition>, Option<bool>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum RequestKind {
    Connect,
    Initialize,
    New,
    Load,
    Resume,
    Attach,
    Prompt,
    Fork,
    /// Lists the queued prompts.
    Queue,
    /// Reads a page of the log.
    ReadLog,
    Withdraw,
    MovePrompt,
    Release,
    /// Changes a setting; the agent's consent is logged.
    Setting,
    /// An unknown method, in a session or for the agent as a whole.
    Echo,
    Close,
    Delete,
    List,
    Sessions,
    Asks,
    /// An answer to an ask; the client need not be attached.
    Answer,
    Status,
}

impl RequestKind {
    /// Whether it subscribes its client to a session.
    pub(in crate::hub_sim) fn is_attach(self) -> bool {
        matches!(self, RequestKind::Load | RequestKind::Resume | RequestKind::Attach)
    }
}

/// A response as a client receives it.
#[derive(Debug)]
pub(in crate::hub_sim) struct ReceivedResponse<'a> {
    pub(in crate::hub_sim) conn: ConnId,
    pub(in crate::hub_sim) id: &'a str,
    pub(in crate::hub_sim) text: &'a Bytes,
    pub(in crate::hub_sim) is_result: bool,
}

impl ReceivedResponse<'_> {
    /// Returns the request of this response.
    pub(in crate::hub_sim) fn request_gets_exactly_one_response(
        &self,
        open: Option<ClientRequest>,
    ) -> ClientRequest {
        let asked = open.filter(|it| it.delivered);
        check_invariant("request_gets_exactly_one_response", asked.is_some(), || {
            format!(
                "{} received {:?} and has no open request with id {}",
                self.conn, self.text, self.id
            )
        });
        asked.expect("checked above")
    }

    /// Agents copy the mark of the request into their response.
    pub(in crate::hub_sim) fn response_reaches_its_requester(&self, request: &ClientRequest) {
        if request.kind.is_attach()
            || matches!(
                request.kind,
                RequestKind::Initialize | RequestKind::Fork | RequestKind::ReadLog
            )
        {
            return;
        }
        let token = markers::find_token(self.text);
        check_invariant(
            "response_reaches_its_requester",
            token.is_none_or(|it| it == request.token),
            || format!("{} asked {request:?} and received {:?}", self.conn, self.text),
        );
    }

    /// A successful response to a forwarded request comes from the agent.
    pub(in crate::hub_sim) fn forwarded_result_comes_from_the_agent(
        &self,
        request: &ClientRequest,
    ) {
        let forwarded =
            matches!(request.kind, RequestKind::New | RequestKind::Setting | RequestKind::Echo);
        let holds = !forwarded || !self.is_result || markers::find_token(self.text).is_some();
        check_invariant("forwarded_result_comes_from_the_agent", holds, || {
            format!("{} asked {request:?} and received {:?}", self.conn, self.text)
        });
    }
}
