//! What can be counted, for whoever shows it to people.

use super::Gateway;
use jackfield_protocol::Frame;

/// Since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub clients_opened: u64,
    pub clients_closed: u64,
    pub host_connections_opened: u64,
    /// Host connections that ended while a client had them.
    pub host_connections_lost: u64,
    /// Sessions of clients that were taken to another owner, or to the same one again.
    pub moves: u64,
    /// Requests that were sent again after a loss.
    pub resent: u64,
    /// Messages of clients that were answered with a fault of ours, or had nowhere to go.
    pub refused: u64,
    /// Frames of hosts that the client had heard before.
    pub repeated: u64,
    /// Frames of hosts that nobody waits for any more.
    pub stray: u64,
}

impl GatewayCounters {
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewayGauges {
    pub counters: GatewayCounters,
    pub clients: usize,
    pub host_conns: usize,
    pub hosts: usize,
    /// Sessions that clients use, once for each client.
    pub sessions: usize,
    /// Requests without an answer.
    pub pending: usize,
    /// Sessions whose owner is looked for.
    pub searches: usize,
    /// Bytes that are kept to be sent again, and bytes that were handed out and not written.
    pub kept_bytes: usize,
    pub unwritten_bytes: usize,
}

impl Gateway {
    pub fn gauges(&self) -> GatewayGauges {
        let clients = || self.clients.values();
        let to_clients: usize = clients().map(|it| it.unwritten).sum();
        let to_host_conns: usize = self.host_conns.values().map(|it| it.unwritten).sum();
        GatewayGauges {
            counters: self.counters,
            clients: self.clients.len(),
            host_conns: self.host_conns.len(),
            hosts: self.hosts.len(),
            sessions: clients().map(|it| it.sessions.len()).sum(),
            pending: clients().map(|it| it.requests.len()).sum(),
            searches: self.searches.len(),
            kept_bytes: clients().map(|it| it.kept).sum(),
            unwritten_bytes: to_clients + to_host_conns,
        }
    }
}
