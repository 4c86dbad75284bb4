//! Pools: their slots, restarts, and which worker gets the next session.

mod health;
mod launcher;
mod reload;
mod route;

use super::{
    config::{BusLimits, LauncherConfig, PoolConfig, RestartRule},
    context::{BusContext, BusTimer},
    gauges::PoolGauges,
    ids::{PoolId, WorkerId},
    output::BusNote,
    tables::{CallPeer, RoutingTables},
    worker::{Worker, Workers},
};
use jackfield_hub::{
    Exit, Time,
    restart::{RestartCounter, RestartLimit, RestartVerdict},
};
use jackfield_protocol::Fault;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug)]
pub(super) struct Pools {
    by_id: BTreeMap<PoolId, PoolState>,
    last_id: u32,
    launcher: Option<LauncherConfig>,
}

#[derive(Debug)]
struct PoolState {
    id: PoolId,
    config: PoolConfig,
    slots: Vec<WorkerSlot>,
    /// The slot where the next search for a worker begins.
    next_slot: usize,
    /// No longer in the configuration: it ends with its last worker.
    is_removed: bool,
    /// The launcher started it.
    is_launched: bool,
    /// When a message was routed to it last.
    last_used_at: Time,
}

/// The slot of one instance.
#[derive(Debug)]
struct WorkerSlot {
    worker: Option<WorkerId>,
    restarts: RestartCounter,
    /// How the last worker ended, and when the next one is started, if ever.
    stopped: Option<StoppedWorker>,
}

#[derive(Debug)]
struct StoppedWorker {
    status: String,
    until: Option<Time>,
}

impl Pools {
    pub(super) fn new(launcher: Option<LauncherConfig>) -> Pools {
        Pools { by_id: BTreeMap::new(), last_id: 0, launcher }
    }

    /// Adds a pool and starts its workers.
    pub(super) fn add_pool(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        config: PoolConfig,
    ) -> PoolId {
        self.last_id += 1;
        let id = PoolId(self.last_id);
        let restart_limit = restart_limit(cx.limits());
        let slots = (0..config.instances).map(|_| WorkerSlot::new(restart_limit)).collect();
        let mut pool = PoolState {
            id,
            config,
            slots,
            next_slot: 0,
            is_removed: false,
            is_launched: false,
            last_used_at: cx.now(),
        };
        pool.fill_slots(cx, workers);
        self.by_id.insert(id, pool);
        id
    }

    /// Starts a worker in this slot of the pool, unless it has one.
    pub(super) fn fill_slot(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        id: PoolId,
        slot: usize,
    ) {
        if let Some(pool) = self.by_id.get_mut(&id) {
            pool.fill_slot(cx, workers, slot);
        }
    }

    /// A worker ended: its slot is filled again now, later or never.
    pub(super) fn on_worker_ended(
        &mut self,
        cx: &mut BusContext,
        workers: &Workers,
        tables: &mut RoutingTables,
        ended: &Worker,
        exit: &Exit,
        clean: bool,
    ) {
        match ended.slot() {
            Some(slot) => {
                if let Some(pool) = self.by_id.get_mut(&ended.pool()) {
                    pool.vacate_slot(cx, slot, exit, clean && !ended.is_stopping());
                }
            }
            None => self.remove_pool_if_empty(workers, tables, ended.pool()),
        }
    }

    pub(super) fn gauges(&self, workers: &Workers, tables: &RoutingTables) -> Vec<PoolGauges> {
        let pools = self.by_id.values().map(|pool| {
            let workers = || workers.in_pool(pool.id);
            let pending = |it: &Worker| tables.calls.received_by(CallPeer::Worker(it.id())).count();
            PoolGauges {
                pool: Arc::clone(&pool.config.id),
                alive: workers().filter(|it| it.is_started()).count(),
                instances: pool.slots.len(),
                sessions: workers().map(|it| tables.sessions.in_use_count(it.id())).sum(),
                pending: workers().map(pending).sum(),
                backlog: workers().map(Worker::backlog_bytes).sum(),
            }
        });
        pools.collect()
    }
}

