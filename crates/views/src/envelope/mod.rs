//! Session envelopes: a session as a list of small messages with ids, for clients that store and
//! synchronize them, such as a phone app.
//!
//! The vocabulary is that of Happy's session protocol: `text` (also for reasoning), `service`,
//! `tool-call-start`, `tool-call-end`, `file`, `turn-start`, `turn-end`. The protocol is defined in terms
//! of an agent status, which corresponds to events of the log:
//!
//! | status | event | envelope |
//! |---|---|---|
//! | starting | `opened`, `bound`, `queued` | none |
//! | running | `prompted` | the prompt with role `user`, then `turn-start` |
//! | idle | `ended`, with any stop reason except `cancelled` | `turn-end` *completed* |
//! | stopped | `ended`, with stop reason `cancelled` (the hub sets it for every cancelled turn, also if the agent answered with an error or exited), or with the error for a cancelled request | `turn-end` *cancelled* |
//! | error | `ended` otherwise: the agent's error, or an interruption | `turn-end` *failed* |
//!
//! | message | event | envelope |
//! |---|---|---|
//! | model-output | `said` `agent_message_chunk` | `text`, or `file` for a block that is not text |
//! | thinking | `said` `agent_thought_chunk` | `text` with `thinking` |
//! | tool-call, tool-result | `said` `tool_call`, `tool_call_update` | `tool-call-start`, `tool-call-end` |
//! | token-count, fs-edit, terminal-output | `said` `usage_update`, content of a running tool call | none |
//! | permission-request, permission-response | `asked`, `answered` | an addition, see below |
//!
//! **Additions** are left out unless a client wants them ([`EnvelopeView::with_additions`]), because a
//! strict reader of the protocol refuses them: `permission-request` and `permission-response`; `error` in a
//! *failed* `turn-end`; `usage` in every `turn-end`; `mimeType` of a `file`.
//!
//! An elicitation (`elicitation/create`) is a `service` text. The `subagent` of a sub-agent's call is an id derived from
//! the call that started the sub-agent.
//!
//! **Ids** are derived (`cuid`). The id of an envelope is derived from the session, the sequence number of
//! the event and the kind of envelope; that of a turn from the session and its number; that of a call from
//! the session and the agent's id. Reading a log again gives the same ids, from any starting point.
//!
//! **Times** strictly increase: the time of the event, or one millisecond more than the previous envelope.
//!
//! **Idempotence**: a repeated event, or a turn that starts or ends twice, adds no envelope.
//!
//! Text that arrives after the end of its turn belongs to that turn. Text outside of any turn has none.

mod block;
mod cuid;
mod fold;

pub use fold::EnvelopeView;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Envelope {
    pub id: String,
    /// Unix milliseconds.
    pub time: u64,
    pub role: EnvelopeRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// An addition to the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<EnvelopeUsage>,
    pub ev: EnvelopeEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Role)]
pub enum EnvelopeRole {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "t", rename_all = "kebab-case")]
#[schema(as = Ev)]
pub enum EnvelopeEvent {
    TurnStart,
    TurnEnd {
        status: TurnStatus,
        /// An addition to the protocol.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Text {
        text: String,
        /// Omitted unless it is true.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thinking: bool,
    },
    Service {
        text: String,
    },
    ToolCallStart {
        call: String,
        name: String,
        title: String,
        description: String,
        args: Map<String, Value>,
    },
    ToolCallEnd {
        call: String,
    },
    #[serde(rename_all = "camelCase")]
    File {
        /// The location of the file: its URI, or `SESSION/SEQ/BLOCK` for a block in the log itself.
        #[serde(rename = "ref")]
        reference: String,
        name: String,
        size: u64,
        /// An addition to the protocol.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// An addition to the protocol.
    PermissionRequest {
        /// The number of the request in the session, as `_jackfield/answer` expects it.
        ask: u64,
        call: String,
        name: String,
        title: String,
        args: Map<String, Value>,
        options: Vec<PermissionChoice>,
    },
    /// An addition to the protocol.
    PermissionResponse {
        ask: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// Absent if the request was cancelled or expired.
        #[serde(skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        by: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TurnStatus {
    Completed,
    Failed,
    Cancelled,
}

/// One option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PermissionChoice {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The token usage of a turn. Present only if the agent reported at least input and output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TurnUsage)]
pub struct EnvelopeUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}
