//! Figures about the current state of the hub. Reading them changes nothing.

use super::Sessions;
use crate::{AgentId, SessionId, agent::Agent, fanout::Phase, parts::HubParts};
use jackfield_events::AgentName;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions by state.
    pub sessions: BTreeMap<&'static str, usize>,
    pub clients: usize,
    pub agents: usize,
    /// Processes that may still be started without suspending a session; nothing without a limit.
    pub places_free: Option<usize>,
    /// Queued prompts in all sessions, including those that an earlier daemon left.
    pub prompts_waiting: usize,
    /// Starts of agents that wait.
    pub starts_waiting: usize,
    pub asks_open: usize,
    /// Events that are not durable yet.
    pub held_events: usize,
    pub held_bytes: usize,
    /// Pairs of a client and a session that it is subscribed to.
    pub attached: usize,
    /// Of these, those that read from the journal.
    pub behind: usize,
    /// How many durable events the slowest of them has not received.
    pub lag_max: u64,
    /// Bytes that were sent to clients and are not written to their sockets.
    pub unwritten_bytes: usize,
    pub processes: Vec<Process>,
}

/// A running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub agent: AgentName,
    /// Nothing for a process that serves no session.
    pub sessions: Vec<SessionId>,
    pub pid: u32,
}

impl Sessions {
    pub(crate) fn gauges(&self, parts: &HubParts) -> Gauges {
        let mut gauges = Gauges {
            clients: parts.clients.connections.len(),
            agents: parts.agents.processes.len(),
            places_free: parts.agents.count_free_places(&parts.cx),
            starts_waiting: parts.agents.starts.len(),
            unwritten_bytes: parts.cx.outbox_bytes.used_bytes(),
            ..Gauges::default()
        };
        for session in self.by_id.values().filter(|it| !it.is_opening()) {
            *gauges.sessions.entry(session.state_name(parts)).or_default() += 1;
            gauges.prompts_waiting += session.summary().queue.len();
            gauges.asks_open += session.asks.len();
            gauges.held_events += session.log.pending_events().count();
            gauges.held_bytes += session.log.pending_bytes();
            gauges.attached += session.subscribers.len();
            let durable = session.log.durable().0;
            for subscriber in session.subscribers.values() {
                gauges.behind += usize::from(subscriber.phase != Phase::Live);
                gauges.lag_max = gauges.lag_max.max(durable - subscriber.heard.0);
            }
        }
        let process = |(&id, agent): (&AgentId, &Agent)| {
            let mut sessions: Vec<SessionId> = self.served_by(parts, id);
            sessions.retain(|it| self.by_id.get(it).is_some_and(|it| !it.is_opening()));
            Some(Process { agent: agent.launch.name.clone(), sessions, pid: agent.pid? })
        };
        gauges.processes = parts.agents.processes.iter().filter_map(process).collect();
        gauges
    }
}
