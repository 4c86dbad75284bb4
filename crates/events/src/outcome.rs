//! How a turn, a request to the daemon and the restoring of a session ended.

use crate::RawJson;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The end of the reason of a turn that was interrupted by a loss and recorded as ended later, for example `the daemon
/// ended during the turn`.
pub const INTERRUPTED_LATER_SUFFIX: &str = " during the turn";

/// The reason of a turn that was open in the journal of an imported session.
pub const INTERRUPTED_BY_IMPORT: &str = "the session was brought here from elsewhere";

/// How a turn ended, with the result or the error that the client of the prompt receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnOutcome<J = RawJson> {
    /// The agent's result, with its stop reason.
    Stopped(J),
    /// The agent's error.
    Failed(J),
    /// Our error, because the agent or the daemon ended first.
    Interrupted(J),
}

impl<J> TurnOutcome<J> {
    pub fn name(&self) -> &'static str {
        match self {
            TurnOutcome::Stopped(_) => "stopped",
            TurnOutcome::Failed(_) => "failed",
            TurnOutcome::Interrupted(_) => "interrupted",
        }
    }

    /// The result or the error.
    pub fn json(&self) -> &J {
        match self {
            TurnOutcome::Stopped(json)
            | TurnOutcome::Failed(json)
            | TurnOutcome::Interrupted(json) => json,
        }
    }
}

impl TurnOutcome {
    /// The agent's stop reason, if it gave a result.
    pub fn stop_reason(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PromptResult {
            stop_reason: String,
        }
        let TurnOutcome::Stopped(result) = self else { return None };
        result.parse::<PromptResult>().map(|it| it.stop_reason)
    }
}

/// The result of a request that the daemon itself handles for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", content = "why", rename_all = "lowercase")]
pub enum ServedOutcome {
    Done,
    /// Denied by a rule or by a person, with the reason.
    Denied(Arc<str>),
    Failed(Arc<str>),
    /// The agent ended first.
    Unknown,
}

/// How a session got its present agent process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreStep {
    /// The agent still had the conversation and continued it.
    Resumed,
    /// The agent read the conversation back and replayed it.
    Reloaded,
    /// The agent branched off its own session.
    Forked,
    /// The agent has a new session: the next prompt carries a digest of the conversation.
    Reseeded,
    /// No method worked.
    Failed,
}

impl RestoreStep {
    pub fn as_str(self) -> &'static str {
        match self {
            RestoreStep::Resumed => "resumed",
            RestoreStep::Reloaded => "reloaded",
            RestoreStep::Forked => "forked",
            RestoreStep::Reseeded => "reseeded",
            RestoreStep::Failed => "failed",
        }
    }
}
