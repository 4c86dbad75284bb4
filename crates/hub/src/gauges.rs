//! How the hub stands at this moment, in numbers: for whoever watches it. Reading them changes
//! nothing.

use crate::{Hub, SessionId, fanout::Phase};
use jackfield_events::AgentName;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Sessions by the word for where they stand.
    pub sessions: BTreeMap<&'static str, usize>,
    pub clients: usize,
    pub agents: usize,
    /// Processes that may still be started without another one being put to sleep; none without a bound.
    pub places_free: Option<usize>,
    /// Prompts that wait, in all sessions; those that an earlier daemon left included.
    pub prompts_waiting: usize,
    /// Starts of agents that wait for a place.
    pub starts_waiting: usize,
    pub asks_open: usize,
    /// Events that were said and are not durable yet, and so not heard by anybody.
    pub held_events: usize,
    pub held_bytes: usize,
    /// Pairs of a client and a session it hears.
    pub attached: usize,
    /// Of these, who reads the journal instead of hearing live.
    pub behind: usize,
    /// How many durable events the slowest of them has not heard yet.
    pub lag_max: u64,
    /// Bytes handed to clients and not yet written to their sockets.
    pub unwritten_bytes: usize,
    pub processes: Vec<Process>,
}

/// A running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub agent: AgentName,
    /// None for one that waits warm, or that only introduced itself.
    pub sessions: Vec<SessionId>,
    pub pid: u32,
}

impl Hub {
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            clients: self.parts.clients.connections.len(),
            agents: self.parts.agents.processes.len(),
            places_free: self.parts.agents.count_free_places(&self.parts.cx),
            starts_waiting: self.parts.agents.starts.len(),
            unwritten_bytes: self.parts.cx.outbox_bytes.used(),
            ..Gauges::default()
        };
        for (id, session) in &self.sessions.by_id {
            if session.is_opening() {
                continue;
            }
            *gauges.sessions.entry(self.shown(id, session)).or_default() += 1;
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
        let process = |(&id, agent): (&crate::AgentId, &crate::agent::Agent)| {
            let mut sessions = self.served_by(id);
            sessions.retain(|it| !self.sessions.by_id[it].is_opening());
            Some(Process { agent: agent.launch.name.clone(), sessions, pid: agent.pid? })
        };
        gauges.processes = self.parts.agents.processes.iter().filter_map(process).collect();
        gauges
    }
}
