//! The bus: any JSON-RPC worker behind pools, any number of clients in front, nothing written down.
//!
//! Read in this order: [`BusConfig`], [`BusInput`], [`BusOutput`], then `client` (a client spoke), `route` (which
//! worker), `worker` (a worker spoke), `calls` and `sessions` (the two books), `flow` and `slow`
//! (who waits for whom, and how long), `life` (workers start, end and start again), `reload`, `stop`.
//!
//! - **Invariant:** a request is answered exactly once, to whoever asked, under the id they gave it:
//!   by who was asked, or by the bus with the reason why not.
//! - **Invariant:** what one client hears was said to it: never an answer to another, never a session
//!   that it has not used.
//! - **Invariant:** messages of one client to one worker, and back, keep their order; none is lost,
//!   none comes twice.
//! - **Invariant:** nothing grows without bound, and what is over a bound is told.

mod calls;
mod client;
mod config;
mod flow;
mod gauges;
mod input;
mod life;
mod output;
mod pool;
mod reload;
mod route;
mod sessions;
mod slow;
mod stop;
#[cfg(test)]
mod tests;
mod worker;

pub use config::{
    BACKLOG, BusConfig, BusLimits, EARLY, HealthCheck, IDLE_SESSIONS_MAX, OUTBOX_BYTES_ALL_MAX,
    OUTBOX_BYTES_MIN, OUTBOX_FACTOR_MAX, PoolConfig, RestartRule, SHARED_HOLD_MS, STALLED_MS,
    SessionAffinity, UNTAKEN_BYTES_MAX, WorkerCommand, WorkerDeathRule,
};
pub use gauges::{BusCounters, BusGauges, PoolGauges};
pub use input::BusInput;
pub use output::{BusNote, BusOutput, MessageSender};

use client::Client;
use jackfield_hub::{ByteLimits, ConnId, Time, budget::ByteBudget, timer::Timers};
use pool::{PoolId, PoolState};
use sessions::Sessions;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};
use worker::Worker;

/// One worker process, for as long as it runs. A restarted worker is another one.
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
    /// Sessions in all books, and those of them without a client, the longest idle first.
    session_count: usize,
    idle: VecDeque<(Home, Arc<str>)>,
    pending: usize,
    /// What workers have not taken, what they said too early, what clients have not taken.
    backlogs: ByteBudget,
    unnamed_updates: ByteBudget,
    outboxes: ByteBudget,
    /// A timer for all outboxes together is set.
    outboxes_watched: bool,
    timers: Timers<Timer>,
    outputs: VecDeque<BusOutput>,
    counters: BusCounters,
    stopping: Option<stop::Stopping>,
    next_worker: u64,
    next_pool: u32,
    next_id: u64,
}

/// Whose book a session stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Pool(PoolId),
    Worker(WorkerId),
}

/// One that has become pointless is left to fire and does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The pause before this place of a pool is filled again is over.
    Start(PoolId, usize),
    /// Time to ask this worker whether it lives.
    Probe(WorkerId),
    /// It was asked under this id, and should have said something by now.
    ProbeDue(WorkerId, u64),
    /// This client was over its bound a moment ago.
    Slow(ConnId),
    /// All clients together had more unread bytes than they may a moment ago.
    Outboxes,
    /// What was asked before the bus stopped has had its time.
    Drain,
}

impl Bus {
    /// Starts every worker.
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
            backlogs: ByteBudget::new(BACKLOG),
            unnamed_updates: ByteBudget::new(EARLY),
            outboxes: ByteBudget::new(outboxes),
            outboxes_watched: false,
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
            BusInput::ClientOpened { conn } => self.on_opened(conn),
            BusInput::ClientSpoke { conn, frame } => self.on_client(conn, &frame),
            BusInput::ClientSentInvalidFrame { conn, fault } => self.on_invalid_frame(conn, &fault),
            BusInput::ClientWrote { conn, bytes } => self.on_client_wrote(conn, bytes),
            BusInput::ClientFinished { conn } => self.on_finished(conn),
            BusInput::ClientGone { conn } => self.on_client_gone(conn),
            BusInput::WorkerStarted { worker, pid } => self.on_started(worker, pid),
            BusInput::WorkerSpoke { worker, frame } => self.on_worker(worker, &frame),
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

    /// When the bus wants [`BusInput::Tick`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::Start(pool, slot) => self.fill(pool, slot),
                Timer::Probe(worker) => self.probe(worker),
                Timer::ProbeDue(worker, id) => self.on_probe_due(worker, id),
                Timer::Slow(conn) => self.on_slow(conn),
                Timer::Outboxes => self.on_outboxes_full(),
                Timer::Drain => self.on_drained_long_enough(),
            }
        }
    }

    fn note(&mut self, note: BusNote) {
        self.outputs.push_back(BusOutput::Note(note));
    }

    fn table(&mut self, home: Home) -> Option<&mut Sessions> {
        match home {
            Home::Pool(pool) => self.pools.get_mut(&pool).map(|it| &mut it.sessions),
            Home::Worker(worker) => self.workers.get_mut(&worker).map(|it| &mut it.sessions),
        }
    }
}
