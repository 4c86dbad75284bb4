//! What the model can do: tools of our own, each in a file.

use agent_client_protocol::{
    Client,
    v1::{
        ConnectionTo,
        schema::{PlanEntry, SessionId, ToolCallContent, ToolCallLocation, ToolKind},
    },
};
use jackfield_agents::GuardCommand;
use serde_json::Value;
use std::path::PathBuf;

/// Where a session works, and through whom.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) session: SessionId,
    /// The working directory first, then the additional ones.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) client: ConnectionTo<Client>,
    pub(crate) offers: Offers,
    /// What a command of ours runs under.
    pub(crate) guard: GuardCommand,
    /// Where commands and servers of this process are entered while they run.
    pub(crate) ledger: PathBuf,
    /// Whether pages may be fetched from the web.
    pub(crate) fetch: bool,
}

/// What the client does for us; the rest we do ourselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) terminal: bool,
}

/// What a call would do, before anybody has allowed it. `Work` is what a tool does then.
#[derive(Debug)]
pub(crate) struct Job<Work> {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    /// What a person should see before they allow it: the diff of an edit.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) grant: Grant,
    pub(crate) work: Work,
}

/// Whether somebody has to allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// It changes nothing.
    Free,
    /// It changes a file of the session.
    Edit,
    /// Anything else, by the name that "always" covers: `shell cargo test`, `mcp github.search`.
    Ask(String),
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// For the model, and bounded: where something was left out, it says so.
    pub(crate) text: String,
    pub(crate) failed: bool,
    /// For people; the text itself if there is nothing better.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) raw: Option<Value>,
    /// The plan, if the call changed it.
    pub(crate) plan: Option<Vec<PlanEntry>>,
}
