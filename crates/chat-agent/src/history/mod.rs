//! The history of a session, in order, and what is derived from it: the messages of the next model
//! request (`messages`), the updates for a client that loads the session (`replay`), and the ids in
//! these updates (`client_ids`).

mod client_ids;
mod messages;
mod replay;

pub(crate) use client_ids::{client_call_id, message_id};
pub(crate) use messages::{MessageOptions, build_messages};
pub(crate) use replay::to_session_updates;

use crate::model::{ModelTokenUsage, ModelToolCall};
use agent_client_protocol::v1::schema::{
    ContentBlock, PlanEntry, ToolCallContent, ToolCallLocation, ToolKind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a conversation. Entries are stored in this format, so a new field needs a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum HistoryEntry {
    /// A prompt of the user.
    Prompt { content: Vec<ContentBlock> },
    /// A response of the model, with the tool calls that it requests.
    Answer {
        text: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thought: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ModelToolCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<ModelTokenUsage>,
    },
    /// The result of a call of the last answer.
    Result(ToolResult),
    /// The plan that replaces the previous one.
    Plan { entries: Vec<PlanEntry> },
    /// A message from us to the model. The user does not see it.
    Hint { text: String },
    /// Why a turn has no answer. The model does not see it.
    Failed { message: String },
    /// For the model, this replaces all entries before `first_kept`.
    Summary {
        text: String,
        #[serde(rename = "from")]
        first_kept: usize,
    },
}

/// The result of a tool call, for the model and for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    #[serde(rename = "call")]
    pub(crate) call_id: String,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<ToolCallLocation>,
    /// For the model.
    pub(crate) text: String,
    #[serde(rename = "failed")]
    pub(crate) is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "raw")]
    pub(crate) raw_output: Option<Value>,
}

/// Finds the result of a call among the entries after its answer. The search ends at the next
/// answer, because ids of calls are unique only within one answer.
fn find_result<'a>(call: &ModelToolCall, rest: &'a [HistoryEntry]) -> Option<&'a ToolResult> {
    let until_next = rest.iter().take_while(|it| !matches!(it, HistoryEntry::Answer { .. }));
    until_next.into_iter().find_map(|it| match it {
        HistoryEntry::Result(result) if result.call_id == call.id => Some(result),
        _ => None,
    })
}
