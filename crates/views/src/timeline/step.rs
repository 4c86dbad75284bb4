//! The steps of a timeline: what an event of the log means to the views.

use super::{ToolCallStart, TurnSummary};
use crate::usage::{ContextUsage, TokenCounts, UsageCost};
use serde_json::{Map, Value};

/// The steps that one event of the log causes, in order.
#[derive(Debug)]
pub(crate) struct TimelineUpdate {
    pub(crate) seq: u64,
    pub(crate) at: u64,
    pub(crate) entries: Vec<TimelineEntry>,
}

/// A step and the turn that it belongs to.
#[derive(Debug)]
pub(crate) struct TimelineEntry {
    pub(crate) turn: Option<u64>,
    pub(crate) step: TimelineStep,
}

#[derive(Debug)]
pub(crate) enum TimelineStep {
    /// The session has an agent: it was opened, or restored with this method.
    AgentReady {
        restored_by: Option<String>,
        model: Option<String>,
    },
    ModelChanged(String),
    ModeChanged(String),
    /// Config options with their values.
    OptionsChanged(Map<String, Value>),
    TurnStarted {
        prompt: Vec<Value>,
    },
    /// A chunk of the answer. The first chunk of a turn has the time to first text.
    Text {
        text: String,
        message: Option<String>,
        ttft_ms: Option<u64>,
    },
    /// A chunk of reasoning, and whether a new thought starts with it.
    Thought {
        text: String,
        message: Option<String>,
        starts: bool,
    },
    /// A block of the answer that is not text: an image, a file, a link.
    Block(Value),
    CallStarted(Box<ToolCallStart>),
    CallEnded {
        id: String,
        parent: Option<String>,
        content: String,
        is_error: bool,
    },
    Plan(Vec<Value>),
    PermissionRequested(Box<PermissionRequest>),
    /// Without an option, the request was cancelled or expired.
    PermissionAnswered {
        ask: u64,
        call: Option<String>,
        option: Option<String>,
        by: String,
    },
    TurnEnded {
        end: Box<TurnEnd>,
        context: Option<ContextUsage>,
    },
    /// A line of output that the adapter could not parse.
    Unmapped(Value),
    /// Any other event, as a label with a detail.
    Note {
        label: String,
        detail: Option<String>,
        ms: Option<u64>,
    },
}

/// A permission request.
#[derive(Debug)]
pub(crate) struct PermissionRequest {
    /// The number of the request in the session.
    pub(crate) ask: u64,
    /// The tool call, as far as it is known.
    pub(crate) call: ToolCallStart,
    /// The options as the agent sent them.
    pub(crate) options: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) summary: TurnSummary,
    pub(crate) tokens: TokenCounts,
    pub(crate) cost: Option<UsageCost>,
    pub(crate) ms: Option<u64>,
}

impl TimelineUpdate {
    pub(super) fn new(seq: u64, at: u64) -> TimelineUpdate {
        TimelineUpdate { seq, at, entries: Vec::new() }
    }

    /// Adds a step outside of any turn.
    pub(super) fn push_step(&mut self, step: TimelineStep) {
        self.push_in_turn(None, step);
    }

    pub(super) fn push_steps(&mut self, steps: impl IntoIterator<Item = TimelineStep>) {
        for step in steps {
            self.push_step(step);
        }
    }

    /// Adds a step to a turn. Turns count from 1: turn 0 stands for no turn.
    pub(super) fn push_in_turn(&mut self, turn: Option<u64>, step: TimelineStep) {
        self.entries.push(TimelineEntry { turn: turn.filter(|it| *it != 0), step });
    }
}

impl TimelineStep {
    pub(super) fn note(label: &str, detail: Option<&str>, ms: Option<u64>) -> TimelineStep {
        let detail = detail.filter(|it| !it.is_empty()).map(str::to_owned);
        TimelineStep::Note { label: label.to_owned(), detail, ms }
    }
}

/// The steps of a `session_info_update`: a title, a notice of an adapter, lines of
/// stderr, or a line that an adapter could
/// not parse.
pub(super) fn info_steps(update: &Value) -> impl Iterator<Item = TimelineStep> {
    let meta = &update["_meta"]["jackfield"];
    let title = update["title"].as_str();
    let title = title.map(|it| TimelineStep::note("session_info_update", Some(it), None));
    let notice = meta["notice"].as_str().map(|it| TimelineStep::note("notice", Some(it), None));
    let stderr = meta["stderr"].as_str().map(|it| TimelineStep::note("stderr", Some(it), None));
    let unmapped = meta.get("unmapped").map(|it| TimelineStep::Unmapped(it.clone()));
    [title, notice, stderr, unmapped].into_iter().flatten()
}

/// The readable text of an update of an unknown kind, if it has one of the usual members.
pub(super) fn find_detail(update: &Value) -> Option<&str> {
    let members = ["title", "message", "description", "text", "detail"];
    let content = || update["content"]["text"].as_str();
    members.iter().find_map(|it| update[*it].as_str()).or_else(content)
}
