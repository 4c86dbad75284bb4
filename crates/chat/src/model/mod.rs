//! The model: a request goes out, deltas come in, an answer is what they make together.

mod ask;
mod drafts;
mod endpoint;
mod fold;
mod listed;
mod retry;
mod secrets;
mod stream;
mod talk;
mod text_calls;
mod thinking;
mod trouble;
mod written;

pub(crate) use talk::Model;
pub(crate) use trouble::Trouble;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request to the model. `messages` and `tools` are as Chat Completions has them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) model: String,
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    /// `reasoning_effort`, where the user chose one.
    pub(crate) effort: Option<String>,
}

/// A piece of an answer, as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delta<'a> {
    Text(&'a str),
    Thought(&'a str),
    /// More of the arguments of the call at this place in the answer; the first has an empty piece
    /// or not, and its name is known from then on.
    Call {
        index: usize,
        id: &'a str,
        name: &'a str,
        piece: &'a str,
    },
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Finish,
    pub(crate) tokens: Option<Tokens>,
    /// What looks like a call, written as text, and could not be read as one.
    pub(crate) garbled: Option<String>,
    /// The calls stood in the text: the server has no parser for this model.
    pub(crate) written: bool,
}

/// What the model wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, as the model wrote it: it may be broken.
    pub(crate) arguments: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Finish {
    #[default]
    Stop,
    Length,
    Refusal,
}

/// What one answer cost, as the server counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) thought: u64,
    /// Part of `input`.
    pub(crate) cached: u64,
}

/// A model that the server has, with what it says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    /// How many tokens it sees at once, if the server tells.
    pub(crate) window: Option<u64>,
    pub(crate) takes_images: Option<bool>,
}
