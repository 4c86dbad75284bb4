//! A pool: its places, who fills them, and who gets the next session.

use super::{Bus, Home, PoolConfig, SessionAffinity, WorkerId, sessions::Sessions, worker::Worker};
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
    pub(super) slots: Vec<Slot>,
    /// Where the next search for a worker begins.
    next: usize,
    pub(super) sessions: Sessions,
    /// No longer in the configuration: it ends with its last worker.
    pub(super) removed: bool,
}

/// The place of one instance.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) worker: Option<WorkerId>,
    pub(super) restarts: RestartCounter,
    /// How the last worker here ended, and when the next one is started, if ever.
    pub(super) down: Option<Down>,
}

#[derive(Debug)]
pub(super) struct Down {
    pub(super) status: String,
    pub(super) until: Option<Time>,
}

impl PoolState {
    pub(super) fn new(spec: PoolConfig, policy: RestartLimit) -> PoolState {
        let slots = (0..spec.instances).map(|_| Slot::new(policy)).collect();
        PoolState { spec, slots, next: 0, sessions: Sessions::default(), removed: false }
    }
}

impl Slot {
    pub(super) fn new(policy: RestartLimit) -> Slot {
        Slot { worker: None, restarts: RestartCounter::with(policy), down: None }
    }
}

impl Bus {
    pub(super) fn policy(&self) -> RestartLimit {
        RestartLimit { max: self.limits.restarts_max, window_ms: self.limits.restart_window_ms }
    }

    pub(super) fn add_pool(&mut self, spec: PoolConfig) {
        self.next_pool += 1;
        let id = PoolId(self.next_pool);
        let state = PoolState::new(spec, self.policy());
        let instances = state.slots.len();
        self.pools.insert(id, state);
        for slot in 0..instances {
            self.fill(id, slot);
        }
    }

    /// Whose book the sessions of this worker stand in.
    pub(super) fn home(&self, worker: WorkerId) -> Option<Home> {
        let pool = self.workers.get(&worker)?.pool;
        Some(match self.pools[&pool].spec.affinity {
            SessionAffinity::Session => Home::Pool(pool),
            SessionAffinity::Connection => Home::Worker(worker),
        })
    }

    pub(super) fn pool_name(&self, worker: WorkerId) -> Arc<str> {
        let pool = self.workers[&worker].pool;
        Arc::clone(&self.pools[&pool].spec.id)
    }

    /// The worker after the last one that was asked.
    pub(super) fn in_turn(&mut self, pool: PoolId) -> Result<WorkerId, Fault> {
        self.pick(pool, |_| 0)
    }

    pub(super) fn least_loaded(&mut self, pool: PoolId) -> Result<WorkerId, Fault> {
        self.pick(pool, Worker::load)
    }

    /// The first of those with the least load, from where the last search ended.
    fn pick(&mut self, id: PoolId, load: impl Fn(&Worker) -> usize) -> Result<WorkerId, Fault> {
        let pool = &self.pools[&id];
        let count = pool.slots.len();
        let places = (0..count).map(|it| (pool.next + it) % count);
        let ready = places.filter_map(|at| {
            let worker = pool.slots[at].worker?;
            let it = self.workers.get(&worker).filter(|it| it.is_fit())?;
            Some((load(it), at, worker))
        });
        let Some((_, at, worker)) = ready.min_by_key(|(load, ..)| *load) else {
            return Err(self.nobody_in(id));
        };
        self.pools.get_mut(&id).expect("found above").next = at + 1;
        Ok(worker)
    }

    /// Why no worker of the pool can be asked, and when one can.
    fn nobody_in(&self, id: PoolId) -> Fault {
        let pool = &self.pools[&id];
        let name = &pool.spec.id;
        if pool.removed {
            let why = format!("pool `{name}` is no longer in the configuration");
            return Fault::NoWorker { why };
        }
        let downs: Vec<&Down> = pool.slots.iter().filter_map(|it| it.down.as_ref()).collect();
        let last = downs.last().map_or("its workers are ending", |it| it.status.as_str());
        let next = downs.iter().filter_map(|it| it.until).min();
        let when = match next {
            Some(at) => format!("the next is started in {} ms", at.since(self.now)),
            None => "none is started again: see `restart` of the pool".to_owned(),
        };
        Fault::NoWorker { why: format!("none of pool `{name}` is alive ({last}); {when}") }
    }
}
