//! Requests that were sent to an agent and are not answered.

use super::RestoreMethod;
use crate::{ConnId, SessionId, budget::ByteCharge};
use jackfield_protocol::Frame;

/// A request that was sent to an agent, and what the answer is for.
#[derive(Debug)]
pub(crate) enum PendingRequest {
    Initialize,
    /// A request of a client. `setting` is set if a successful answer is logged as a setting of the session.
    Client {
        conn: ConnId,
        id: Box<str>,
        session: Option<SessionId>,
        setting: Option<Frame>,
        /// The bytes of the request until it is answered.
        _charge: ByteCharge,
    },
    New(SessionId),
    /// A step of restoring a session.
    Reopen(SessionId, RestoreMethod),
    /// A setting of a session that is being restored.
    Setting(SessionId, String),
    Prompt(SessionId, u64),
    /// The answer is ignored. If it names a session, that session is closed.
    Unwanted,
}

impl PendingRequest {
    /// Whether the process can serve a session after the answer.
    pub(crate) fn is_start(&self) -> bool {
        matches!(
            self,
            PendingRequest::Initialize | PendingRequest::New(_) | PendingRequest::Reopen(..)
        )
    }

    /// Whether the answer has the id of a session.
    pub(crate) fn is_answered_with_session_id(&self) -> bool {
        matches!(
            self,
            PendingRequest::New(_)
                | PendingRequest::Reopen(_, RestoreMethod::New | RestoreMethod::Fork)
                | PendingRequest::Unwanted
        )
    }

    /// Whether the answer is used.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, PendingRequest::Unwanted)
    }

    /// The session that the request concerns.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            PendingRequest::New(id)
            | PendingRequest::Reopen(id, _)
            | PendingRequest::Setting(id, _)
            | PendingRequest::Prompt(id, _) => Some(id),
            PendingRequest::Client { session, .. } => session.as_ref(),
            PendingRequest::Initialize | PendingRequest::Unwanted => None,
        }
    }
}
