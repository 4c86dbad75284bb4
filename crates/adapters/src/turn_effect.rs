//! What a dialect requests from the adapter during a turn.

use serde_json::Value;

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
}

/// One option of a permission request. `kind` is ACP's: `allow_once`, `allow_always`, `reject_once`
/// or `reject_always`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    pub kind: &'static str,
}

/// An action that a dialect requests from the adapter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnEffect {
    /// `params.update` of a `session/update`.
    SendUpdate(Value),
    RequestPermission {
        key: String,
        tool_call: Value,
        options: Vec<PermissionOption>,
    },
    /// The program no longer waits for this answer.
    WithdrawRequest {
        key: String,
    },
    /// A line for the program's stdin, without its newline.
    WriteLine(String),
    CloseStdin,
    /// The program's own session id.
    SetAgentSessionId(String),
}
