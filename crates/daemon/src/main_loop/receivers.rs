//! The channels into the loop, and the events that it handles.

use crate::{
    fleet::FleetCall,
    metrics::SnapshotRequest,
    sandbox::ProxyMessage,
    served::{CompletedJob, TerminalId},
    signals::DaemonSignal,
};
use jackfield_agents::AgentProcessEvent;
use jackfield_hub::{AgentId, ConnId};
use jackfield_journal::JournalCompletion;
use jackfield_transport::{ClientEvent, ClientStream};
use tokio::sync::mpsc::Receiver;

/// One bounded channel per source.
pub(crate) struct LoopReceivers {
    pub(crate) journal: Receiver<JournalCompletion>,
    pub(crate) agents: Receiver<(AgentId, AgentProcessEvent)>,
    pub(crate) clients: Receiver<(ConnId, ClientEvent)>,
    pub(crate) served: Receiver<CompletedJob>,
    pub(crate) terminals: Receiver<(TerminalId, AgentProcessEvent)>,
    pub(crate) proxy_messages: Receiver<(AgentId, ProxyMessage)>,
    pub(crate) accepted: Receiver<ClientStream>,
    pub(crate) snapshot_requests: Receiver<SnapshotRequest>,
    pub(crate) signals: Receiver<DaemonSignal>,
    /// Calls of the fleet, if this daemon is a member.
    pub(crate) fleet: Receiver<FleetCall>,
}

/// Why the loop woke up.
pub(super) enum LoopEvent {
    Journal(JournalCompletion),
    Agent(AgentId, AgentProcessEvent),
    Client(ConnId, ClientEvent),
    Served(CompletedJob),
    Terminal(TerminalId, AgentProcessEvent),
    Proxy(AgentId, ProxyMessage),
    Accepted(ClientStream),
    Snapshot(SnapshotRequest),
    Signal(DaemonSignal),
    Fleet(FleetCall),
    Tick,
    /// Pending batches may be written.
    BatchReady,
    CheckPressure,
    Idle,
}

impl LoopReceivers {
    /// The next event that is already there, by priority.
    pub(super) fn try_next_event(&mut self) -> Option<LoopEvent> {
        if let Ok(done) = self.journal.try_recv() {
            return Some(LoopEvent::Journal(done));
        }
        if let Ok((agent, event)) = self.agents.try_recv() {
            return Some(LoopEvent::Agent(agent, event));
        }
        self.clients.try_recv().ok().map(|(conn, event)| LoopEvent::Client(conn, event))
    }
}
