//! Counters and gauges for metrics.

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub clients_opened: u64,
    pub clients_closed: u64,
    pub host_connections_opened: u64,
    /// Host connections that ended while their client was connected.
    pub host_connections_lost: u64,
    /// How often the owner of a client's session was lost and searched again.
    pub moves: u64,
    /// Requests that were sent again after a lost connection.
    pub resent: u64,
    /// Client messages that were answered with an error of the gateway or could not be routed.
    pub refused: u64,
    /// Host frames that the client had already received.
    pub repeated: u64,
    /// Host frames that no longer have a recipient.
    pub stray: u64,
}

/// Current values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewayGauges {
    pub counters: GatewayCounters,
    pub clients: usize,
    pub host_conns: usize,
    pub hosts: usize,
    /// Sessions in use, counted once per client.
    pub sessions: usize,
    /// Requests without a response.
    pub pending: usize,
    /// Sessions whose owner is being searched.
    pub searches: usize,
    /// Bytes that are retained to be sent again, and bytes that were sent and are not yet written.
    pub retained_bytes: usize,
    pub unwritten_bytes: usize,
}
