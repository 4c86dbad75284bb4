//! Reloading the configuration: unchanged workers continue, new ones are started, removed ones retire.
//!
//! A retiring worker keeps its sessions until no client uses them.

use super::{Bus, BusConfig, BusNote, PoolConfig, WorkerId, pool::PoolId, pool::WorkerSlot};

impl Bus {
    pub(super) fn reload(&mut self, config: BusConfig) {
        self.limits = config.limits;
        let existing: Vec<PoolId> = self.pools.keys().copied().collect();
        for id in existing {
            let name = &self.pools[&id].spec.id;
            if !self.pools[&id].removed && !config.pools.iter().any(|it| it.id == *name) {
                self.pools.get_mut(&id).expect("found above").removed = true;
                self.resize_pool(id, 0);
                self.remove_pool_if_empty(id);
            }
        }
        for spec in config.pools {
            let existing = self.pools.iter().find(|(_, it)| !it.removed && it.spec.id == spec.id);
            match existing.map(|(id, _)| *id) {
                Some(id) => self.change_pool(id, spec),
                None => self.add_pool(spec),
            }
        }
        let pools = self.pools.values().filter(|it| !it.removed).count();
        self.note(BusNote::Reloaded { pools, workers: self.workers.len() });
    }

    fn change_pool(&mut self, id: PoolId, spec: PoolConfig) {
        let restart_limit = self.restart_limit();
        let pool = self.pools.get_mut(&id).expect("the caller found it");
        // All workers are replaced if they are started differently or the sessions move to another
        // table.
        let replaces_workers =
            pool.spec.command != spec.command || pool.spec.affinity != spec.affinity;
        let instances = spec.instances;
        if pool.spec.affinity != spec.affinity {
            pool.removed = true;
            self.resize_pool(id, 0);
            self.remove_pool_if_empty(id);
            return self.add_pool(spec);
        }
        pool.spec = spec;
        for slot in &mut pool.slots {
            // Workers that were given up are tried again.
            if slot.worker.is_none() {
                *slot = WorkerSlot::new(restart_limit);
            }
        }
        if replaces_workers {
            self.resize_pool(id, 0);
        }
        self.resize_pool(id, instances);
    }

    /// Sets the number of slots; workers without a slot retire.
    fn resize_pool(&mut self, id: PoolId, instances: usize) {
        let restart_limit = self.restart_limit();
        let pool = self.pools.get_mut(&id).expect("the caller found it");
        let removed =
            if instances < pool.slots.len() { pool.slots.split_off(instances) } else { Vec::new() };
        pool.slots.resize_with(instances, || WorkerSlot::new(restart_limit));
        let removed: Vec<WorkerId> = removed.into_iter().filter_map(|it| it.worker).collect();
        for worker in removed {
            if let Some(it) = self.workers.get_mut(&worker) {
                it.slot = None;
                it.retiring = true;
            }
            self.retire_if_idle(worker);
        }
        for slot in 0..instances {
            self.fill_slot(id, slot);
        }
    }

    /// Removes a pool that is no longer configured and has no workers.
    pub(super) fn remove_pool_if_empty(&mut self, id: PoolId) {
        let has_workers = self.workers.values().any(|it| it.pool == id);
        if !has_workers && let Some(pool) = self.pools.get(&id).filter(|it| it.removed) {
            self.session_count -= pool.sessions.len();
            self.pools.remove(&id);
            for client in self.clients.values_mut() {
                client.sessions.retain(|(scope, _)| *scope != super::SessionScope::Pool(id));
                client.bound.remove(&id);
            }
        }
    }
}
