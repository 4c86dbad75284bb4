//! What the hub reports to the interface.

use super::{AgentOverview, LogRange, OpenRequest, RequestNumber, SessionRow};
use jackfield_events::ReceivedEvent;
use jackfield_views::options::SettingOffer;
use serde_json::Value;

/// The connection to the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ConnectionState {
    #[default]
    Connecting,
    Connected,
    /// The connection was lost and is being opened again; the reason as a sentence.
    Lost(String),
}

/// A message of the hub, or about the connection to it.
#[derive(Debug, Clone)]
pub(crate) enum HubUpdate {
    Connection(ConnectionState),
    /// All sessions and all open requests; also after each reconnection.
    Lists {
        sessions: Vec<SessionRow>,
        requests: Vec<OpenRequest>,
    },
    /// Rows that are new or different.
    Changes {
        sessions: Vec<SessionRow>,
        requests: Vec<OpenRequest>,
        /// Ids of deleted sessions.
        removed: Vec<String>,
        /// Session, number, the client that answered, the chosen option.
        answered: Vec<AnsweredRequest>,
    },
    LogPage(LogPage),
    /// New events of a followed session, in order and without gaps. After a reconnection they continue.
    LogEvents {
        session: String,
        events: Vec<ReceivedEvent>,
    },
    Settings {
        session: String,
        settings: Box<SessionSettings>,
    },
    Queue {
        session: String,
        prompts: Vec<QueuedPrompt>,
    },
    Agents(AgentOverview),
    /// How a request ended: its result, or the error as a sentence.
    Outcome {
        number: RequestNumber,
        result: Result<Value, String>,
    },
}

/// How a request to the user was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnsweredRequest {
    pub(crate) session: String,
    pub(crate) number: u64,
    /// The client that answered it, `policy` for a rule, or `jackfield` if it was closed without an answer.
    pub(crate) by: Option<String>,
    pub(crate) option: Option<String>,
}

/// Events of a log, in order and without gaps.
#[derive(Debug, Clone)]
pub(crate) struct LogPage {
    pub(crate) session: String,
    pub(crate) range: LogRange,
    /// An event that cannot be parsed is skipped; `first` and `last` count it.
    pub(crate) events: Vec<ReceivedEvent>,
    /// The sequence numbers of the first and last event of the page; `None` for an empty page.
    pub(crate) bounds: Option<(u64, u64)>,
    /// The sequence number of the last event of the session.
    pub(crate) end: u64,
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedPrompt {
    pub(crate) number: u64,
    pub(crate) by: String,
    pub(crate) text: String,
    /// It was queued before a restart and runs only if a client runs it.
    pub(crate) is_held: bool,
}

/// What the agent of a session offers, and where it works.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionSettings {
    pub(crate) mode: Option<SettingOffer>,
    pub(crate) model: Option<SettingOffer>,
    pub(crate) reasoning: Option<SettingOffer>,
    pub(crate) commands: Vec<SessionCommand>,
    /// The working directory, then the additional ones.
    pub(crate) directories: Vec<String>,
}

/// A slash command of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCommand {
    pub(crate) name: String,
    pub(crate) description: String,
}
