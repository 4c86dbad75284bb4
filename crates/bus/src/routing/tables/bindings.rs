//! Which worker a connection is bound to, in pools with connection affinity.

use super::super::ids::{PoolId, WorkerId};
use jackfield_hub::ConnId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(in super::super) struct ConnectionBindings {
    /// The worker may have ended in the meantime.
    workers: BTreeMap<(ConnId, PoolId), WorkerId>,
    clients: BTreeMap<WorkerId, BTreeSet<ConnId>>,
}

impl ConnectionBindings {
    pub(in super::super) fn bound_worker(&self, conn: ConnId, pool: PoolId) -> Option<WorkerId> {
        self.workers.get(&(conn, pool)).copied()
    }

    /// The clients that are bound to this worker.
    pub(in super::super) fn bound_clients(
        &self,
        worker: WorkerId,
    ) -> impl Iterator<Item = ConnId> + '_ {
        self.clients.get(&worker).into_iter().flatten().copied()
    }

    pub(in super::super) fn bound_count(&self, worker: WorkerId) -> usize {
        self.clients.get(&worker).map_or(0, BTreeSet::len)
    }

    pub(in super::super) fn bind_client(&mut self, conn: ConnId, pool: PoolId, worker: WorkerId) {
        let previous = self.workers.insert((conn, pool), worker);
        if previous == Some(worker) {
            return;
        }
        if let Some(clients) = previous.and_then(|it| self.clients.get_mut(&it)) {
            clients.remove(&conn);
        }
        self.clients.entry(worker).or_default().insert(conn);
    }

    /// Removes the bindings of a client, and returns its workers.
    pub(in super::super) fn unbind_client(&mut self, conn: ConnId) -> Vec<WorkerId> {
        let range = self.workers.range((conn, PoolId(0))..=(conn, PoolId(u32::MAX)));
        let bound: Vec<_> = range.map(|(key, worker)| (*key, *worker)).collect();
        for (key, worker) in &bound {
            self.workers.remove(key);
            if let Some(clients) = self.clients.get_mut(worker) {
                clients.remove(&conn);
            }
        }
        bound.into_iter().map(|(_, worker)| worker).collect()
    }

    /// The worker ended. Its clients stay bound to it until they get another one.
    pub(in super::super) fn remove_worker(&mut self, worker: WorkerId) {
        self.clients.remove(&worker);
    }

    pub(in super::super) fn remove_pool(&mut self, pool: PoolId) {
        self.workers.retain(|(_, it), _| *it != pool);
    }
}
