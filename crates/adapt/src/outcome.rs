//! How a turn ended, and what it used.

use crate::Failure;
use serde_json::{Value, json};

/// How the turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Done(Stop),
    Failed(Failure),
}

/// Why a turn ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

impl Stop {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Stop::EndTurn => "end_turn",
            Stop::MaxTokens => "max_tokens",
            Stop::MaxTurnRequests => "max_turn_requests",
            Stop::Refusal => "refusal",
            Stop::Cancelled => "cancelled",
        }
    }
}

/// Tokens of the whole turn. Programs that count over the session are corrected by their dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens that went in, cached ones included.
    pub input: u64,
    pub output: u64,
    pub thought: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
}

impl Usage {
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
