//! What can be counted, for whoever shows it to people.

use super::Bus;
use jackfield_protocol::Frame;
use std::sync::Arc;

/// Since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusCounters {
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub clients_opened: u64,
    pub clients_closed: u64,
    pub restarts: u64,
    /// Messages of clients that were answered with a fault, or had nowhere to go.
    pub refused: u64,
    /// Messages of workers for nobody.
    pub unheard: u64,
    /// Answers that nobody waited for.
    pub stray: u64,
}

impl BusCounters {
    pub(super) fn heard(&mut self, frame: &Frame) {
        self.messages_in += 1;
        self.bytes_in += frame.bytes().len() as u64;
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.messages_out += 1;
        self.bytes_out += bytes as u64;
    }
}

/// As it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusGauges {
    pub counters: BusCounters,
    pub clients: usize,
    pub sessions: usize,
    pub pending: usize,
    pub pools: Vec<PoolGauges>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolGauges {
    pub pool: Arc<str>,
    /// Workers that were started and have not ended.
    pub alive: usize,
    pub instances: usize,
    /// Sessions that clients use.
    pub sessions: usize,
    pub pending: usize,
    /// Bytes that its workers have not taken.
    pub backlog: usize,
}

impl Bus {
    pub fn gauges(&self) -> BusGauges {
        let pools = self.pools.iter().map(|(id, pool)| {
            let workers = || self.workers.values().filter(|it| it.pool == *id);
            PoolGauges {
                pool: Arc::clone(&pool.spec.id),
                alive: workers().filter(|it| it.started).count(),
                instances: pool.slots.len(),
                sessions: workers().map(|it| it.used_sessions).sum(),
                pending: workers().map(|it| it.calls.owes()).sum(),
                backlog: workers().map(|it| it.backlog.bytes()).sum(),
            }
        });
        BusGauges {
            counters: self.counters,
            clients: self.clients.len(),
            sessions: self.session_count,
            pending: self.pending,
            pools: pools.collect(),
        }
    }
}
