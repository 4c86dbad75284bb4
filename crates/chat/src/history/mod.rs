//! What was said and done in a session, in order, and the two things that are made of it: the
//! messages of the next request (`request`), and the updates for a client that loads the session
//! (`replay`).

mod replay;
mod request;

pub(crate) use replay::replay;
pub(crate) use request::{Voice, request};

use crate::model::{Call, Tokens};
use agent_client_protocol::v1::schema::{
    ContentBlock, PlanEntry, ToolCallContent, ToolCallLocation, ToolKind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fact of a conversation. They are stored as they are, so a new field needs a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The user said it.
    Prompt { content: Vec<ContentBlock> },
    /// The model said it, and wants these calls made.
    Answer {
        text: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thought: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
    },
    /// What came of a call of the last answer.
    Result(Done),
    /// The plan, as it is from now on.
    Plan { entries: Vec<PlanEntry> },
    /// We said it to the model, and the user did not hear it.
    Hint { text: String },
    /// We said it to the user, and the model does not hear it: why there is no answer.
    Failed { message: String },
    /// All before `from` is for the model only this.
    Summary { text: String, from: usize },
}

/// What came of a call, for the model and for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) call: String,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<ToolCallLocation>,
    /// For the model.
    pub(crate) text: String,
    pub(crate) failed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<Value>,
}

/// What came of a call, looked for in what follows its answer and up to the next one: ids of calls
/// are unique in an answer only.
fn done_of<'a>(call: &Call, rest: &'a [Entry]) -> Option<&'a Done> {
    let until_next = rest.iter().take_while(|it| !matches!(it, Entry::Answer { .. }));
    until_next.into_iter().find_map(|it| match it {
        Entry::Result(done) if done.call == call.id => Some(done),
        _ => None,
    })
}
