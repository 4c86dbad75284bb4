//! Another configuration: what still fits goes on, what is new is started, what is gone retires.
//!
//! A worker that retires keeps the sessions it has until nobody uses them.

use super::{Bus, BusConfig, BusNote, PoolConfig, WorkerId, pool::PoolId, pool::Slot};

impl Bus {
    pub(super) fn reload(&mut self, config: BusConfig) {
        self.limits = config.limits;
        let known: Vec<PoolId> = self.pools.keys().copied().collect();
        for id in known {
            let name = &self.pools[&id].spec.id;
            if !self.pools[&id].removed && !config.pools.iter().any(|it| it.id == *name) {
                self.pools.get_mut(&id).expect("found above").removed = true;
                self.resize(id, 0);
                self.drop_pool_if_empty(id);
            }
        }
        for spec in config.pools {
            let known = self.pools.iter().find(|(_, it)| !it.removed && it.spec.id == spec.id);
            match known.map(|(id, _)| *id) {
                Some(id) => self.change_pool(id, spec),
                None => self.add_pool(spec),
            }
        }
        let pools = self.pools.values().filter(|it| !it.removed).count();
        self.note(BusNote::Reloaded { pools, workers: self.workers.len() });
    }

    fn change_pool(&mut self, id: PoolId, spec: PoolConfig) {
        let policy = self.policy();
        let pool = self.pools.get_mut(&id).expect("the caller found it");
        // Where sessions stand in another book, or workers are started otherwise, all are replaced.
        let anew = pool.spec.command != spec.command || pool.spec.affinity != spec.affinity;
        let instances = spec.instances;
        if pool.spec.affinity != spec.affinity {
            pool.removed = true;
            self.resize(id, 0);
            self.drop_pool_if_empty(id);
            return self.add_pool(spec);
        }
        pool.spec = spec;
        for slot in &mut pool.slots {
            // Another try for those that were given up.
            if slot.worker.is_none() {
                *slot = Slot::new(policy);
            }
        }
        if anew {
            self.resize(id, 0);
        }
        self.resize(id, instances);
    }

    /// Gives the pool so many places; whoever loses one retires.
    fn resize(&mut self, id: PoolId, instances: usize) {
        let policy = self.policy();
        let pool = self.pools.get_mut(&id).expect("the caller found it");
        let surplus =
            if instances < pool.slots.len() { pool.slots.split_off(instances) } else { Vec::new() };
        pool.slots.resize_with(instances, || Slot::new(policy));
        let surplus: Vec<WorkerId> = surplus.into_iter().filter_map(|it| it.worker).collect();
        for worker in surplus {
            if let Some(it) = self.workers.get_mut(&worker) {
                it.slot = None;
                it.retiring = true;
            }
            self.retire_if_idle(worker);
        }
        for slot in 0..instances {
            self.fill(id, slot);
        }
    }

    /// A pool that was removed ends with its last worker.
    pub(super) fn drop_pool_if_empty(&mut self, id: PoolId) {
        let in_use = self.workers.values().any(|it| it.pool == id);
        if !in_use && let Some(pool) = self.pools.get(&id).filter(|it| it.removed) {
            self.session_count -= pool.sessions.len();
            self.pools.remove(&id);
            for client in self.clients.values_mut() {
                client.sessions.retain(|(home, _)| *home != super::Home::Pool(id));
                client.bound.remove(&id);
            }
        }
    }
}
