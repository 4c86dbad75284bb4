//! All inputs of the hub.

use crate::{
    AgentId, AgentPool, ConnId, Launch, Liveness, McpConfig, PeerProcess, PolicySet, Seq,
    SessionId, Sleep, StorageFault, Usage,
};
use jackfield_events::{
    AgentName, ConnectionRefused, HostId, SandboxApplied, SessionEvent, SessionSummary, TenantName,
};
use jackfield_protocol::{Fault, Frame, LineTooLong};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone)]
pub enum Input {
    /// A client connected. `peer` is its process, unless it connected over TCP or HTTP, or is part of the
    /// daemon itself.
    ClientOpened { conn: ConnId, peer: Option<PeerProcess> },
    /// A client sent a message.
    ClientSpoke { conn: ConnId, frame: Frame },
    /// A client sent a line that is not a JSON-RPC message.
    ClientSentInvalidFrame { conn: ConnId, fault: Fault },
    /// This many bytes were written to the socket of the client.
    ClientWrote { conn: ConnId, bytes: usize },
    /// A client will send nothing more and still reads. It is closed when all its requests are answered.
    ClientFinished { conn: ConnId },
    /// A client disconnected.
    ClientGone { conn: ConnId },
    /// An agent process runs.
    AgentStarted { agent: AgentId, pid: u32 },
    /// The program never asks for permission before it acts, so no rule can be enforced.
    AgentNeverAsks { agent: AgentId },
    /// Which launch variant of the catalog is started for an agent, and the one to try if it fails.
    AgentVariantChosen { agent: AgentId, variant: Arc<str>, next: Option<Arc<str>> },
    /// The sandbox of the process that is started for an agent. It is not sent if the process has no limits.
    AgentSandboxed { agent: AgentId, sandbox: Arc<SandboxApplied> },
    /// The sandbox of an agent refused a connection. It is sent once for the same refusal, and a limited number of times.
    ConnectionRefused { agent: AgentId, refused: ConnectionRefused },
    /// The sandbox of an agent asks the user about a host, in the only session of the agent. The answer is
    /// [`crate::Output::ToAgent`] with the id of the request.
    HostAsked { agent: AgentId, request: Frame },
    /// An agent sent a message.
    AgentSpoke { agent: AgentId, frame: Frame },
    /// An agent sent a line that exceeds the limit. The line is lost.
    AgentSentOversized { agent: AgentId, line: LineTooLong },
    /// An agent process ended, or could not be started.
    AgentGone { agent: AgentId, exit: Exit },
    /// The configured agents or their process pools changed. Running processes continue.
    AgentsChanged { agents: BTreeMap<AgentName, Launch>, pools: BTreeMap<AgentName, AgentPool> },
    /// The configuration was read again. Timers that are already set keep their time.
    SettingsChanged {
        default_agent: Option<AgentName>,
        sleep: Sleep,
        liveness: Liveness,
        mcp: Arc<McpConfig>,
    },
    /// The events of this session up to `upto` are durable.
    Durable { session: SessionId, upto: Seq },
    /// An append failed. Whether events after the last [`Input::Durable`] are stored is unknown.
    AppendFailed { session: SessionId, why: AppendFailure },
    /// The result of [`crate::Output::Read`]: the first durable events after `after`.
    Read { conn: ConnId, session: SessionId, after: Seq, events: Vec<SessionEvent> },
    /// [`crate::Output::Read`] failed; if `damaged`, every retry fails, too.
    ReadFailed { conn: ConnId, session: SessionId, after: Seq, why: String, damaged: bool },
    /// The result of [`crate::Output::ReadPage`]: the first durable events after `after`.
    PageRead { page: u64, events: Result<Vec<SessionEvent>, PageReadFailure> },
    /// The result of [`crate::Output::Recall`]: the first durable events after `after`.
    Recalled { session: SessionId, after: Seq, events: Vec<SessionEvent> },
    /// [`crate::Output::Recall`] failed.
    RecallFailed { session: SessionId, why: String },
    /// [`crate::Output::Copy`] is done; `state` is the summary of the copy, including its last event.
    Copied { to: SessionId, state: Box<SessionSummary> },
    /// [`crate::Output::Copy`] failed, and the copy was removed.
    CopyFailed { to: SessionId, why: String },
    /// This hub owns a session from now on; `state` is the summary of its log. `from` is the host that owned it
    /// before, if another did.
    Adopted { session: SessionId, state: Box<SessionSummary>, from: Option<HostId> },
    /// Release the ownership of a session; answered with [`crate::Output::SessionReleased`].
    ReleaseSession { session: SessionId },
    /// The response to [`crate::Output::Serve`], with the request id of the agent.
    Served { agent: AgentId, frame: Frame },
    /// The result of [`crate::Output::ChangeListeners`]: JSON text, or why it failed.
    ListenersChanged { conn: ConnId, request: Box<str>, result: Result<String, Fault> },
    /// What tenants use on the other hosts of a fleet in total.
    TenantUsageReported { tenants: BTreeMap<TenantName, Usage> },
    /// The policy rules changed. Decisions that were made stay.
    PolicyChanged { policies: Arc<PolicySet> },
    /// The machine is short of memory.
    Pressure,
    /// The time of [`crate::Hub::poll_timeout`] has come.
    Tick,
    /// Stop: interrupt running turns, stop the agents, store everything.
    Stop,
}

/// How an agent process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// For example `exit status 1`, `signal 9 (KILL)` or `not found`.
    pub status: String,
    /// The redacted last lines of its stderr.
    pub stderr: String,
    /// Whether the program ran at all.
    pub started: bool,
    /// The process could not be started because the system has no processes, file descriptors or memory left. This
    /// does not count against the agent.
    pub shortage: bool,
}

impl Exit {
    /// The end of a process that the hub itself decided.
    pub(crate) fn with_status(status: String) -> Exit {
        Exit { status, stderr: String::new(), started: true, shortage: false }
    }
}

/// Why events of a page could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageReadFailure {
    pub why: String,
    /// The first event is damaged, and every retry fails, too.
    pub damaged: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendFailure {
    /// Another writer owns the stream, so another host owns the session.
    Fenced,
    /// The storage failed, and the outcome is unknown.
    Unavailable { fault: StorageFault, why: String },
}
