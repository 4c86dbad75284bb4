//! The expected behavior of the bus, derived from the messages alone and independent of its implementation.

use jackfield_bus::routing::{SessionAffinity, WorkerId};
use jackfield_hub::ConnId;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The scope of a session id: a pool, or one worker of it.
pub(super) type SessionScope = (Arc<str>, Option<WorkerId>);

#[derive(Debug, Default)]
pub(super) struct BusExpectations {
    /// Unanswered requests of clients, by connection and id, which is unique.
    pub(super) open_requests: BTreeMap<(ConnId, u64), OpenRequest>,
    /// Unanswered requests of workers to clients.
    pub(super) worker_requests: BTreeMap<(WorkerId, u64), ConnId>,
    pub(super) sessions: BTreeMap<(SessionScope, String), UsedSession>,
    /// The worker of each client, in pools where connections stay with one worker.
    pub(super) bound_workers: BTreeMap<(ConnId, Arc<str>), WorkerId>,
    /// The number of the last message that each worker has received from each client.
    pub(super) last_numbers: BTreeMap<(ConnId, WorkerId), u64>,
    pub(super) workers: BTreeMap<WorkerId, Arc<str>>,
    /// Workers that were asked to stop.
    pub(super) stopping: BTreeSet<WorkerId>,
}

#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The worker that received it.
    pub(super) worker: Option<WorkerId>,
}

#[derive(Debug)]
pub(super) struct UsedSession {
    pub(super) worker: WorkerId,
    pub(super) clients: BTreeSet<ConnId>,
}

impl BusExpectations {
    pub(super) fn scope_of(&self, worker: WorkerId, affinity: SessionAffinity) -> SessionScope {
        let pool = Arc::clone(&self.workers[&worker]);
        (pool, (affinity == SessionAffinity::Connection).then_some(worker))
    }

    /// The bus has sent a message of this client in this session to this worker. The session must stay with its worker
    /// as long as that runs.
    pub(super) fn note_session_use(
        &mut self,
        conn: ConnId,
        session: &str,
        worker: WorkerId,
        at: SessionAffinity,
    ) {
        let key = (self.scope_of(worker, at), session.to_owned());
        let fresh = UsedSession { worker, clients: BTreeSet::new() };
        let used = self.sessions.entry(key).or_insert(fresh);
        let was = &used.worker;
        let lives = self.workers.contains_key(was) && !self.stopping.contains(was);
        assert!(
            used.worker == worker || !lives,
            "`{session}` moved from {} to {worker}",
            used.worker
        );
        used.worker = worker;
        used.clients.insert(conn);
    }

    /// The numbers of one client rise at each worker: no message is reordered or repeated.
    pub(super) fn note_arrival(&mut self, conn: ConnId, worker: WorkerId, number: u64) {
        let last = self.last_numbers.entry((conn, worker)).or_default();
        assert!(*last < number, "{worker} received {number} of {conn} after {last}");
        *last = number;
    }

    /// The clients that must receive a message of this worker.
    pub(super) fn expected_receivers(
        &self,
        worker: WorkerId,
        session: Option<&str>,
        affinity: SessionAffinity,
    ) -> BTreeSet<ConnId> {
        let Some(session) = session else {
            let own = self.bound_workers.iter().filter(|(_, it)| **it == worker);
            return own.map(|((conn, _), _)| *conn).collect();
        };
        let key = (self.scope_of(worker, affinity), session.to_owned());
        let used = self.sessions.get(&key).filter(|it| it.worker == worker);
        used.map(|it| it.clients.clone()).unwrap_or_default()
    }

    pub(super) fn forget_client(&mut self, conn: ConnId) {
        self.open_requests.retain(|(it, _), _| *it != conn);
        self.bound_workers.retain(|(it, _), _| *it != conn);
        // A session that no client uses may move to another worker.
        self.sessions.retain(|_, used| {
            used.clients.remove(&conn);
            !used.clients.is_empty()
        });
    }

    pub(super) fn forget_worker(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
        self.worker_requests.retain(|(it, _), _| *it != worker);
        self.bound_workers.retain(|_, it| *it != worker);
        self.sessions.retain(|((_, it), _), _| *it != Some(worker));
    }
}
