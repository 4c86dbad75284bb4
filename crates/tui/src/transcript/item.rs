//! The items of a transcript.

use jackfield_events::Time;
use jackfield_views::{TokenCounts, UsageCost};
use serde_json::Value;

/// Identifies an item: the sequence number of its first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemKey(pub(crate) u64);

/// One item. `revision` grows with each change, so that rendered lines can be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TranscriptItem {
    pub(crate) key: ItemKey,
    pub(crate) revision: u64,
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
    /// A request to the user.
    Request {
        number: u64,
        /// The tool call that needs permission; empty for a form.
        call_id: String,
        title: String,
        /// Why the policy decided, or did not decide.
        why: String,
        answer: Option<RequestAnswer>,
    },
    /// A sentence about the session; `detail` is longer text, such as the last lines on stderr.
    Notice {
        level: NoticeLevel,
        text: String,
        detail: String,
    },
    TurnEnd(Box<TurnEndItem>),
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
#[derive(Debug, Clone, PartialEq)]
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
    /// Paths with lines.
    pub(crate) locations: Vec<(String, Option<u64>)>,
    pub(crate) ended_at: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolStatus {
    Pending,
    Running,
    Done,
    Failed,
    /// The turn ended, or the agent exited, without a result.
    Unfinished,
}

/// Content of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolOutput {
    /// Markdown, or the output of a command.
    Text(String),
    Diff {
        path: String,
        old: Option<String>,
        new: String,
    },
    /// Output of a terminal, with escape sequences for colors.
    Terminal(String),
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    pub(crate) content: String,
    /// `pending`, `in_progress` or `completed`.
    pub(crate) status: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestAnswer {
    pub(crate) by: String,
    /// The chosen option as the agent names it, or why there is none.
    pub(crate) choice: String,
    /// `allow_once`, `reject_once`, …; empty if it is no option.
    pub(crate) option_kind: String,
    /// The answer counts for all similar requests.
    pub(crate) is_always: bool,
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
    pub(crate) duration_ms: Option<u64>,
    pub(crate) tokens: Option<TokenCounts>,
    pub(crate) cost: Option<UsageCost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    Completed,
    Cancelled,
    Failed,
    Interrupted,
}
