//! Configuration of the bus: pools, workers and limits.

use jackfield_hub::ByteLimits;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusConfig {
    pub pools: Vec<PoolConfig>,
    pub launcher: Option<LauncherConfig>,
    pub limits: BusLimits,
}

/// Interchangeable workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    pub id: Arc<str>,
    pub command: Arc<WorkerCommand>,
    pub instances: usize,
    pub restart: RestartRule,
    pub affinity: SessionAffinity,
    pub on_death: WorkerDeathRule,
    pub outer_session_id: OuterSessionId,
    pub health: Option<HealthCheck>,
}

/// Agents that are started when a message names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherConfig {
    /// By `agentId`.
    pub agents: BTreeMap<Arc<str>, Arc<WorkerCommand>>,
    /// The number of agents that run at the same time.
    pub agents_max: usize,
    /// An agent that no client uses is stopped after this time.
    pub idle_ms: u64,
}

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    pub argv: Vec<String>,
    /// In addition to the environment of the bus.
    pub env: Vec<(String, String)>,
    pub cwd: Option<String>,
}

/// Whether a worker that has ended is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestartRule {
    #[default]
    Always,
    /// Except after exit status 0.
    OnFailure,
    Never,
}

/// What binds messages to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionAffinity {
    /// The session they name. Messages without a session go to each worker in turn.
    #[default]
    Session,
    /// The connection they arrive on: for workers that expect one `initialize` per connection.
    Connection,
}

/// What happens to the sessions of a worker that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerDeathRule {
    /// Another worker gets them with their next message.
    #[default]
    Move,
    /// They end: the next message gets an error.
    End,
}

/// What happens to the `sessionId` beside `params` on the way to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OuterSessionId {
    /// The worker gets it and has to return it.
    #[default]
    Forward,
    /// For workers that know plain ACP only: it is removed from their messages, and added to the
    /// messages that they send.
    Restore,
}

/// A request that a healthy worker answers, with a result or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub method: Arc<str>,
    pub every_ms: u64,
    /// A worker that sends nothing at all for this long after the request is stopped.
    pub timeout_ms: u64,
}

/// All limits. Whatever exceeds one is refused with an error, never dropped silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusLimits {
    /// Bytes that were sent to a client and are not yet written. Above it, workers that send to it
    /// wait; those that other clients use wait for at most [`SHARED_HOLD_MS`].
    pub outbox_bytes_max: usize,
    /// The number of ends of one worker within the window after which it is not restarted at once.
    pub restarts_max: usize,
    pub restart_window_ms: u64,
    /// How long pending requests may take when the bus stops.
    pub drain_ms: u64,
    /// A client above its limit that reads nothing for this long is closed.
    pub backpressure_ms: u64,
    pub sessions_max: usize,
    /// Requests without a response, of all clients.
    pub pending_max: usize,
    pub clients_max: usize,
}

impl Default for BusLimits {
    fn default() -> BusLimits {
        BusLimits {
            outbox_bytes_max: 4 << 20,
            restarts_max: 5,
            restart_window_ms: 60_000,
            drain_ms: 30_000,
            backpressure_ms: 60_000,
            // A few hundred bytes each, which such a machine has.
            sessions_max: 1_000_000,
            pending_max: 1_000_000,
            // Below the file descriptor limit of most systems.
            clients_max: 10_000,
        }
    }
}

/// Bytes of one client that are not yet written to workers. Above it the client is not read, so
/// that a flood of one client does not delay the others.
pub const UNSENT_BYTES_MAX: usize = 128 << 10;

/// Bytes that are not yet written to a worker, of all clients. Above it requests are refused. Below
/// `own_min` bytes a worker is not refused because of the backlogs of other workers.
pub const BACKLOG_LIMITS: ByteLimits =
    ByteLimits { own_max: 64 << 20, own_min: 64 << 10, all_max: 64 << 20 };

/// Bytes of updates for a session before the worker has named it. Updates above it are dropped.
pub const UNNAMED_UPDATE_LIMITS: ByteLimits =
    ByteLimits { own_max: 16 << 20, own_min: 64 << 10, all_max: 32 << 20 };

/// How long a worker that several clients use waits for one of them. A client that reads takes less
/// time for half of `outbox_bytes_max`.
pub const SHARED_HOLD_MS: u64 = 100;

/// Unread bytes of a client that workers no longer wait for, as a multiple of `outbox_bytes_max`.
/// Above it the client is closed.
pub const OUTBOX_FACTOR_MAX: usize = 4;

/// While all clients together have too many unread bytes, a client that has read nothing for this
/// long is closed.
pub const STALLED_MS: u64 = 1_000;

/// Bytes that were sent to all clients and are not yet written. Above it, workers that send to a
/// client wait until it has read all but `OUTBOX_BYTES_MIN`.
pub const OUTBOX_BYTES_ALL_MAX: usize = 64 << 20;
pub const OUTBOX_BYTES_MIN: usize = 64 << 10;

/// Sessions without clients that are remembered, so that a client that reconnects reaches the same
/// worker.
pub const IDLE_SESSIONS_MAX: usize = 10_000;
