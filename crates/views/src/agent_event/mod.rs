//! Unified agent events: a small vocabulary for the output of any agent, made for chat windows. `/api`
//! sends them as SSE `agent` events and `log --view events` prints them.
//!
//! | event of the log | agent events |
//! |---|---|
//! | `opened`, `bound` | `status` *initializing* (with the restore method as detail), `status` *model* if the model is known |
//! | `prompted` | `status` *running* |
//! | `said` `agent_message_chunk` | `text_delta`; before the first one of a turn `status` *streaming* with `ttftMs` |
//! | `said` `agent_thought_chunk` | `thinking_delta`; `thinking_start` before the first one of a thought |
//! | `said` `tool_call`, `tool_call_update` | `tool_use` when the arguments of the tool are known, `tool_result` at its end |
//! | `said` `plan` | `plan` with all entries |
//! | `said` `current_mode_update`, `config_option_update`; `configured` | `mode`, `config`, `status` *model* |
//! | `said` `session_info_update` | `status` with the title, `status` *notice*, or `raw` for output that an adapter could not parse |
//! | `said` of another kind | `status` with that kind as label |
//! | `asked`, `answered` | `permission_request`, `permission_response`; questions are `status` *question*, *answer* |
//! | `ended` | a `tool_result` for each tool call without one, then `usage`, then `error` if the turn failed |
//! | `queued`, `withdrawn`, `cancelled`, `quiet`, `unasked`, `gone`, `slept`, `closed`, `moved` | `status` *queued*, *withdrawn*, *cancelling*, *quiet*, *unasked*, *gone*, *asleep*, *closed*, *moved* |
//!
//! Left out: `usage_update` (its total is in `usage`), `user_message_chunk` (an echoed prompt),
//! `available_commands_update`, and events that are not about the agent's work (`forked`, `imported`,
//! `learned`).
//!
//! Text that arrives after the end of its turn is included like other text. A `tool_use` has exactly one
//! `tool_result`, at the latest at the end of its turn; for a tool call that never reported a result it is
//! an error that says so. The agent's title of a tool call is given beside the name of the tool.

mod fold;

pub use fold::AgentEventView;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// One agent event, as it is sent: `{"type":"text_delta","delta":"Hi"}`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    Status(StatusEvent),
    TextDelta {
        delta: String,
    },
    ThinkingStart,
    ThinkingDelta {
        delta: String,
    },
    #[serde(rename_all = "camelCase")]
    ToolUse {
        /// The agent's id of the tool call.
        id: String,
        /// `Bash`, `Read`, `Edit`, `Write`, `Grep`, `Fetch` …, the same for every agent.
        name: String,
        input: Map<String, Value>,
        /// The agent's title of the tool call.
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// The tool call whose sub-agent makes this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: String,
        content: String,
        is_error: bool,
    },
    Plan {
        #[schema(value_type = Vec<PlanEntrySchema>)]
        entries: Vec<Value>,
    },
    Mode {
        mode: String,
    },
    /// Config options with their values. Options that are not included have not changed.
    Config {
        options: Map<String, Value>,
    },
    #[serde(rename_all = "camelCase")]
    PermissionRequest {
        /// The number of the request in the session, as `_jackfield/answer` expects it.
        ask: u64,
        tool_use_id: String,
        name: String,
        title: String,
        input: Map<String, Value>,
        #[schema(value_type = Vec<PermissionOptionSchema>)]
        options: Vec<Value>,
    },
    #[serde(rename_all = "camelCase")]
    PermissionResponse {
        ask: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
        /// Absent if the request was cancelled or expired.
        #[serde(skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        by: String,
    },
    #[serde(rename_all = "camelCase")]
    Usage {
        usage: TokenUsage,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
    },
    Error {
        message: String,
        /// A stable code of Jackfield (`agent_gone`, `interrupted`), or the error code of the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A line of output that the adapter could not parse.
    Raw {
        line: String,
    },
}

/// The status of the agent or of its session: `running`, `streaming`, `model`, …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentStatus)]
pub struct StatusEvent {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time from the prompt to the first text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Token counts. A count that the agent did not report is absent, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct TokenUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_read_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_write_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}

/// One entry of a plan, as ACP defines it.
#[derive(Debug, ToSchema)]
#[schema(as = PlanEntry)]
#[expect(
    dead_code,
    reason = "the JSON is forwarded as it is; this type describes it in the API document"
)]
struct PlanEntrySchema {
    content: String,
    /// `high`, `medium` or `low`.
    priority: Option<String>,
    /// `pending`, `in_progress` or `completed`.
    status: Option<String>,
}

/// One option of a permission request, as ACP defines it.
#[derive(Debug, ToSchema)]
#[schema(as = PermissionOption, rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "the JSON is forwarded as it is; this type describes it in the API document"
)]
struct PermissionOptionSchema {
    option_id: String,
    name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    kind: String,
}
