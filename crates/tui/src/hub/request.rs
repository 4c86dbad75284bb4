//! What the interface asks of the hub.

use serde_json::Value;

/// Identifies a request, so that its outcome can be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct RequestNumber(pub(crate) u64);

/// A range of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogRange {
    /// The last events.
    End,
    /// The events before this one, the newest if not all fit.
    Before(u64),
    /// The events after this one, the oldest if not all fit.
    After(u64),
}

/// How a prompt reaches the agent while a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptDelivery {
    /// It waits in the queue.
    Queue,
    /// It cancels the turn and runs instead.
    Steer,
}

/// A value of a setting that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingValue {
    Mode(String),
    Model(String),
    Reasoning(String),
}

/// A request to the hub. Its outcome arrives as [`super::HubUpdate::Outcome`], a page or the settings as their own
/// updates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HubRequest {
    /// Reads a page of a log.
    ReadLog {
        session: String,
        range: LogRange,
        limit: u64,
    },
    /// Sends all events after this one as they happen, until `Unfollow`.
    Follow {
        session: String,
        after: u64,
    },
    Unfollow {
        session: String,
    },
    ReadSettings {
        session: String,
    },
    ReadQueue {
        session: String,
    },
    /// `blocks` are content blocks of ACP.
    Prompt {
        session: String,
        blocks: Vec<Value>,
        delivery: PromptDelivery,
    },
    /// Cancels the turn. `_jackfield` withdraws queued prompts with it.
    Cancel {
        session: String,
    },
    WithdrawPrompt {
        session: String,
        prompt: u64,
    },
    /// Moves a queued prompt before another one, or to the end.
    MovePrompt {
        session: String,
        prompt: u64,
        before: Option<u64>,
    },
    /// Runs a prompt that a restart left in the queue.
    RunHeldPrompt {
        session: String,
        prompt: u64,
    },
    AnswerOption {
        session: String,
        number: u64,
        option: String,
    },
    /// The result of a form: `{"action": …}`.
    AnswerForm {
        session: String,
        number: u64,
        result: Value,
    },
    ChangeSetting {
        session: String,
        value: SettingValue,
    },
    RenameSession {
        session: String,
        name: String,
    },
    /// Opens a session with the default agent if none is named.
    NewSession {
        agent: Option<String>,
        cwd: String,
    },
    /// Copies a session up to an event, or all of it.
    ForkSession {
        session: String,
        at: Option<u64>,
    },
    CloseSession {
        session: String,
    },
    DeleteSession {
        session: String,
    },
    /// The agents that can be started.
    ListAgents,
}
