//! What a gateway is told: its hosts, its bounds, and what its keys are made of.

use jackfield_events::{AgentName, TenantName};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

pub use jackfield_events::HostId;
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatewayConfig {
    /// Drawn once for each gateway that is made: no two give the same keys to prompts.
    pub seed: u64,
    /// The agent of sessions that name none.
    pub agent: Option<AgentName>,
    pub limits: GatewayLimits,
}

/// A daemon that runs agents, as the fleet knows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: HostId,
    /// Another number is another life of it: whoever was connected to the one before is not any more.
    pub incarnation: u64,
    /// Each `key=value`. The gateway itself adds `host=NAME`.
    pub labels: BTreeSet<Arc<str>>,
    /// Directories that are the same on every host that names them.
    pub shared: Vec<PathBuf>,
    /// The agents it can start, and how many more of each.
    pub agents: BTreeMap<AgentName, usize>,
    /// Processes that it may still start, of whatever agent; without a number there is no bound.
    pub free: Option<usize>,
    /// Its sessions and live agents: new sessions go where there are fewest.
    pub load: usize,
    /// Its sessions alone.
    pub sessions: usize,
    /// Gets nothing new.
    pub draining: bool,
    /// Sessions that are awake there, by tenant.
    pub tenants: BTreeMap<TenantName, usize>,
}

/// Every bound. What is over one is told, never dropped in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
    pub clients_max: usize,
    /// Bytes handed to a client and not yet written. Above it, its host connections are not read.
    pub outbox_bytes_max: usize,
    /// Bytes of one client that hosts have not taken. Above it, the client is not read.
    pub untaken_bytes_max: usize,
    /// Requests one client may have open.
    pub pending_max: usize,
    /// Bytes of them: they are kept, to be sent again when a host is lost.
    pub kept_bytes_max: usize,
    /// The same of all clients; each may have `KEPT_BYTES_MIN` in any case.
    pub kept_bytes_all_max: usize,
    /// Frames of one client that wait for the owner of one session.
    pub waiting_max: usize,
    /// What waits for a host has so long.
    pub lost_ms: u64,
    /// What every host is asked, each has so long to answer.
    pub merge_ms: u64,
    /// The pause before a search that failed is tried again.
    pub retry_ms: u64,
}

/// Bytes of open requests that a client may have whatever the others have.
pub(super) const KEPT_BYTES_MIN: usize = 64 << 10;

impl Default for GatewayLimits {
    fn default() -> GatewayLimits {
        GatewayLimits {
            // Below the descriptors most systems give a process that asks for more.
            clients_max: 10_000,
            outbox_bytes_max: 4 << 20,
            untaken_bytes_max: 128 << 10,
            // As a hub has it: an editor has a handful.
            pending_max: 1024,
            // Two of the longest frames there are.
            kept_bytes_max: 32 << 20,
            kept_bytes_all_max: 96 << 20,
            waiting_max: 256,
            // A lease runs out in ten seconds, and another host has the session a moment later.
            lost_ms: 30_000,
            merge_ms: 5_000,
            retry_ms: 250,
        }
    }
}
