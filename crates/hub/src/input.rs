//! All inputs of the hub.

use crate::{
    AgentId, AgentPool, ConnId, Launch, Liveness, PeerProcess, PolicySet, Seq, SessionId, Sleep,
    StorageFault, Usage,
};
use jackfield_events::{AgentName, HostId, SessionEvent, SessionSummary, TenantName};
use jackfield_protocol::{Fault, Frame, LineTooLong};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone)]
pub enum Input {
    /// A client connected. `peer` is its process, unless it came over TCP or HTTP, or is a part of
    /// the driver itself.
    ClientOpened { conn: ConnId, peer: Option<PeerProcess> },
    /// A client said something.
    ClientSpoke { conn: ConnId, frame: Frame },
    /// A client said something that is no message.
    ClientSentInvalidFrame { conn: ConnId, fault: Fault },
    /// So many bytes handed to this client are on their way: its outbox has room again.
    ClientWrote { conn: ConnId, bytes: usize },
    /// A client will say nothing more but still listens: it is closed when it has all its answers.
    ClientFinished { conn: ConnId },
    /// A client went away.
    ClientGone { conn: ConnId },
    /// An agent process runs.
    AgentStarted { agent: AgentId, pid: u32 },
    /// The program that is being started never asks before it acts: no rule can be enforced.
    AgentNeverAsks { agent: AgentId },
    /// An agent said something.
    AgentSpoke { agent: AgentId, frame: Frame },
    /// An agent said something that is longer than a message may be. It is lost.
    AgentSentOversized { agent: AgentId, line: LineTooLong },
    /// An agent process ended, or could not be started.
    AgentGone { agent: AgentId, exit: Exit },
    /// Other agents are known by name than before, or are kept otherwise; what runs goes on.
    AgentsChanged { agents: BTreeMap<AgentName, Launch>, pools: BTreeMap<AgentName, AgentPool> },
    /// The configuration was read again. Timers that run already keep their time.
    SettingsChanged { default_agent: Option<AgentName>, sleep: Sleep, liveness: Liveness },
    /// The journal has everything of this session up to `upto`.
    Durable { session: SessionId, upto: Seq },
    /// The journal could not append; nothing after the last [`Input::Durable`] is known to be there.
    AppendFailed { session: SessionId, why: AppendFailure },
    /// The journal answered [`crate::Output::Read`]: a prefix of what is durable after `after`.
    Read { conn: ConnId, session: SessionId, after: Seq, events: Vec<SessionEvent> },
    /// The journal could not answer [`crate::Output::Read`]; `damaged`: it never will.
    ReadFailed { conn: ConnId, session: SessionId, after: Seq, why: String, damaged: bool },
    /// The journal answered [`crate::Output::Recall`]: a prefix of what is durable after `after`.
    Recalled { session: SessionId, after: Seq, events: Vec<SessionEvent> },
    /// The journal could not answer [`crate::Output::Recall`].
    RecallFailed { session: SessionId, why: String },
    /// [`crate::Output::Copy`] is done: what the fold over the copy gives, its last event included.
    Copied { to: SessionId, state: Box<SessionSummary> },
    /// [`crate::Output::Copy`] failed; nothing of the copy is left.
    CopyFailed { to: SessionId, why: String },
    /// This hub owns a session from now on: `state` is what the fold over its log gives, its last
    /// event included. `from` is the host that had it, if another one had.
    Adopted { session: SessionId, state: Box<SessionSummary>, from: Option<HostId> },
    /// This hub is to own a session no longer; answered with [`crate::Output::LetGone`].
    LetGo { session: SessionId },
    /// What the driver was asked to serve with [`crate::Output::Serve`]: the answer, under the
    /// agent's own id.
    Served { agent: AgentId, frame: Frame },
    /// What tenants have on the other hosts of a fleet, all together.
    Elsewhere { tenants: BTreeMap<TenantName, Usage> },
    /// Other rules hold than before; what is decided stays.
    PolicyChanged { policies: Arc<PolicySet> },
    /// The machine is short of memory.
    Pressure,
    /// The time asked for by [`crate::Hub::poll_timeout`] has come.
    Tick,
    /// End: interrupt what runs, stop the agents, write everything down.
    Stop,
}

/// How an agent process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// In words: `exit status 1`, `signal 9 (KILL)`, `not found`.
    pub status: String,
    /// The redacted last lines of its stderr.
    pub stderr: String,
    /// Whether the program ran at all.
    pub started: bool,
    /// It could not be started because there were no more processes, file descriptors or memory. That says nothing
    /// about the agent.
    pub shortage: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendFailure {
    /// Another writer owns the stream: this session is no longer ours.
    Fenced,
    /// The storage did not take it; the outcome is unknown.
    Unavailable { fault: StorageFault, why: String },
}
