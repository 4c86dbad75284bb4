//! A pool: its slots, and which worker gets the next session.

use super::{
    Bus, PoolConfig, SessionAffinity, SessionScope, WorkerId, sessions::SessionTable,
    worker::Worker,
};
use jackfield_hub::{
    Time,
    restart::{RestartCounter, RestartLimit},
};
use jackfield_protocol::Fault;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId(pub(super) u32);

#[derive(Debug)]
pub(super) struct PoolState {
    pub(super) spec: PoolConfig,
    pub(super) slots: Vec<WorkerSlot>,
    /// The slot where the next search for a worker begins.
    next: usize,
    pub(super) sessions: SessionTable,
    /// No longer in the configuration: it ends with its last worker.
    pub(super) removed: bool,
}

/// The slot of one instance.
#[derive(Debug)]
pub(super) struct WorkerSlot {
    pub(super) worker: Option<WorkerId>,
    pub(super) restarts: RestartCounter,
    /// How the last worker ended, and when the next one is started, if ever.
    pub(super) stopped: Option<StoppedWorker>,
}

#[derive(Debug)]
pub(super) struct StoppedWorker {
    pub(super) status: String,
    pub(super) until: Option<Time>,
}

impl PoolState {
    pub(super) fn new(spec: PoolConfig, restart_limit: RestartLimit) -> PoolState {
        let slots = (0..spec.instances).map(|_| WorkerSlot::new(restart_limit)).collect();
        PoolState { spec, slots, next: 0, sessions: SessionTable::default(), removed: false }
    }
}

impl WorkerSlot {
    pub(super) fn new(restart_limit: RestartLimit) -> WorkerSlot {
        WorkerSlot { worker: None, restarts: RestartCounter::with(restart_limit), stopped: None }
    }
}

impl Bus {
    pub(super) fn restart_limit(&self) -> RestartLimit {
        RestartLimit { max: self.limits.restarts_max, window_ms: self.limits.restart_window_ms }
    }

    pub(super) fn add_pool(&mut self, spec: PoolConfig) {
        self.next_pool += 1;
        let id = PoolId(self.next_pool);
        let state = PoolState::new(spec, self.restart_limit());
        let instances = state.slots.len();
        self.pools.insert(id, state);
        for slot in 0..instances {
            self.fill_slot(id, slot);
        }
    }

    /// The table that has the sessions of this worker.
    pub(super) fn session_scope(&self, worker: WorkerId) -> Option<SessionScope> {
        let pool = self.workers.get(&worker)?.pool;
        Some(match self.pools[&pool].spec.affinity {
            SessionAffinity::Session => SessionScope::Pool(pool),
            SessionAffinity::Connection => SessionScope::Worker(worker),
        })
    }

    pub(super) fn pool_name(&self, worker: WorkerId) -> Arc<str> {
        let pool = self.workers[&worker].pool;
        Arc::clone(&self.pools[&pool].spec.id)
    }

    /// The worker after the last one that was picked.
    pub(super) fn pick_in_turn(&mut self, pool: PoolId) -> Result<WorkerId, Fault> {
        self.pick_worker(pool, |_| 0)
    }

    pub(super) fn pick_least_loaded(&mut self, pool: PoolId) -> Result<WorkerId, Fault> {
        self.pick_worker(pool, Worker::load)
    }

    /// The first worker with the lowest load, starting where the last search ended.
    fn pick_worker(
        &mut self,
        id: PoolId,
        load: impl Fn(&Worker) -> usize,
    ) -> Result<WorkerId, Fault> {
        let pool = &self.pools[&id];
        let count = pool.slots.len();
        let positions = (0..count).map(|it| (pool.next + it) % count);
        let ready = positions.filter_map(|position| {
            let worker = pool.slots[position].worker?;
            let it = self.workers.get(&worker).filter(|it| it.accepts_sessions())?;
            Some((load(it), position, worker))
        });
        let Some((_, position, worker)) = ready.min_by_key(|(load, ..)| *load) else {
            return Err(self.no_worker_fault(id));
        };
        self.pools.get_mut(&id).expect("found above").next = position + 1;
        Ok(worker)
    }

    /// Why no worker of the pool is available, and when one will be.
    fn no_worker_fault(&self, id: PoolId) -> Fault {
        let pool = &self.pools[&id];
        let name = &pool.spec.id;
        if pool.removed {
            let why = format!("pool `{name}` was removed from the configuration");
            return Fault::NoWorker { why };
        }
        let stopped: Vec<&StoppedWorker> =
            pool.slots.iter().filter_map(|it| it.stopped.as_ref()).collect();
        let last = stopped.last().map_or("its workers are stopping", |it| it.status.as_str());
        let next = stopped.iter().filter_map(|it| it.until).min();
        let when = match next {
            Some(start) => format!("the next one starts in {} ms", start.since(self.now)),
            None => "none is restarted: see `restart` of the pool".to_owned(),
        };
        Fault::NoWorker { why: format!("no worker of pool `{name}` is running ({last}); {when}") }
    }
}
