//! What a session asks of the collection of all sessions. Messages are handled in order before
//! [`Hub::handle`](crate::Hub::handle) returns.

use crate::{AgentId, SessionId};
use jackfield_events::UserAnswered;

#[derive(Debug)]
pub(crate) enum HubMessage {
    /// The session needs a process: one is found, started, or queued for.
    FindAgent(SessionId),
    /// The agent of the session is ready for the next restore step.
    TryRestoreStep(SessionId),
    /// Events of a session of this agent were stored, or a session left it: its output may be read again.
    ResumeAgent(AgentId),
    /// The process was killed because it did not react in one session. Its other sessions are interrupted.
    InterruptSessions { agent: AgentId, culprit: SessionId },
    /// The session was not opened, and its client has the answer.
    RemoveOpening(SessionId),
    /// The release of the session is complete.
    RemoveReleased(SessionId),
    /// A request to the user was closed, and the event of that is durable.
    RequestAnswered(SessionId, Box<UserAnswered>),
}
