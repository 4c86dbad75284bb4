//! All outputs of the hub. The driver executes them in order, without waiting.

use crate::{AgentId, ConnId, PeerProcess, Seq, SessionId};
use bytes::Bytes;
use jackfield_events::{AgentName, HostId, RawJson, SessionEvent};
use jackfield_protocol::Frame;
use std::{fmt, path::PathBuf, sync::Arc};

/// How the names of terminals begin that the driver serves: whoever else can serve terminals knows
/// nothing of these.
pub const TERMINAL_PREFIX: &str = "jackfield-terminal-";

#[derive(Debug, Clone)]
pub enum Output {
    /// Write this event, and the session's new summary if there is one; answer with
    /// [`crate::Input::Durable`].
    Append { session: SessionId, event: SessionEvent, summary: Option<Bytes> },
    /// Write the summary of a session whose events up to `upto` are written; answer with
    /// [`crate::Input::Durable`].
    Summarize { session: SessionId, upto: Seq, summary: Bytes },
    /// Read events after `after`; answer with [`crate::Input::Read`].
    Read { conn: ConnId, session: SessionId, after: Seq },
    /// Read events after `after` for the hub itself; answer with [`crate::Input::Recalled`].
    Recall { session: SessionId, after: Seq },
    /// Copy the events up to `upto` into a new stream, each with the id of the new session
    /// ([`SessionEvent::with_session_id`]), and append `last`; answer with [`crate::Input::Copied`].
    /// A copy without `last` is incomplete: the next start removes it.
    Copy { from: SessionId, upto: Seq, to: SessionId, last: SessionEvent },
    /// Remove the session's stream.
    Delete { session: SessionId },
    /// The hub has forgotten this session, because of [`crate::Input::LetGo`] or because nobody needs
    /// it here: its agent has ended and all of it is written. Somebody else may own it from now on.
    LetGone { session: SessionId },
    /// A message for a client.
    ToClient { conn: ConnId, text: Bytes },
    /// Nothing more will come for this client: send what is queued and hang up; answer with
    /// [`crate::Input::ClientGone`].
    CloseClient { conn: ConnId },
    /// Starts an agent process; answer with [`crate::Input::AgentStarted`] or `AgentGone`.
    Spawn { agent: AgentId, launch: Launch },
    /// A message for an agent.
    ToAgent { agent: AgentId, text: Bytes },
    /// The journal is behind: stop reading this agent's pipe.
    PauseAgent { agent: AgentId },
    /// Read it again.
    ResumeAgent { agent: AgentId },
    /// An agent asks for a file or a terminal and no client serves it: serve it inside `dirs`, the
    /// first of which is the session's own; answer with [`crate::Input::Served`]. Terminals end
    /// with their agent.
    Serve { agent: AgentId, frame: Frame, dirs: Vec<PathBuf> },
    /// End this agent's process tree, `now` without asking it first; answer with
    /// [`crate::Input::AgentGone`].
    StopAgent { agent: AgentId, now: bool },
    /// A turn that began so long ago was cancelled: end what the agent started in it and left
    /// running. The agent itself stays.
    EndTools { agent: AgentId, age_ms: u64 },
    /// Something worth a log line or a counter.
    Note(Note),
    /// A client asked the daemon to end.
    StopAsked,
    /// After [`crate::Input::Stop`]: nothing runs and everything is written.
    Stopped,
}

/// How to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub name: AgentName,
    /// Empty if the driver knows by the name how it is started.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The agent's whole environment, or `None` for what the driver gives by default.
    pub env: Option<Arc<Environment>>,
}

/// Variables of an agent's environment; never shown, never written down.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment(pub Vec<(String, String)>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// The life of the hub in words; `daemon/observe` makes lines and counters of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    SessionOpened {
        session: SessionId,
        agent: AgentId,
    },
    SessionWoke {
        session: SessionId,
        agent: AgentId,
        rung: &'static str,
    },
    SessionForked {
        session: SessionId,
        from: SessionId,
    },
    /// `held` events were said and never became durable: nobody has heard them.
    SessionFenced {
        session: SessionId,
        held: usize,
    },
    SessionDeleted {
        session: SessionId,
    },
    SessionImported {
        session: SessionId,
        events: u64,
    },
    /// `from` is the host that had it.
    SessionAdopted {
        session: SessionId,
        from: Option<HostId>,
    },
    SessionLetGo {
        session: SessionId,
    },
    TurnStarted {
        session: SessionId,
        turn: u64,
    },
    /// `reason` is the agent's word for why it stopped, if it did.
    TurnEnded {
        session: SessionId,
        turn: u64,
        how: &'static str,
        reason: Option<String>,
    },
    ClientBehind {
        session: SessionId,
        conn: ConnId,
    },
    AppendRetried {
        session: SessionId,
        held: usize,
        why: String,
    },
    /// Appends fail, and clients are told so.
    StorageFailing {
        problem: &'static str,
        error: String,
        way_out: &'static str,
    },
    StorageRecovered {
        after_ms: u64,
    },
    /// The hub has stopped although these could not be written: they are lost.
    EventsUnwritten {
        events: usize,
    },
    /// An agent asks, and only a person can answer.
    AskOpened {
        session: SessionId,
        ask: u64,
        /// In the agent's words.
        what: String,
        /// What it is about, as the policy reads it; null for a form.
        call: Option<RawJson>,
    },
    AgentEnded {
        agent: AgentId,
        status: String,
    },
    /// An agent could not be had, and another is used instead.
    FellBack {
        agent: String,
        instead: String,
        why: String,
    },
    /// A client wanted what only the operator may do, and is below an agent or may be.
    OperationRefused {
        conn: ConnId,
        operation: String,
        by: Arc<str>,
        peer: PeerProcess,
    },
    /// An agent that serves several sessions said something in one that nobody knows.
    Unclaimed {
        agent: AgentId,
    },
}
