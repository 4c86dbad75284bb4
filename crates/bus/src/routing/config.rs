//! What a bus is told: its pools, how their workers live, and its bounds.

use jackfield_hub::ByteLimits;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusConfig {
    pub pools: Vec<PoolConfig>,
    pub limits: BusLimits,
}

/// Workers that can stand in for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    pub id: Arc<str>,
    pub command: Arc<WorkerCommand>,
    pub instances: usize,
    pub restart: RestartRule,
    pub affinity: SessionAffinity,
    pub on_death: WorkerDeathRule,
    pub health: Option<HealthCheck>,
}

/// How one worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    pub argv: Vec<String>,
    /// On top of what the bus itself has.
    pub env: Vec<(String, String)>,
    pub cwd: Option<String>,
}

/// Whether a worker that has ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestartRule {
    #[default]
    Always,
    /// Not one that ended well.
    OnFailure,
    Never,
}

/// What keeps messages with one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionAffinity {
    /// The session they name; those that name none go to each worker in turn.
    #[default]
    Session,
    /// The connection they come by: for workers that are spoken to from `initialize` on.
    Connection,
}

/// What becomes of the sessions of a worker that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerDeathRule {
    /// Another worker gets them with their next message.
    #[default]
    Move,
    /// They are over: whoever goes on is told so.
    End,
}

/// A question that a healthy worker answers, however it answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub method: Arc<str>,
    pub every_ms: u64,
    /// A worker that has said nothing at all for so long after the question is ended.
    pub timeout_ms: u64,
}

/// Every bound. What is over one is told, never dropped in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusLimits {
    /// Bytes handed to a client and not yet written. Above it, workers that speak to it wait: those that other
    /// clients use for [`SHARED_HOLD_MS`] at most.
    pub outbox_bytes_max: usize,
    /// Ends of one worker within the window that are too many.
    pub restarts_max: usize,
    pub restart_window_ms: u64,
    /// What is asked when the bus stops has so long to be answered.
    pub drain_ms: u64,
    /// A client over its bound that takes nothing for so long is closed.
    pub backpressure_ms: u64,
    pub sessions_max: usize,
    /// Requests without an answer yet, of all clients.
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
            // A few hundred bytes each: what a machine for this has to spare.
            sessions_max: 1_000_000,
            pending_max: 1_000_000,
            // Below the descriptors most systems give a process that asks for more.
            clients_max: 10_000,
        }
    }
}

/// Bytes of one client that workers have not taken. Above it the client is not read: a flood of one
/// leaves the others a place near the front.
pub const UNTAKEN_BYTES_MAX: usize = 128 << 10;

/// Bytes that one worker has not taken, of all clients. Above it requests are refused. With `own_min` bytes it is not
/// refused because of what other workers have not taken.
pub const BACKLOG: ByteLimits =
    ByteLimits { own_max: 64 << 20, own_min: 64 << 10, all_max: 64 << 20 };

/// Bytes that a worker says of a session before it has told its name. What is more is heard by nobody.
pub const EARLY: ByteLimits =
    ByteLimits { own_max: 16 << 20, own_min: 64 << 10, all_max: 32 << 20 };

/// How long a worker that several clients use waits for one of them. A client that reads takes half of
/// `outbox_bytes_max` in less.
pub const SHARED_HOLD_MS: u64 = 100;

/// Unread bytes of a client that workers do not wait for any more, as a multiple of `outbox_bytes_max`. Above it the
/// client is closed.
pub const OUTBOX_FACTOR_MAX: usize = 4;

/// While all clients together have too many unread bytes, a client that has read nothing for so long is closed.
pub const STALLED_MS: u64 = 1_000;

/// Bytes handed to all clients and not yet written. Above it, workers that speak to a client wait until it has read
/// all but `OUTBOX_BYTES_MIN`.
pub const OUTBOX_BYTES_ALL_MAX: usize = 64 << 20;
pub const OUTBOX_BYTES_MIN: usize = 64 << 10;

/// Sessions whose clients are gone that are remembered, so that a client that comes back finds its
/// worker.
pub const IDLE_SESSIONS_MAX: usize = 10_000;
