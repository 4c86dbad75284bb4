//! The outcome of a turn, and the tokens that it used.

use crate::TurnFailure;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AdapterTurnOutcome {
    Completed(StopReason),
    Failed(TurnFailure),
}

/// ACP's stop reasons of a completed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

impl StopReason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::MaxTurnRequests => "max_turn_requests",
            StopReason::Refusal => "refusal",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// Tokens of the whole turn. The dialect of a program that counts per session subtracts earlier
/// turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnUsage {
    /// All input tokens, including cached ones.
    pub input: u64,
    pub output: u64,
    pub thought: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
}

impl TurnUsage {
    /// The sum of two usages. A count that both lack stays unknown.
    pub(crate) fn plus(self, other: TurnUsage) -> TurnUsage {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        TurnUsage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            thought: sum(self.thought, other.thought),
            cached_read: sum(self.cached_read, other.cached_read),
            cached_write: sum(self.cached_write, other.cached_write),
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let mut usage = json!({
            "totalTokens": self.input.saturating_add(self.output),
            "inputTokens": self.input,
            "outputTokens": self.output,
        });
        let optional = [
            ("thoughtTokens", self.thought),
            ("cachedReadTokens", self.cached_read),
            ("cachedWriteTokens", self.cached_write),
        ];
        for (name, count) in optional {
            if let Some(count) = count {
                usage[name] = json!(count);
            }
        }
        usage
    }
}
