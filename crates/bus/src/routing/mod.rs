//! The bus: routes JSON-RPC messages between any number of clients and pools of workers.
//!
//! Read in this order: [`BusConfig`], [`BusInput`], [`BusOutput`], then `client` (frames from clients),
//! `route` (which worker), `worker` (frames from workers), `pending_calls` and `sessions` (the two
//! tables), `flow` and `slow_clients` (flow control), `worker_lifecycle` (start, health check, end and
//! restart of workers), `reload`, `stop`.
//!
//! - **Invariant:** a request is answered exactly once, to its sender, under the sender's id: by the
//!   recipient, or by the bus with the reason why it failed.
//! - **Invariant:** a client receives only responses to its own requests, and only messages of sessions
//!   that it uses.
//! - **Invariant:** messages between one client and one worker keep their order; none is lost and none
//!   is delivered twice.
//! - **Invariant:** every buffer is bounded, and exceeding a bound is reported.

mod client;
mod config;
mod flow;
mod gauges;
mod input;
mod output;
mod pending_calls;
mod pool;
mod reload;
mod route;
mod sessions;
mod slow_clients;
mod stop;
#[cfg(test)]
mod tests;
mod worker;
mod worker_lifecycle;

pub use config::{
    BACKLOG_LIMITS, BusConfig, BusLimits, HealthCheck, IDLE_SESSIONS_MAX, OUTBOX_BYTES_ALL_MAX,
    OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, PoolConfig, RestartRule, SHARED_HOLD_MS, STALLED_MS,
    SessionAffinity, UNNAMED_UPDATE_LIMITS, UNSENT_BYTES_MAX, WorkerCommand, WorkerDeathRule,
};
pub use gauges::{BusCounters, BusGauges, PoolGauges};
pub use input::BusInput;
pub use output::{BusNote, BusOutput, MessageSender};

use client::Client;
use jackfield_hub::{ByteLimits, ConnId, Time, budget::ByteBudget, timer::Timers};
use pool::{PoolId, PoolState};
use sessions::SessionTable;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};
use worker::Worker;

/// One worker process. A restarted worker has a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w-{}", self.0)
    }
}

#[derive(Debug)]
pub struct Bus {
    limits: BusLimits,
    now: Time,
    clients: BTreeMap<ConnId, Client>,
    workers: BTreeMap<WorkerId, Worker>,
    pools: BTreeMap<PoolId, PoolState>,
    /// Sessions in all tables, and those of them without a client, the longest idle first.
    session_count: usize,
    idle: VecDeque<(SessionScope, Arc<str>)>,
    pending: usize,
    /// Bytes not yet written to workers, bytes of updates for unnamed sessions, bytes not yet
    /// written to clients.
    backlogs: ByteBudget,
    unnamed_updates: ByteBudget,
    outboxes: ByteBudget,
    /// A timer for all outboxes together is set.
    has_outbox_timer: bool,
    timers: Timers<Timer>,
    outputs: VecDeque<BusOutput>,
    counters: BusCounters,
    stopping: Option<stop::StopPhase>,
    next_worker: u64,
    next_pool: u32,
    next_id: u64,
}

/// The table that has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SessionScope {
    Pool(PoolId),
    Worker(WorkerId),
}

/// A timer that is no longer needed still fires and has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Start a worker in this slot of a pool again.
    StartWorker(PoolId, usize),
    /// Send a health check to this worker.
    HealthCheck(WorkerId),
    /// The health check with this id should have been answered.
    HealthCheckDue(WorkerId, u64),
    /// This client exceeded its outbox limit.
    SlowClient(ConnId),
    /// All clients together exceeded the outbox limit.
    Outboxes,
    /// The time to answer requests before the stop is over.
    Drain,
}

impl Bus {
    /// Creates the bus and starts every worker.
    pub fn new(config: BusConfig, now: Time) -> Bus {
        let outboxes = ByteLimits {
            own_max: usize::MAX,
            own_min: OUTBOX_BYTES_MIN,
            all_max: OUTBOX_BYTES_ALL_MAX
                .max(2 * OUTBOX_FACTOR_MAX * config.limits.outbox_bytes_max),
        };
        let mut bus = Bus {
            limits: config.limits,
            now,
            clients: BTreeMap::new(),
            workers: BTreeMap::new(),
            pools: BTreeMap::new(),
            session_count: 0,
            idle: VecDeque::new(),
            pending: 0,
            backlogs: ByteBudget::new(BACKLOG_LIMITS),
            unnamed_updates: ByteBudget::new(UNNAMED_UPDATE_LIMITS),
            outboxes: ByteBudget::new(outboxes),
            has_outbox_timer: false,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counters: BusCounters::default(),
            stopping: None,
            next_worker: 0,
            next_pool: 0,
            next_id: 0,
        };
        for pool in config.pools {
            bus.add_pool(pool);
        }
        bus
    }

    pub fn handle(&mut self, now: Time, input: BusInput) {
        assert!(self.outputs.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        match input {
            BusInput::ClientOpened { conn } => self.on_client_opened(conn),
            BusInput::ClientSentFrame { conn, frame } => self.on_client_frame(conn, &frame),
            BusInput::ClientSentInvalidFrame { conn, fault } => self.on_invalid_frame(conn, &fault),
            BusInput::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            BusInput::ClientFinished { conn } => self.on_client_finished(conn),
            BusInput::ClientGone { conn } => self.on_client_gone(conn),
            BusInput::WorkerStarted { worker, pid } => self.on_worker_started(worker, pid),
            BusInput::WorkerSentFrame { worker, frame } => self.on_worker_frame(worker, &frame),
            BusInput::WorkerWrote { worker, bytes } => self.on_worker_wrote(worker, bytes),
            BusInput::WorkerGone { worker, exit, clean } => {
                self.on_worker_gone(worker, &exit, clean);
            }
            BusInput::Reload { config } => self.reload(config),
            BusInput::Tick => self.on_tick(),
            BusInput::Stop => self.on_stop(),
        }
    }

    pub fn poll_output(&mut self) -> Option<BusOutput> {
        self.outputs.pop_front()
    }

    /// The latest time at which the bus needs [`BusInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::StartWorker(pool, slot) => self.fill_slot(pool, slot),
                Timer::HealthCheck(worker) => self.send_health_check(worker),
                Timer::HealthCheckDue(worker, id) => self.check_health(worker, id),
                Timer::SlowClient(conn) => self.check_slow_client(conn),
                Timer::Outboxes => self.check_outboxes(),
                Timer::Drain => self.expire_drain(),
            }
        }
    }

    fn note(&mut self, note: BusNote) {
        self.outputs.push_back(BusOutput::Note(note));
    }

    fn session_table(&mut self, scope: SessionScope) -> Option<&mut SessionTable> {
        match scope {
            SessionScope::Pool(pool) => self.pools.get_mut(&pool).map(|it| &mut it.sessions),
            SessionScope::Worker(worker) => {
                self.workers.get_mut(&worker).map(|it| &mut it.sessions)
            }
        }
    }
}
