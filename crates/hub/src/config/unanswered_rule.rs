//! What happens to requests to the user that nobody answers in time.

use serde_json::Value;

/// What happens to a request to the user that nobody has answered for this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskRule {
    pub after_ms: u64,
    pub then: Unanswered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It is denied, and the turn continues.
    Deny,
    /// It is withdrawn, and the turn is canceled.
    Fail,
}

impl AskRule {
    /// As a client sends it with `session/new`: `{"after": SECONDS, "do": "deny" | "fail"}`.
    pub(crate) fn of(value: &Value) -> Option<AskRule> {
        let then = match value["do"].as_str()? {
            "deny" => Unanswered::Deny,
            "fail" => Unanswered::Fail,
            _ => return None,
        };
        Some(AskRule { after_ms: value["after"].as_u64()?.saturating_mul(1000), then })
    }
}
