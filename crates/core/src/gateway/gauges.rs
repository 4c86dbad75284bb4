//! What can be counted, for whoever shows it to people.

use super::Gateway;
use jackfield_wire::Frame;

/// Since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub messages_in: u64,
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub clients_opened: u64,
    pub clients_closed: u64,
    pub legs_opened: u64,
    /// Legs that ended while a client had them.
    pub legs_lost: u64,
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

impl Counters {
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
pub struct Gauges {
    pub counters: Counters,
    pub clients: usize,
    pub legs: usize,
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
    pub fn gauges(&self) -> Gauges {
        let clients = || self.clients.values();
        let to_clients: usize = clients().map(|it| it.unwritten).sum();
        let to_legs: usize = self.legs.values().map(|it| it.unwritten).sum();
        Gauges {
            counters: self.counters,
            clients: self.clients.len(),
            legs: self.legs.len(),
            hosts: self.hosts.len(),
            sessions: clients().map(|it| it.sessions.len()).sum(),
            pending: clients().map(|it| it.requests.len()).sum(),
            searches: self.searches.len(),
            kept_bytes: clients().map(|it| it.kept).sum(),
            unwritten_bytes: to_clients + to_legs,
        }
    }
}
