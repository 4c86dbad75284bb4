//! How a run ended: the outcome of its prompt in the log, in the terms of a process.

use super::progress::RunStatus;
use crate::rest::error::{ApiError, ErrorCode};
use jackfield_events::{PromptWithdrawn, TurnOutcome};
use jackfield_hub_client::ErrorResponse;
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RunOutcome {
    /// The stop reason of the agent.
    pub(crate) stop_reason: Option<String>,
    pub(crate) error: Option<ApiError>,
    /// Like the exit code of a process: 0 means success.
    pub(crate) code: Option<i64>,
    pub(crate) signal: Option<String>,
}

impl RunOutcome {
    /// The outcome of a run that a client canceled before its agent had the prompt.
    pub(super) fn canceled() -> (RunStatus, RunOutcome) {
        let stop_reason = Some(CANCELLED.to_owned());
        (RunStatus::Canceled, RunOutcome { stop_reason, ..RunOutcome::default() })
    }

    /// The outcome of a run that failed before its agent had the prompt.
    pub(super) fn failed(error: ApiError) -> (RunStatus, RunOutcome) {
        let (error, code) = (Some(error), Some(1));
        (RunStatus::Failed, RunOutcome { error, code, ..RunOutcome::default() })
    }
}

/// The outcome of a withdrawn prompt: cancelled by a client, or failed.
pub(super) fn withdrawn_outcome(withdrawn: &PromptWithdrawn) -> (RunStatus, RunOutcome) {
    if withdrawn.is_by_client() {
        return RunOutcome::canceled();
    }
    RunOutcome::failed(ApiError::new(ErrorCode::AgentUnavailable, &*withdrawn.why))
}

const CANCELLED: &str = "cancelled";

pub(super) fn ended_outcome(outcome: &TurnOutcome<Value>) -> (RunStatus, RunOutcome) {
    let answer = match outcome {
        TurnOutcome::Stopped(answer) => answer,
        TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error) => {
            let (code, signal) = parse_exit(error);
            let error = Some(ApiError::from_response(&ErrorResponse::new(error.clone())));
            return (
                RunStatus::Failed,
                RunOutcome { error, code, signal, ..RunOutcome::default() },
            );
        }
    };
    let reason = answer["stopReason"].as_str().unwrap_or_default();
    let stop_reason = Some(reason.to_owned());
    match reason {
        "end_turn" => {
            let code = Some(0);
            (RunStatus::Succeeded, RunOutcome { stop_reason, code, ..RunOutcome::default() })
        }
        CANCELLED => RunOutcome::canceled(),
        // The agent did not finish, so its output is not a complete answer.
        other => {
            let message = format!("the agent stopped before it finished: {other}");
            let error = Some(ApiError::new(ErrorCode::AgentExecutionFailed, message));
            (RunStatus::Failed, RunOutcome { stop_reason, error, code: Some(1), signal: None })
        }
    }
}

/// The exit code or signal of the agent process, if its exit ended the turn: `exit status 3`, `signal 9 (KILL)`.
fn parse_exit(error: &Value) -> (Option<i64>, Option<String>) {
    let status =
        error.pointer("/data/jackfield/status").and_then(Value::as_str).unwrap_or_default();
    let signal = status.strip_prefix("signal ").map(|it| {
        let name = it.split_once('(').and_then(|(_, name)| name.strip_suffix(')'));
        name.map_or_else(|| it.to_owned(), |name| format!("SIG{name}"))
    });
    let code = status.strip_prefix("exit status ").and_then(|it| it.parse().ok());
    (if signal.is_some() { None } else { code.or(Some(1)) }, signal)
}
