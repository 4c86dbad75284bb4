//! The methods by which an agent can restore a session.

use jackfield_events::RestoreStep;
use jackfield_protocol::acp::Method;

/// What the agent is asked for, the best method first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreMethod {
    Resume,
    Load,
    Fork,
    New,
}

impl RestoreMethod {
    pub(crate) const ALL: [RestoreMethod; 4] =
        [RestoreMethod::Resume, RestoreMethod::Load, RestoreMethod::Fork, RestoreMethod::New];

    pub(crate) fn step(self) -> RestoreStep {
        match self {
            RestoreMethod::Resume => RestoreStep::Resumed,
            RestoreMethod::Load => RestoreStep::Reloaded,
            RestoreMethod::Fork => RestoreStep::Forked,
            RestoreMethod::New => RestoreStep::Reseeded,
        }
    }

    pub(crate) fn method(self) -> Method {
        match self {
            RestoreMethod::Resume => Method::SessionResume,
            RestoreMethod::Load => Method::SessionLoad,
            RestoreMethod::Fork => Method::SessionFork,
            RestoreMethod::New => Method::SessionNew,
        }
    }
}
