//! How a turn ended, and what it has used. Only what the agent reports: unknown usage is not zero.

use super::{TurnEndItem, TurnOutcome, content::text};
use jackfield_events::{ReportedCost, Time, TurnEnded, TurnOutcome as EndedOutcome, find_usage};
use jackfield_views::{
    UsageCost,
    usage::{ContextUsage, parse_tokens},
};
use serde_json::Value;

/// The JSON-RPC error code of a cancelled request, as ACP defines it.
const REQUEST_CANCELLED: i64 = -32800;

/// What is known about a turn before its end.
#[derive(Debug)]
pub(super) struct RunningTurn {
    pub(super) turn: u64,
    pub(super) started_at: Time,
    pub(super) cost: Option<UsageCost>,
    pub(super) context: Option<ContextUsage>,
}

impl TurnEndItem {
    pub(super) fn from_event(
        ended: &TurnEnded<Value>,
        at: Time,
        running: Option<RunningTurn>,
    ) -> TurnEndItem {
        let answer = ended.outcome.json();
        let reason = text(answer, "stopReason");
        let is_cancelled = reason == "cancelled"
            || answer["code"] == REQUEST_CANCELLED
            || answer["data"]["jackfield"]["code"] == "cancelled";
        let outcome = match &ended.outcome {
            _ if is_cancelled => TurnOutcome::Cancelled,
            EndedOutcome::Stopped(_) => TurnOutcome::Completed,
            EndedOutcome::Failed(_) => TurnOutcome::Failed,
            EndedOutcome::Interrupted(_) => TurnOutcome::Interrupted,
        };
        let detail = match outcome {
            TurnOutcome::Completed if reason == "end_turn" => String::new(),
            TurnOutcome::Completed => reason.to_owned(),
            TurnOutcome::Cancelled => String::new(),
            TurnOutcome::Failed | TurnOutcome::Interrupted => {
                error_text(answer, ended.outcome.name())
            }
        };
        let duration_ms = running.as_ref().map(|it| at.since(it.started_at));
        let context = running.as_ref().and_then(|it| it.context);
        let of_turn = || ReportedCost::of_turn(answer).map(UsageCost::from);
        let cost = running.and_then(|it| it.cost).or_else(of_turn);
        let tokens = find_usage(answer).map(parse_tokens);
        TurnEndItem { outcome, detail, duration_ms, tokens, cost, context }
    }
}

/// "Internal error" alone does not help; agents put the cause in one of several members.
fn error_text(error: &Value, how: &str) -> String {
    let message = match text(error, "message") {
        "" => "an error without a message",
        message => message,
    };
    let message = message.strip_prefix(&format!("{how}: ")).unwrap_or(message);
    let data = &error["data"];
    let members = ["details", "detail", "message", "error", "reason"].map(|it| text(data, it));
    let cause = members.into_iter().find(|it| !it.is_empty());
    match cause.or(data.as_str()).unwrap_or_default() {
        "" => message.to_owned(),
        cause if message.contains(cause) => message.to_owned(),
        cause => format!("{message}: {cause}"),
    }
}
