//! Ids of host connections, and the clients that they belong to.

use jackfield_hub::ConnId;
use std::{collections::BTreeMap, fmt};

/// One client's connection to one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostConnectionId(pub u64);

impl fmt::Display for HostConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l-{}", self.0)
    }
}

/// The clients of all open host connections. The connections themselves belong to the clients.
#[derive(Debug, Default)]
pub(super) struct HostConnectionOwners {
    by_id: BTreeMap<HostConnectionId, ConnId>,
    last_id: u64,
}

impl HostConnectionOwners {
    /// Registers a new connection of a client.
    pub(super) fn add_connection(&mut self, conn: ConnId) -> HostConnectionId {
        self.last_id += 1;
        let host_conn = HostConnectionId(self.last_id);
        self.by_id.insert(host_conn, conn);
        host_conn
    }

    pub(super) fn remove_connection(&mut self, host_conn: HostConnectionId) {
        self.by_id.remove(&host_conn);
    }

    pub(super) fn client_of(&self, host_conn: HostConnectionId) -> Option<ConnId> {
        self.by_id.get(&host_conn).copied()
    }

    /// All connections with their clients, in the order in which they were opened.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HostConnectionId, ConnId)> {
        self.by_id.iter().map(|(host_conn, conn)| (*host_conn, *conn))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}
