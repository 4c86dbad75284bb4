//! The client of a Chat Completions server: it sends a request, reads deltas from the stream and
//! assembles them into a response.

mod accumulator;
mod call_assembler;
mod client;
mod endpoint;
mod error;
mod model_list;
mod reasoning;
mod request_body;
mod response_stream;
mod retry;
mod text_call_filter;
mod text_call_parser;

pub(crate) use client::ModelClient;
pub(crate) use error::ModelError;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request to the model. `messages` and `tools` have the format of Chat Completions.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelRequest {
    pub(crate) model: String,
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    /// `reasoning_effort`, if the user chose one.
    pub(crate) effort: Option<String>,
}

/// A fragment of a response, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseDelta<'a> {
    Text(&'a str),
    Thought(&'a str),
    /// More arguments of the call with this index in the response. The name is final from the first
    /// fragment on; the first fragment may be empty.
    ToolCall {
        index: usize,
        id: &'a str,
        name: &'a str,
        fragment: &'a str,
    },
}

/// A complete response.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelResponse {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) calls: Vec<ModelToolCall>,
    pub(crate) finish_reason: FinishReason,
    pub(crate) tokens: Option<ModelTokenUsage>,
    /// Text that looks like a tool call but could not be parsed as one.
    pub(crate) garbled: Option<String>,
    /// Whether the calls were parsed from the text, because the server has no parser for this
    /// model.
    pub(crate) has_text_calls: bool,
}

/// A tool call that the model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON as the model wrote it. It may be invalid.
    pub(crate) arguments: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FinishReason {
    #[default]
    Stop,
    Length,
    Refusal,
}

/// The token usage of one response, as reported by the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelTokenUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) thought: u64,
    /// Part of `input`.
    pub(crate) cached: u64,
    /// The price in billionths of a US dollar, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost_nanos: Option<u64>,
}

impl ModelTokenUsage {
    pub(crate) fn add(&mut self, other: ModelTokenUsage) {
        self.input += other.input;
        self.output += other.output;
        self.thought += other.thought;
        self.cached += other.cached;
        self.cost_nanos = add_costs(self.cost_nanos, other.cost_nanos);
    }
}

/// Adds two costs, of which each may be unknown.
pub(crate) fn add_costs(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// A model of the server, with the properties that the server reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelInfo {
    pub(crate) id: String,
    /// The size of the context window in tokens, if the server reports it.
    pub(crate) window: Option<u64>,
    pub(crate) accepts_images: Option<bool>,
}
