//! Reloading the configuration: unchanged workers continue, new ones are started, removed ones retire.
//!
//! A retiring worker keeps its sessions until no client uses them.

use super::{
    super::{
        config::{BusConfig, PoolConfig},
        context::BusContext,
        ids::PoolId,
        output::BusNote,
        tables::RoutingTables,
        worker::Workers,
    },
    PoolState, Pools, WorkerSlot, restart_limit,
};

impl Pools {
    pub(in super::super) fn reload_pools(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        config: BusConfig,
    ) {
        let BusConfig { pools: configs, launcher, .. } = config;
        let launchable = |pool: &PoolState| {
            let command = launcher.as_ref().and_then(|it| it.agents.get(&pool.config.id));
            pool.is_launched && command == Some(&pool.config.command)
        };
        let is_kept =
            |pool: &PoolState| launchable(pool) || configs.iter().any(|it| it.id == pool.config.id);
        let removed = self.by_id.values().filter(|it| !it.is_removed && !is_kept(it));
        let removed: Vec<PoolId> = removed.map(|it| it.id).collect();
        for id in removed {
            self.retire_pool(cx, workers, tables, id);
        }
        self.launcher = launcher;
        for config in configs {
            let mut pools = self.by_id.values_mut();
            match pools.find(|it| !it.is_removed && it.config.id == config.id) {
                // The sessions of a pool with another affinity are in other tables.
                Some(pool) if pool.config.affinity != config.affinity => {
                    let id = pool.id;
                    self.retire_pool(cx, workers, tables, id);
                    self.add_pool(cx, workers, config);
                }
                Some(pool) => pool.change_config(cx, workers, tables, config),
                None => drop(self.add_pool(cx, workers, config)),
            }
        }
        let pools = self.by_id.values().filter(|it| !it.is_removed).count();
        cx.push_note(BusNote::Reloaded { pools, workers: workers.len() });
    }

    /// Removes a pool that is no longer configured and has no workers.
    pub(super) fn remove_pool_if_empty(
        &mut self,
        workers: &Workers,
        tables: &mut RoutingTables,
        id: PoolId,
    ) {
        let is_removed = self.by_id.get(&id).is_some_and(|it| it.is_removed);
        if is_removed && workers.in_pool(id).next().is_none() {
            self.by_id.remove(&id);
            tables.remove_pool(id);
        }
    }
}

impl PoolState {
    /// The pool is no longer configured: all its workers retire.
    pub(super) fn retire_workers(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &RoutingTables,
    ) {
        self.is_removed = true;
        self.resize_slots(cx, workers, tables, 0);
    }

    fn change_config(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &RoutingTables,
        config: PoolConfig,
    ) {
        // All workers are replaced if they are started differently.
        let replaces_workers = self.config.command != config.command
            || self.config.outer_session_id != config.outer_session_id;
        self.config = config;
        self.is_launched = false;
        // Workers that were given up are tried again.
        for slot in self.slots.iter_mut().filter(|it| it.worker.is_none()) {
            *slot = WorkerSlot::new(restart_limit(cx.limits()));
        }
        if replaces_workers {
            self.resize_slots(cx, workers, tables, 0);
        }
        self.resize_slots(cx, workers, tables, self.config.instances);
    }

    /// Sets the number of slots; workers without a slot retire.
    fn resize_slots(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &RoutingTables,
        instances: usize,
    ) {
        let removed = self.slots.split_off(instances.min(self.slots.len()));
        let restart_limit = restart_limit(cx.limits());
        self.slots.resize_with(instances, || WorkerSlot::new(restart_limit));
        for worker in removed.into_iter().filter_map(|it| it.worker) {
            workers.retire_worker(cx, tables, worker);
        }
        self.fill_slots(cx, workers);
    }
}
