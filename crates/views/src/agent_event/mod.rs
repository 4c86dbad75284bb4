//! Unified agent events: the same few words for whatever any agent does, as a chat window wants
//! them. They are what `/api` sends as SSE `agent` events and `log --view events` prints.
//!
//! | fact | events |
//! |---|---|
//! | `opened`, `bound` | `status` *initializing* (with the rung as detail), `status` *model* if it is known |
//! | `prompted` | `status` *running* |
//! | `said` `agent_message_chunk` | `text_delta`; before the first of a turn `status` *streaming* with `ttftMs` |
//! | `said` `agent_thought_chunk` | `thinking_delta`; `thinking_start` where a train of thought begins |
//! | `said` `tool_call`, `tool_call_update` | `tool_use` once it is known what the tool is called with, `tool_result` at its end |
//! | `said` `plan` | `plan` with all entries |
//! | `said` `current_mode_update`, `config_option_update`; `configured` | `mode`, `config`, `status` *model* |
//! | `said` `session_info_update` | `status` with the title, `status` *notice*, or `raw` for what an adapter could not read |
//! | `said` of a kind that is not in this list | `status` with that kind as label |
//! | `asked`, `answered` | `permission_request`, `permission_response`; questions are `status` *question*, *answer* |
//! | `ended` | results for tools that have none, then `usage`, then `error` if it failed |
//! | `queued`, `withdrawn`, `cancelled`, `quiet`, `unasked`, `gone`, `slept`, `closed`, `moved` | `status` *queued*, *withdrawn*, *cancelling*, *quiet*, *unasked*, *gone*, *asleep*, *closed*, *moved* |
//!
//! Not told: `usage_update` (its sum is in `usage`), `user_message_chunk` (a prompt said back),
//! `available_commands_update` (a menu), and where a log came from (`forked`, `imported`, `learned`).
//!
//! Words that come after their turn's end are told like others. A `tool_use` has exactly one
//! `tool_result`, at the end of its turn at the latest; of a tool that nothing more is heard of it
//! is an error that says so. The agent's title of a tool stands beside its name.

mod fold;

pub use fold::AgentEvents;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// One event, as it is sent: `{"type":"text_delta","delta":"Hi"}`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    Status(Status),
    TextDelta {
        delta: String,
    },
    ThinkingStart,
    ThinkingDelta {
        delta: String,
    },
    #[serde(rename_all = "camelCase")]
    ToolUse {
        /// The agent's own id of the call.
        id: String,
        /// `Bash`, `Read`, `Edit`, `Write`, `Grep`, `Fetch` …, whoever the agent is.
        name: String,
        input: Map<String, Value>,
        /// The agent's words for it.
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// The call whose sub-agent makes this one.
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
        #[schema(value_type = Vec<PlanEntry>)]
        entries: Vec<Value>,
    },
    Mode {
        mode: String,
    },
    /// Config options and their values; those that are not here have not changed.
    Config {
        options: Map<String, Value>,
    },
    #[serde(rename_all = "camelCase")]
    PermissionRequest {
        /// Its number in the session: what `_jackfield/answer` wants.
        ask: u64,
        tool_use_id: String,
        name: String,
        title: String,
        input: Map<String, Value>,
        #[schema(value_type = Vec<PermissionOption>)]
        options: Vec<Value>,
    },
    #[serde(rename_all = "camelCase")]
    PermissionResponse {
        ask: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
        /// Nothing if it was cancelled, or nobody's answer counts any more.
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
        /// A name of ours (`agent_gone`, `interrupted`), or the number that the agent gave.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// A line of a foreign program that its adapter could make nothing of.
    Raw {
        line: String,
    },
}

/// What the agent, or its session, is at: `running`, `streaming`, `model`, …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentStatus)]
pub struct Status {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// From the prompt to the first text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// What is unknown is not there; it is never zero for that reason.
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

/// One entry of a plan, as ACP has it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it is passed on as it came; this describes it, for readers")]
struct PlanEntry {
    content: String,
    /// `high`, `medium` or `low`.
    priority: Option<String>,
    /// `pending`, `in_progress` or `completed`.
    status: Option<String>,
}

/// One answer that an agent offers, as ACP has it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is passed on as it came; this describes it, for readers")]
struct PermissionOption {
    option_id: String,
    name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    kind: String,
}
