//! What must follow from what was said. It is kept from the messages alone and knows nothing of how
//! the bus works.

use jackfield_bus::routing::{SessionAffinity, WorkerId};
use jackfield_hub::ConnId;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Where a name of a session counts: in a pool, or with one worker of it.
pub(super) type Place = (Arc<str>, Option<WorkerId>);

#[derive(Debug, Default)]
pub(super) struct Book {
    /// What each client asked and has no answer to yet: its id and a number that only this request
    /// has.
    pub(super) asked: BTreeMap<(ConnId, u64), Asked>,
    /// What each worker asked its clients.
    pub(super) asks: BTreeMap<(WorkerId, u64), ConnId>,
    pub(super) sessions: BTreeMap<(Place, String), Used>,
    /// The worker of each client where connections stay with one.
    pub(super) bound: BTreeMap<(ConnId, Arc<str>), WorkerId>,
    /// The last number of each client that each worker has got.
    pub(super) order: BTreeMap<(ConnId, WorkerId), u64>,
    pub(super) workers: BTreeMap<WorkerId, Arc<str>>,
    /// Those that were asked to stop.
    pub(super) stopping: BTreeSet<WorkerId>,
}

#[derive(Debug)]
pub(super) struct Asked {
    /// Who has it.
    pub(super) worker: Option<WorkerId>,
}

#[derive(Debug)]
pub(super) struct Used {
    pub(super) worker: WorkerId,
    pub(super) by: BTreeSet<ConnId>,
}

impl Book {
    pub(super) fn place(&self, worker: WorkerId, affinity: SessionAffinity) -> Place {
        let pool = Arc::clone(&self.workers[&worker]);
        (pool, (affinity == SessionAffinity::Connection).then_some(worker))
    }

    /// A message of this client that names the session went to this worker. It must be where the
    /// session was, as long as that lives.
    pub(super) fn used(
        &mut self,
        conn: ConnId,
        session: &str,
        worker: WorkerId,
        at: SessionAffinity,
    ) {
        let key = (self.place(worker, at), session.to_owned());
        let fresh = Used { worker, by: BTreeSet::new() };
        let used = self.sessions.entry(key).or_insert(fresh);
        let was = &used.worker;
        let lives = self.workers.contains_key(was) && !self.stopping.contains(was);
        assert!(used.worker == worker || !lives, "`{session}` left {} for {worker}", used.worker);
        used.worker = worker;
        used.by.insert(conn);
    }

    /// Numbers of one client rise at each worker: nothing overtakes, nothing comes twice.
    pub(super) fn arrived(&mut self, conn: ConnId, worker: WorkerId, number: u64) {
        let last = self.order.entry((conn, worker)).or_default();
        assert!(*last < number, "{worker} got {number} of {conn} after {last}");
        *last = number;
    }

    /// Who must hear what this worker says of a session.
    pub(super) fn audience(
        &self,
        worker: WorkerId,
        session: Option<&str>,
        affinity: SessionAffinity,
    ) -> BTreeSet<ConnId> {
        let Some(session) = session else {
            let of_it = self.bound.iter().filter(|(_, it)| **it == worker);
            return of_it.map(|((conn, _), _)| *conn).collect();
        };
        let key = (self.place(worker, affinity), session.to_owned());
        let used = self.sessions.get(&key).filter(|it| it.worker == worker);
        used.map(|it| it.by.clone()).unwrap_or_default()
    }

    pub(super) fn forget_client(&mut self, conn: ConnId) {
        self.asked.retain(|(it, _), _| *it != conn);
        self.bound.retain(|(it, _), _| *it != conn);
        // Where a session goes that nobody uses is not promised.
        self.sessions.retain(|_, used| {
            used.by.remove(&conn);
            !used.by.is_empty()
        });
    }

    pub(super) fn forget_worker(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
        self.asks.retain(|(it, _), _| *it != worker);
        self.bound.retain(|_, it| *it != worker);
        self.sessions.retain(|((_, it), _), _| *it != Some(worker));
    }
}
