//! Counters and gauges for metrics.

use std::sync::Arc;

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusCounters {
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub clients_opened: u64,
    pub clients_closed: u64,
    pub restarts: u64,
    /// Client messages that were answered with an error of the bus or could not be routed.
    pub refused: u64,
    /// Worker messages without a recipient.
    pub undelivered: u64,
    /// Responses without a pending request.
    pub stray: u64,
}

/// Current values.
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
    /// Bytes that are not yet written to its workers.
    pub backlog: usize,
}
