//! How a turn ended. The fact alone decides: the hub ends a turn that somebody cancelled as
//! `cancelled`, however the agent put it, so nobody has to know what went before.

use crate::usage::{Cost, cost_of_answer};
use jackfield_events::TurnOutcome;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) stop_reason: Option<String>,
    /// Why it failed, if it did.
    pub(crate) failure: Option<Failure>,
    /// As the answer tells it.
    pub(super) cost: Option<Cost>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// The hub's stable name for it, or the number the agent gave.
    pub(crate) code: Option<String>,
}

/// JSON-RPC's "request cancelled", as ACP has it.
const REQUEST_CANCELLED: i64 = -32800;

impl Outcome {
    pub(crate) fn of(outcome: &TurnOutcome<Value>) -> Outcome {
        let answer = outcome.json();
        let (cost, stop_reason) = (cost_of_answer(answer), answer["stopReason"].as_str());
        let cancelled = stop_reason == Some("cancelled") || is_cancelled(answer);
        let (status, failure) = match outcome {
            _ if cancelled => (Status::Cancelled, None),
            TurnOutcome::Stopped(_) => (Status::Completed, None),
            TurnOutcome::Failed(_) | TurnOutcome::Interrupted(_) => {
                (Status::Failed, Some(Failure::of(answer)))
            }
        };
        Outcome { status, stop_reason: stop_reason.map(str::to_owned), failure, cost }
    }

    /// Of a turn that the log does not end.
    pub(super) fn missing() -> Outcome {
        let message = "the turn has no end in the log".to_owned();
        let failure = Some(Failure { message, code: None });
        Outcome { status: Status::Failed, stop_reason: None, failure, cost: None }
    }
}

fn is_cancelled(error: &Value) -> bool {
    error["code"].as_i64() == Some(REQUEST_CANCELLED)
        || error["data"]["jackfield"]["code"] == "cancelled"
}

impl Failure {
    fn of(error: &Value) -> Failure {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        // "Internal error" alone helps nobody; agents put the cause in one of these places.
        let data = &error["data"];
        let places = ["details", "detail", "message", "error", "reason"];
        let cause = places.iter().find_map(|it| data.get(*it)?.as_str()).or(data.as_str());
        let message = match cause.filter(|it| !it.is_empty() && !message.contains(it)) {
            Some(cause) => format!("{message}: {cause}"),
            None => message.to_owned(),
        };
        let name = data["jackfield"]["code"].as_str().map(str::to_owned);
        let number = || error["code"].as_i64().map(|it| it.to_string());
        Failure { message, code: name.or_else(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(how: &str, answer: &Value) -> (Status, Option<Failure>) {
        let outcome = Outcome::of(&match how {
            "stopped" => TurnOutcome::Stopped(answer.clone()),
            "failed" => TurnOutcome::Failed(answer.clone()),
            _ => TurnOutcome::Interrupted(answer.clone()),
        });
        (outcome.status, outcome.failure)
    }

    #[test]
    fn every_stop_reason_but_cancelled_completes_a_turn() {
        for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal", "news"] {
            assert_eq!(ended("stopped", &json!({ "stopReason": reason })).0, Status::Completed);
        }
        assert_eq!(ended("stopped", &json!({ "stopReason": "cancelled" })).0, Status::Cancelled);
    }

    #[test]
    fn a_turn_that_a_cancel_interrupted_is_cancelled() {
        // As the hub writes it when the agent answers a cancel with an error, or dies of it.
        let error = json!({ "code": -31000, "message": "agent `a` ended: killed" });
        let meta = json!({ "jackfield": { "error": error } });
        let answer = json!({ "stopReason": "cancelled", "_meta": meta });
        assert_eq!(ended("stopped", &answer), (Status::Cancelled, None));
        let error = json!({ "code": -32800, "message": "request cancelled" });
        assert_eq!(ended("failed", &error), (Status::Cancelled, None));
        let error = json!({ "code": 1, "data": { "jackfield": { "code": "cancelled" } } });
        assert_eq!(ended("interrupted", &error), (Status::Cancelled, None));
    }

    #[test]
    fn a_failure_names_its_cause_and_the_stable_code() {
        let data = json!({ "details": "401 wrong key" });
        let error = json!({ "code": -32603, "message": "Internal error", "data": data });
        let (status, failure) = ended("failed", &error);
        let failure = failure.unwrap();
        assert_eq!(status, Status::Failed);
        assert_eq!(failure.message, "Internal error: 401 wrong key");
        assert_eq!(failure.code.as_deref(), Some("-32603"));
        let data = json!({ "jackfield": { "code": "agent_gone" } });
        let error = json!({ "code": -31000, "message": "agent `a` ended", "data": data });
        let failure = ended("interrupted", &error).1.unwrap();
        assert_eq!(failure.code.as_deref(), Some("agent_gone"));
        assert_eq!(ended("failed", &json!(7)).1.unwrap().message, "an error without a message");
    }
}
