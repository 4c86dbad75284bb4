//! Configuration of the gateway: the hosts and the limits.

use jackfield_events::{AgentName, TenantName};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

pub use jackfield_events::HostId;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatewayConfig {
    /// Random for each gateway process, so that no two gateways create the same prompt keys.
    pub seed: u64,
    /// The agent of sessions that do not name one.
    pub agent: Option<AgentName>,
    pub limits: GatewayLimits,
}

/// A daemon that runs agents, as the fleet last reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: HostId,
    /// Changes when the host restarts; connections to an earlier incarnation are lost.
    pub incarnation: u64,
    /// Each is `key=value`. The gateway itself adds `host=NAME`.
    pub labels: BTreeSet<Arc<str>>,
    /// Directories that have the same content on every host that lists them.
    pub shared: Vec<PathBuf>,
    /// The agents it can start, and how many more processes of each.
    pub agents: BTreeMap<AgentName, usize>,
    /// Processes that it may still start, of any agent; `None` means unlimited.
    pub free: Option<usize>,
    /// Its sessions and live agents. New sessions go to the host with the lowest load.
    pub load: usize,
    /// Its sessions alone.
    pub sessions: usize,
    /// It gets no new sessions.
    pub draining: bool,
    /// Awake sessions, by tenant.
    pub tenants: BTreeMap<TenantName, usize>,
}

/// All limits. Whatever exceeds one is refused with an error, never dropped silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
    pub clients_max: usize,
    /// Bytes that were sent to a client and are not yet written. Above it, the client's host
    /// connections are not read.
    pub outbox_bytes_max: usize,
    /// Bytes of one client that are not yet written to hosts. Above it, the client is not read.
    pub unsent_bytes_max: usize,
    /// Pending requests of one client.
    pub pending_max: usize,
    /// Bytes of pending requests of one client, which are retained to be sent again when a host is
    /// lost.
    pub retained_bytes_max: usize,
    /// Bytes of pending requests of all clients; each client may have `RETAINED_BYTES_MIN` in any
    /// case.
    pub retained_bytes_total_max: usize,
    /// Messages of one client that wait for the owner of one session.
    pub waiting_max: usize,
    /// How long a message waits for a host.
    pub owner_wait_ms: u64,
    /// How long hosts may take to answer a request to all hosts.
    pub merge_ms: u64,
    /// The delay before a failed search is repeated.
    pub retry_ms: u64,
}

/// Bytes of pending requests that each client may have, regardless of the other clients.
pub(super) const RETAINED_BYTES_MIN: usize = 64 << 10;

impl Default for GatewayLimits {
    fn default() -> GatewayLimits {
        GatewayLimits {
            // Below the file descriptor limit of most systems.
            clients_max: 10_000,
            outbox_bytes_max: 4 << 20,
            unsent_bytes_max: 128 << 10,
            // The limit of a hub. An editor has a handful.
            pending_max: 1024,
            // Two frames of the maximum length.
            retained_bytes_max: 32 << 20,
            retained_bytes_total_max: 96 << 20,
            waiting_max: 256,
            // A lease expires after ten seconds, and another host adopts the session shortly after.
            owner_wait_ms: 30_000,
            merge_ms: 5_000,
            retry_ms: 250,
        }
    }
}