impl PoolState {
    fn fill_slots(&mut self, cx: &mut BusContext, workers: &mut Workers) {
        for slot in 0..self.slots.len() {
            self.fill_slot(cx, workers, slot);
        }
    }

    fn fill_slot(&mut self, cx: &mut BusContext, workers: &mut Workers, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        // Not before its time, and not if it must stay empty: an old timer may have fired.
        let is_waiting =
            slot.stopped.as_ref().is_some_and(|it| it.until.is_none_or(|at| cx.now() < at));
        if cx.is_stopping() || self.is_removed || slot.worker.is_some() || is_waiting {
            return;
        }
        slot.worker = Some(workers.spawn_worker(cx, self.id, index, &self.config));
        slot.stopped = None;
    }

    fn vacate_slot(&mut self, cx: &mut BusContext, index: usize, exit: &Exit, clean: bool) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let (now, pool) = (cx.now(), Arc::clone(&self.config.id));
        slot.worker = None;
        let status = exit.status.clone();
        let should_restart = match self.config.restart {
            RestartRule::Always => true,
            RestartRule::OnFailure => !clean,
            RestartRule::Never => false,
        };
        if cx.is_stopping() || !should_restart {
            slot.stopped = Some(StoppedWorker { status, until: None });
            if !cx.is_stopping() {
                cx.push_note(BusNote::NotRestarted { pool });
            }
            return;
        }
        slot.restarts.ended(now);
        let (at, note) = match slot.restarts.verdict(now) {
            RestartVerdict::Now => (now, BusNote::Restarting { pool, pause_ms: 0 }),
            RestartVerdict::At(at) => (at, BusNote::Restarting { pool, pause_ms: at.since(now) }),
            RestartVerdict::GiveUp { ends, until } => {
                (until, BusNote::GaveUp { pool, ends, pause_ms: until.since(now) })
            }
        };
        slot.stopped = Some(StoppedWorker { status, until: Some(at) });
        cx.count_restart();
        cx.set_timer(at, BusTimer::StartWorker(self.id, index));
        cx.push_note(note);
    }

    /// The first worker with the lowest load, starting after the last one that was picked.
    fn pick_worker(
        &mut self,
        cx: &BusContext,
        workers: &Workers,
        load: impl Fn(&Worker) -> usize,
    ) -> Result<WorkerId, Fault> {
        let count = self.slots.len();
        let positions = (0..count).map(|it| (self.next_slot + it) % count);
        let ready = positions.filter_map(|position| {
            let worker = self.slots[position].worker?;
            let it = workers.get(worker).filter(|it| it.accepts_sessions())?;
            Some((load(it), position, worker))
        });
        let Some((_, position, worker)) = ready.min_by_key(|(load, ..)| *load) else {
            return Err(self.no_worker_fault(cx));
        };
        self.next_slot = position + 1;
        Ok(worker)
    }

    /// Why no worker of the pool is available, and when one will be.
    fn no_worker_fault(&self, cx: &BusContext) -> Fault {
        let name = &self.config.id;
        if self.is_removed {
            let why = format!("pool `{name}` was removed from the configuration");
            return Fault::NoWorker { why };
        }
        let stopped = || self.slots.iter().filter_map(|it| it.stopped.as_ref());
        let last =
            stopped().next_back().map_or("its workers are stopping", |it| it.status.as_str());
        let when = match stopped().filter_map(|it| it.until).min() {
            Some(start) => format!("the next one starts in {} ms", start.since(cx.now())),
            None => "none is restarted: see `restart` of the pool".to_owned(),
        };
        Fault::NoWorker { why: format!("no worker of pool `{name}` is running ({last}); {when}") }
    }
}

impl WorkerSlot {
    fn new(restart_limit: RestartLimit) -> WorkerSlot {
        WorkerSlot { worker: None, restarts: RestartCounter::with(restart_limit), stopped: None }
    }
}

fn restart_limit(limits: &BusLimits) -> RestartLimit {
    RestartLimit { max: limits.restarts_max, window_ms: limits.restart_window_ms }
}
