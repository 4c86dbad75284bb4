//! Session envelopes: a session as a list of small messages with ids, for clients that keep them
//! and sync them, such as a phone.
//!
//! The vocabulary is that of Happy's session protocol: `text` (also of thoughts), `service`,
//! `tool-call-start`, `tool-call-end`, `file`, `turn-start`, `turn-end`. It speaks of an agent's
//! status, which our facts are:
//!
//! | status | fact | envelope |
//! |---|---|---|
//! | starting | `opened`, `bound`, `queued` | none |
//! | running | `prompted` | the prompt with role `user`, then `turn-start` |
//! | idle | `ended`, with any stop reason but `cancelled` | `turn-end` *completed* |
//! | stopped | `ended`, with stop reason `cancelled` (the hub says so of every turn that a cancel ended, also where the agent answered with an error or died of it), or with the error that a request was cancelled | `turn-end` *cancelled* |
//! | error | `ended` otherwise: the agent's error, or an interruption | `turn-end` *failed* |
//!
//! | message | fact | envelope |
//! |---|---|---|
//! | model-output | `said` `agent_message_chunk` | `text`, or `file` for what is none |
//! | thinking | `said` `agent_thought_chunk` | `text` with `thinking` |
//! | tool-call, tool-result | `said` `tool_call`, `tool_call_update` | `tool-call-start`, `tool-call-end` |
//! | token-count, fs-edit, terminal-output | `said` `usage_update`, content of a running tool call | none |
//! | permission-request, permission-response | `asked`, `answered` | one of the additions below |
//!
//! **Additions**, which readers of the protocol may ignore: `permission-request` and
//! `permission-response`; `error` in a `turn-end` that is *failed*; `usage` with more counts. A
//! question (`elicitation/create`) is a `service` text. A call of a sub-agent has in `subagent` an
//! id made of the call that started it.
//!
//! **Ids** are derived (`cuid`). An envelope's id is made of the session, the seq of the fact and
//! what the envelope is in it; a turn's of the session and its number; a call's of the session and
//! the agent's id for it. Reading a log again gives the same ids, and so does starting anywhere.
//!
//! **Times** strictly increase: the fact's, or one millisecond more than the one before.
//!
//! **Idempotence**: a fact that comes again, a turn that begins or ends twice make nothing twice.
//!
//! Words that come after their turn's end are told, with that turn. What is said outside of any
//! turn has none.

mod block;
mod cuid;
mod fold;

pub use fold::Envelopes;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Envelope {
    pub id: String,
    /// Unix milliseconds.
    pub time: u64,
    pub role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TurnUsage>,
    pub ev: Ev,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum Ev {
    TurnStart,
    TurnEnd {
        status: TurnStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Text {
        text: String,
        /// Only there if it is true.
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
        /// Where it is: its URI, or `SESSION/SEQ/BLOCK` for what stands in the log itself.
        #[serde(rename = "ref")]
        reference: String,
        name: String,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    PermissionRequest {
        /// Its number in the session: what `_jackfield/answer` wants.
        ask: u64,
        call: String,
        name: String,
        title: String,
        args: Map<String, Value>,
        options: Vec<Choice>,
    },
    PermissionResponse {
        ask: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// Nothing if it was cancelled, or nobody's answer counts any more.
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
#[schema(as = PermissionChoice)]
pub struct Choice {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What a turn has used, where the agent has told at least input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct TurnUsage {
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
