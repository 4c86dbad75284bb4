//! The items of a transcript.

use jackfield_events::Time;
use jackfield_views::{TokenCounts, UsageCost, usage::ContextUsage};
use serde_json::Value;

/// Identifies an item. It stays the same while the item grows, also when its beginning is loaded later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemKey(pub(crate) u64);

/// One item. `revision` grows with each change, so that rendered lines can be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TranscriptItem {
    pub(crate) key: ItemKey,
    pub(crate) revision: u64,
    /// The sequence number of its first event in the window.
    pub(crate) seq: u64,
    /// The sequence number of the last event that changed it.
    pub(crate) last_seq: u64,
    /// The time of its first event.
    pub(crate) at: Time,
    /// The turn that it belongs to; 0 before the first.
    pub(crate) turn: u64,
    pub(crate) content: ItemContent,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ItemContent {
    /// A prompt of a client; `by` is empty if the agent repeats it.
    Prompt {
        by: String,
        parts: Vec<MessagePart>,
    },
    Message {
        message_id: String,
        parts: Vec<MessagePart>,
        /// It came after the end of its turn.
        is_late: bool,
    },
    Thought {
        message_id: String,
        parts: Vec<MessagePart>,
        ended_at: Time,
    },
    ToolCall(Box<ToolCallItem>),
    /// The plan of a turn in its last state.
    Plan(Vec<PlanEntry>),
    Request(Box<RequestItem>),
    /// A sentence about the session; `detail` is longer text, such as the last lines on stderr.
    Notice {
        level: NoticeLevel,
        text: String,
        detail: String,
    },
    TurnEnd(Box<TurnEndItem>),
}

impl ItemContent {
    /// The parts of a prompt, a message or a thought.
    pub(crate) fn parts(&self) -> &[MessagePart] {
        match self {
            ItemContent::Prompt { parts, .. }
            | ItemContent::Message { parts, .. }
            | ItemContent::Thought { parts, .. } => parts,
            _ => &[],
        }
    }
}

/// A piece of a message. Consecutive pieces of text are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MessagePart {
    Text(String),
    Image {
        mime_type: String,
        bytes: usize,
    },
    /// A file or page that is named, not contained.
    Link {
        uri: String,
        name: String,
    },
    /// A file that is contained, as text.
    File {
        uri: String,
        text: String,
    },
    /// Content that cannot be drawn, such as audio.
    Other(String),
}

/// A tool call with all of its updates.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ToolCallItem {
    pub(crate) call_id: String,
    /// The agent's title; empty if it gave none.
    pub(crate) title: String,
    /// `read`, `edit`, `execute`, …; empty if the agent does not say.
    pub(crate) kind: String,
    pub(crate) status: ToolStatus,
    pub(crate) input: Value,
    pub(crate) raw_output: Value,
    pub(crate) output: Vec<ToolOutput>,
    /// Terminal output that is sent outside of the content.
    pub(crate) terminal_output: String,
    /// Paths with lines.
    pub(crate) locations: Vec<(String, Option<u64>)>,
    /// The call whose sub-agent makes this one; empty if there is none.
    pub(crate) parent_id: String,
    pub(crate) ended_at: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ToolStatus {
    #[default]
    Pending,
    Running,
    Done,
    Failed,
    Cancelled,
    /// The turn ended, or the agent exited, without a result.
    Unfinished,
}

impl ToolStatus {
    pub(crate) fn has_ended(self) -> bool {
        !matches!(self, ToolStatus::Pending | ToolStatus::Running)
    }
}

/// Content of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolOutput {
    /// Text, with escape sequences if it is the output of a command.
    Text(String),
    Diff {
        path: String,
        /// `None` for a new file.
        old: Option<String>,
        new: String,
    },
    /// An image, a link or a file.
    Media(MessagePart),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    pub(crate) content: String,
    /// `pending`, `in_progress` or `completed`.
    pub(crate) status: String,
}

/// A request to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestItem {
    pub(crate) number: u64,
    /// The tool call that needs permission; empty for a form.
    pub(crate) call_id: String,
    pub(crate) title: String,
    /// Why the policy decided, or did not decide.
    pub(crate) why: String,
    pub(crate) answer: Option<RequestAnswer>,
    /// The answer counts for all similar requests.
    pub(crate) is_always: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestAnswer {
    pub(crate) by: String,
    /// The chosen option as the agent names it, or why there is none.
    pub(crate) choice: String,
    /// `allow_once`, `reject_once`, …; empty if it is no option.
    pub(crate) option_kind: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeLevel {
    Info,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnEndItem {
    pub(crate) outcome: TurnOutcome,
    /// An unusual stop reason, or the error; empty otherwise.
    pub(crate) detail: String,
    /// `None` if the beginning of the turn is not known.
    pub(crate) duration_ms: Option<u64>,
    pub(crate) tokens: Option<TokenCounts>,
    pub(crate) cost: Option<UsageCost>,
    pub(crate) context: Option<ContextUsage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    Completed,
    Cancelled,
    Failed,
    Interrupted,
}
