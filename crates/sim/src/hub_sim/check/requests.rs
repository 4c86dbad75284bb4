//! Every request gets exactly one answer, meant for it, and not before what it must follow.

use super::{Hearing, hold};
use crate::hub_sim::peek;
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId};

/// A client's request that waits for its answer.
#[derive(Debug, Clone)]
pub(in crate::hub_sim) struct Request {
    pub(in crate::hub_sim) kind: Kind,
    pub(in crate::hub_sim) token: u64,
    /// No other request has it: of two with one mark, the second says the first again.
    pub(in crate::hub_sim) number: u64,
    pub(in crate::hub_sim) session: Option<SessionId>,
    /// The hub has it.
    pub(in crate::hub_sim) delivered: bool,
    /// It says again what was over when the hub took it.
    pub(in crate::hub_sim) over: bool,
    /// The log's end when the hub took it, or when the agent's answer came: the answer follows that.
    pub(in crate::hub_sim) follows: u64,
    /// The prompt or request was withdrawn or cancelled by the client.
    pub(in crate::hub_sim) withdrawn: bool,
    /// How it heard the session before it asked to hear it otherwise.
    pub(in crate::hub_sim) before: (Option<Hearing>, Option<bool>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub_sim) enum Kind {
    Connect,
    Initialize,
    New,
    Load,
    Resume,
    Attach,
    Prompt,
    Fork,
    /// What waits in a session.
    Queue,
    Withdraw,
    Release,
    /// Changes a setting; the agent's yes is written down.
    Setting,
    /// A method nobody knows, in a session or for the agent as a whole.
    Echo,
    Close,
    Delete,
    List,
    Sessions,
    Asks,
    /// An answer to an ask, from somebody who need not be attached.
    Answer,
    Status,
}

impl Kind {
    /// Whether it makes its client hear a session.
    pub(in crate::hub_sim) fn attaches(self) -> bool {
        matches!(self, Kind::Load | Kind::Resume | Kind::Attach)
    }
}

/// An answer as a client hears it.
#[derive(Debug)]
pub(in crate::hub_sim) struct Answer<'a> {
    pub(in crate::hub_sim) conn: ConnId,
    pub(in crate::hub_sim) id: &'a str,
    pub(in crate::hub_sim) text: &'a Bytes,
    pub(in crate::hub_sim) is_result: bool,
}

impl Answer<'_> {
    /// The request this answers.
    pub(in crate::hub_sim) fn every_request_gets_one_answer(
        &self,
        open: Option<Request>,
    ) -> Request {
        let asked = open.filter(|it| it.delivered);
        hold("every_request_gets_one_answer", asked.is_some(), || {
            format!("{} heard {:?} and waits for no answer under {}", self.conn, self.text, self.id)
        });
        asked.expect("held above")
    }

    /// Agents put the mark of the request into their answer.
    pub(in crate::hub_sim) fn an_answer_reaches_who_asked(&self, request: &Request) {
        if request.kind.attaches() || matches!(request.kind, Kind::Initialize | Kind::Fork) {
            return;
        }
        let token = peek::token(self.text);
        hold("an_answer_reaches_who_asked", token.is_none_or(|it| it == request.token), || {
            format!("{} asked {request:?} and heard {:?}", self.conn, self.text)
        });
    }

    /// A good answer of an agent that the hub promised to pass on is the agent's own.
    pub(in crate::hub_sim) fn a_good_answer_is_the_agents(&self, request: &Request) {
        let forwarded = matches!(request.kind, Kind::New | Kind::Setting | Kind::Echo);
        let holds = !forwarded || !self.is_result || peek::token(self.text).is_some();
        hold("a_good_answer_is_the_agents", holds, || {
            format!("{} asked {request:?} and heard {:?}", self.conn, self.text)
        });
    }
}
