//! All outputs of the hub. The driver executes them in order, without waiting.

use crate::{AgentId, ConnId, PeerProcess, Seq, SessionId};
use bytes::Bytes;
use jackfield_events::{AgentName, HostId, RawJson, SessionEvent};
use jackfield_protocol::Frame;
use std::{fmt, path::PathBuf, sync::Arc};

/// The prefix of the ids of terminals that the daemon serves. No client knows these.
pub const TERMINAL_PREFIX: &str = "jackfield-terminal-";

#[derive(Debug, Clone)]
pub enum Output {
    /// Store this event, and the summary of the session if there is one; answer with
    /// [`crate::Input::Durable`].
    Append { session: SessionId, event: SessionEvent, summary: Option<Bytes> },
    /// Store the summary of a session whose events up to `upto` are stored; answer with
    /// [`crate::Input::Durable`].
    Summarize { session: SessionId, upto: Seq, summary: Bytes },
    /// Read events after `after`; answer with [`crate::Input::Read`].
    Read { conn: ConnId, session: SessionId, after: Seq },
    /// Read at most `events_max` events after `after` for a page of a log; answer with
    /// [`crate::Input::PageRead`].
    ReadPage { page: u64, session: SessionId, after: Seq, events_max: usize },
    /// Read events after `after` for the hub itself; answer with [`crate::Input::Recalled`].
    Recall { session: SessionId, after: Seq },
    /// Copy the events up to `upto` into a new stream, each with the id of the new session
    /// ([`SessionEvent::with_session_id`]), and append `last`; answer with [`crate::Input::Copied`].
    /// A copy without `last` is incomplete: the next start removes it.
    Copy { from: SessionId, upto: Seq, to: SessionId, last: SessionEvent },
    /// Delete the stream of the session.
    Delete { session: SessionId },
    /// The session is released, because of [`crate::Input::ReleaseSession`] or because no client uses it here: its agent has
    /// ended and all events are stored. Another host may own it from now on.
    SessionReleased { session: SessionId },
    /// Send a message to a client.
    ToClient { conn: ConnId, text: Bytes },
    /// Send the queued messages of this client and close its connection; answer with
    /// [`crate::Input::ClientGone`].
    CloseClient { conn: ConnId },
    /// Start an agent process; answer with [`crate::Input::AgentStarted`] or `AgentGone`.
    Spawn { agent: AgentId, launch: Launch },
    /// Send a message to an agent.
    ToAgent { agent: AgentId, text: Bytes },
    /// Stop reading the output of this agent, because the journal is behind.
    PauseAgent { agent: AgentId },
    /// Read its output again.
    ResumeAgent { agent: AgentId },
    /// Serve a request for a file or a terminal that no client serves, inside `dirs`; the first is the working
    /// directory of the session. Answer with [`crate::Input::Served`]. Terminals end with their agent.
    Serve { agent: AgentId, frame: Frame, dirs: Vec<PathBuf> },
    /// End the process tree of this agent; if `now`, without asking it first. Answer with
    /// [`crate::Input::AgentGone`].
    StopAgent { agent: AgentId, now: bool },
    /// A turn that began `age_ms` ago was cancelled: end the processes that the agent started in it and left
    /// running. The agent itself continues.
    EndTools { agent: AgentId, age_ms: u64 },
    /// Something for the log and the metrics.
    Note(Note),
    /// Change the addresses on which the driver accepts clients; answer with
    /// [`crate::Input::ListenersChanged`].
    ChangeListeners { conn: ConnId, request: Box<str>, change: ListenerChange },
    /// A client asked the daemon to stop.
    StopAsked,
    /// The hub has stopped after [`crate::Input::Stop`]: no agent runs and everything is stored.
    Stopped,
}

/// A change of the addresses on which the driver accepts clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenerChange {
    /// Only list them.
    None,
    /// `insecure` permits unencrypted connections from other machines.
    Add {
        address: String,
        insecure: bool,
    },
    Remove {
        address: String,
    },
}

/// How to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub name: AgentName,
    /// Empty if the catalog has the command for this name.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment of the agent, or `None` for the default one.
    pub env: Option<Arc<Environment>>,
    /// Which launch variant of the catalog is started, if there is no command.
    pub variant: VariantChoice,
    pub sandbox: SandboxRequest,
}

/// What a client asked for about the sandbox of an agent. The driver enforces it and reports the profile with
/// [`crate::Input::AgentSandboxed`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRequest {
    /// The name of a profile, or `None` for the configured one.
    pub profile: Option<Arc<str>>,
    /// The directories of the session beside its working directory.
    pub directories: Vec<PathBuf>,
}

/// Which launch variant of the catalog is started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum VariantChoice {
    /// The first whose program is installed.
    #[default]
    Any,
    /// This one, or the first if its program is not installed any more.
    Preferred(Arc<str>),
    /// This one: those before it failed.
    From(Arc<str>),
    /// This one and no other.
    Only(Arc<str>),
}

/// Environment variables of an agent. They are never shown or stored.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment(pub Vec<(String, String)>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// Things that the daemon logs and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    SessionOpened {
        session: SessionId,
        agent: AgentId,
    },
    SessionWoke {
        session: SessionId,
        agent: AgentId,
        step: &'static str,
    },
    SessionForked {
        session: SessionId,
        from: SessionId,
    },
    /// `held` events never became durable, and no client received them.
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
    /// `from` is the host that owned it before.
    SessionAdopted {
        session: SessionId,
        from: Option<HostId>,
    },
    SessionReleased {
        session: SessionId,
    },
    TurnStarted {
        session: SessionId,
        turn: u64,
    },
    /// `reason` is the stop reason of the agent, if there is one.
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
    /// Appends fail, and clients are notified.
    StorageFailing {
        problem: &'static str,
        error: String,
        way_out: &'static str,
    },
    StorageRecovered {
        after_ms: u64,
    },
    /// The hub has stopped although these events could not be stored: they are lost.
    EventsUnwritten {
        events: usize,
    },
    /// A request to the user was opened.
    AskOpened {
        session: SessionId,
        ask: u64,
        /// The title that the agent gave.
        what: String,
        /// The facts of the tool call as the policy reads them; nothing for an elicitation.
        call: Option<RawJson>,
    },
    AgentEnded {
        agent: AgentId,
        status: String,
    },
    /// An agent could not be started, and its next launch variant or its fallback is used.
    FellBack {
        agent: String,
        instead: String,
        why: String,
    },
    /// A client whose process belongs to an agent, or may belong to one, requested something that only the operator
    /// may do.
    OperationRefused {
        conn: ConnId,
        operation: String,
        by: Arc<str>,
        peer: PeerProcess,
    },
    /// An agent sent a message for a session that it does not serve.
    Unclaimed {
        agent: AgentId,
    },
}
