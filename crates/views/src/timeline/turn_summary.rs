//! How a turn ended. The event alone decides: the hub ends a cancelled turn with `cancelled`, whatever the
//! agent answered, so earlier events do not matter.

use crate::usage::{UsageCost, find_turn_cost};
use jackfield_events::TurnOutcome;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionStatus {
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct TurnSummary {
    pub(crate) status: CompletionStatus,
    pub(crate) stop_reason: Option<String>,
    /// Why the turn failed, if it did.
    pub(crate) failure: Option<FailedTurn>,
    /// The cost in the result of the prompt.
    pub(super) cost: Option<UsageCost>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedTurn {
    pub(crate) message: String,
    /// The hub's stable code, or the error code of the agent.
    pub(crate) code: Option<String>,
}

/// The JSON-RPC error code for a cancelled request, as ACP defines it.
const REQUEST_CANCELLED: i64 = -32800;

impl TurnSummary {
    pub(crate) fn from_outcome(outcome: &TurnOutcome<Value>) -> TurnSummary {
        let answer = outcome.json();
        let (cost, stop_reason) = (find_turn_cost(answer), answer["stopReason"].as_str());
        let cancelled = stop_reason == Some("cancelled") || is_cancelled(answer);
        let (status, failure) = match outcome {
            _ if cancelled => (CompletionStatus::Cancelled, None),
            TurnOutcome::Stopped(_) => (CompletionStatus::Completed, None),
            TurnOutcome::Failed(_) | TurnOutcome::Interrupted(_) => {
                (CompletionStatus::Failed, Some(FailedTurn::from_error(answer)))
            }
        };
        TurnSummary { status, stop_reason: stop_reason.map(str::to_owned), failure, cost }
    }

    /// For a turn without an end in the log.
    pub(super) fn without_end() -> TurnSummary {
        let message = "the log does not contain the end of the turn".to_owned();
        let failure = Some(FailedTurn { message, code: None });
        TurnSummary { status: CompletionStatus::Failed, stop_reason: None, failure, cost: None }
    }
}

fn is_cancelled(error: &Value) -> bool {
    error["code"].as_i64() == Some(REQUEST_CANCELLED)
        || error["data"]["jackfield"]["code"] == "cancelled"
}

impl FailedTurn {
    fn from_error(error: &Value) -> FailedTurn {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        // "Internal error" alone does not help; agents put the cause in one of these members.
        let data = &error["data"];
        let members = ["details", "detail", "message", "error", "reason"];
        let cause = members.iter().find_map(|it| data.get(*it)?.as_str()).or(data.as_str());
        let message = match cause.filter(|it| !it.is_empty() && !message.contains(it)) {
            Some(cause) => format!("{message}: {cause}"),
            None => message.to_owned(),
        };
        let name = data["jackfield"]["code"].as_str().map(str::to_owned);
        let number = || error["code"].as_i64().map(|it| it.to_string());
        FailedTurn { message, code: name.or_else(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summarize(how: &str, answer: &Value) -> (CompletionStatus, Option<FailedTurn>) {
        let outcome = TurnSummary::from_outcome(&match how {
            "stopped" => TurnOutcome::Stopped(answer.clone()),
            "failed" => TurnOutcome::Failed(answer.clone()),
            _ => TurnOutcome::Interrupted(answer.clone()),
        });
        (outcome.status, outcome.failure)
    }

    #[test]
    fn every_stop_reason_except_cancelled_completes_a_turn() {
        for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal", "news"] {
            assert_eq!(
                summarize("stopped", &json!({ "stopReason": reason })).0,
                CompletionStatus::Completed
            );
        }
        assert_eq!(
            summarize("stopped", &json!({ "stopReason": "cancelled" })).0,
            CompletionStatus::Cancelled
        );
    }

    #[test]
    fn turn_interrupted_by_a_cancellation_is_cancelled() {
        // As the hub writes it when the agent answers a cancellation with an error, or exits.
        let error = json!({ "code": -31000, "message": "agent `a` summarize: killed" });
        let meta = json!({ "jackfield": { "error": error } });
        let answer = json!({ "stopReason": "cancelled", "_meta": meta });
        assert_eq!(summarize("stopped", &answer), (CompletionStatus::Cancelled, None));
        let error = json!({ "code": -32800, "message": "request cancelled" });
        assert_eq!(summarize("failed", &error), (CompletionStatus::Cancelled, None));
        let error = json!({ "code": 1, "data": { "jackfield": { "code": "cancelled" } } });
        assert_eq!(summarize("interrupted", &error), (CompletionStatus::Cancelled, None));
    }

    #[test]
    fn failure_has_its_cause_and_the_stable_code() {
        let data = json!({ "details": "401 wrong key" });
        let error = json!({ "code": -32603, "message": "Internal error", "data": data });
        let (status, failure) = summarize("failed", &error);
        let failure = failure.unwrap();
        assert_eq!(status, CompletionStatus::Failed);
        assert_eq!(failure.message, "Internal error: 401 wrong key");
        assert_eq!(failure.code.as_deref(), Some("-32603"));
        let data = json!({ "jackfield": { "code": "agent_gone" } });
        let error = json!({ "code": -31000, "message": "agent `a` summarize", "data": data });
        let failure = summarize("interrupted", &error).1.unwrap();
        assert_eq!(failure.code.as_deref(), Some("agent_gone"));
        assert_eq!(summarize("failed", &json!(7)).1.unwrap().message, "an error without a message");
    }
}
