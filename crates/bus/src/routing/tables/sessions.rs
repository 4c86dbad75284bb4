//! Which worker has a session, and which clients use it.

use super::super::{
    config::IDLE_SESSIONS_MAX,
    ids::{SessionScope, WorkerId},
};
use jackfield_hub::ConnId;
use jackfield_protocol::Fault;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// The table of a session and its id.
pub(in super::super) type SessionKey = (SessionScope, Arc<str>);

#[derive(Debug)]
pub(in super::super) struct SessionRoute {
    /// It may have ended in the meantime.
    worker: WorkerId,
    /// In the order of last use; rarely more than one.
    clients: Vec<ConnId>,
}

/// The sessions of all pools, and of all workers in pools with connection affinity.
#[derive(Debug, Default)]
pub(in super::super) struct SessionRoutes {
    tables: BTreeMap<SessionScope, BTreeMap<Arc<str>, SessionRoute>>,
    /// The number of sessions in all tables.
    count: usize,
    /// Sessions without a client, the longest idle first. Some may be in use again.
    idle: VecDeque<SessionKey>,
    /// The sessions that a client uses.
    by_client: BTreeMap<ConnId, BTreeSet<SessionKey>>,
    /// The number of sessions of a worker that clients use.
    in_use: BTreeMap<WorkerId, usize>,
}

impl SessionRoute {
    pub(in super::super) fn worker(&self) -> WorkerId {
        self.worker
    }

    pub(in super::super) fn clients(&self) -> &[ConnId] {
        &self.clients
    }

    /// Records that this client uses the session. Returns whether it is new to the session.
    fn mark_used_by(&mut self, conn: ConnId) -> bool {
        if self.clients.last() == Some(&conn) {
            return false;
        }
        let position = self.clients.iter().position(|it| *it == conn);
        if let Some(index) = position {
            self.clients.remove(index);
        }
        self.clients.push(conn);
        position.is_none()
    }
}

impl SessionRoutes {
    pub(in super::super) fn find_route(
        &self,
        scope: SessionScope,
        id: &str,
    ) -> Option<&SessionRoute> {
        self.tables.get(&scope)?.get(id)
    }

    /// The number of sessions in all tables.
    pub(in super::super) fn session_count(&self) -> usize {
        self.count
    }

    /// The number of sessions of this worker that clients use.
    pub(in super::super) fn in_use_count(&self, worker: WorkerId) -> usize {
        self.in_use.get(&worker).copied().unwrap_or(0)
    }

    /// The number of sessions of this worker that only this client uses.
    pub(in super::super) fn exclusive_count(&self, worker: WorkerId, conn: ConnId) -> usize {
        let is_exclusive = |(scope, id): &&SessionKey| {
            let route = self.find_route(*scope, id);
            route.is_some_and(|it| it.worker == worker && it.clients == [conn])
        };
        self.by_client.get(&conn).map_or(0, |it| it.iter().filter(is_exclusive).count())
    }

    /// Makes room for these sessions, by removing idle ones if necessary.
    pub(in super::super) fn reserve_sessions(
        &mut self,
        scope: SessionScope,
        ids: [Option<&str>; 2],
        sessions_max: usize,
    ) -> Result<(), Fault> {
        let is_missing = |id: &&str| self.find_route(scope, id).is_none();
        let missing = ids.into_iter().flatten().filter(is_missing).count();
        while sessions_max < self.count + missing && 0 < missing {
            let Some((scope, id)) = self.idle.pop_front() else {
                let what = format!("{} sessions are open, which is the limit", self.count);
                return Err(Fault::Overloaded { what });
            };
            self.remove_idle(scope, &id);
        }
        Ok(())
    }

    /// Assigns the session to this worker and records that this client uses it.
    pub(in super::super) fn assign_session(
        &mut self,
        scope: SessionScope,
        id: &str,
        worker: WorkerId,
        conn: ConnId,
    ) {
        let table = self.tables.entry(scope).or_default();
        let route = if let Some(route) = table.get_mut(id) {
            route
        } else {
            self.count += 1;
            table.entry(id.into()).or_insert(SessionRoute { worker, clients: Vec::new() })
        };
        let (previous, was_in_use) = (route.worker, !route.clients.is_empty());
        route.worker = worker;
        if route.mark_used_by(conn) {
            self.by_client.entry(conn).or_default().insert((scope, id.into()));
        }
        if previous != worker || !was_in_use {
            *self.in_use.entry(worker).or_default() += 1;
            if was_in_use {
                self.uncount_in_use(previous);
            }
        }
    }

    /// Removes the session for all clients.
    pub(in super::super) fn remove_session(&mut self, scope: SessionScope, id: &str) {
        let table = self.tables.get_mut(&scope);
        let Some((id, route)) = table.and_then(|it| it.remove_entry(id)) else { return };
        self.count -= 1;
        if !route.clients.is_empty() {
            self.uncount_in_use(route.worker);
        }
        self.unlist_clients(&(scope, id), &route.clients);
    }

    /// The sessions that this client used until now. Each must be passed to [`Self::release_session`].
    pub(in super::super) fn take_of_client(&mut self, conn: ConnId) -> BTreeSet<SessionKey> {
        self.by_client.remove(&conn).unwrap_or_default()
    }

    /// The client is gone. Returns the worker of the session if no other client uses it.
    pub(in super::super) fn release_session(
        &mut self,
        conn: ConnId,
        key: SessionKey,
    ) -> Option<WorkerId> {
        let route = self.tables.get_mut(&key.0)?.get_mut(&key.1)?;
        route.clients.retain(|it| *it != conn);
        if !route.clients.is_empty() {
            return None;
        }
        let worker = route.worker;
        self.uncount_in_use(worker);
        self.idle.push_back(key);
        while IDLE_SESSIONS_MAX < self.idle.len()
            && let Some((scope, id)) = self.idle.pop_front()
        {
            self.remove_idle(scope, &id);
        }
        Some(worker)
    }

    /// Removes the sessions of a worker that ended, if it had a table of its own.
    pub(in super::super) fn remove_worker(&mut self, worker: WorkerId) {
        self.remove_table(SessionScope::Worker(worker));
        self.in_use.remove(&worker);
    }

    pub(in super::super) fn remove_table(&mut self, scope: SessionScope) {
        let table = self.tables.remove(&scope).unwrap_or_default();
        self.count -= table.len();
        for (id, route) in table {
            self.unlist_clients(&(scope, id), &route.clients);
        }
    }

    fn remove_idle(&mut self, scope: SessionScope, id: &str) {
        let Some(table) = self.tables.get_mut(&scope) else { return };
        // It may be in use again.
        if table.get(id).is_some_and(|it| it.clients.is_empty()) {
            table.remove(id);
            self.count -= 1;
        }
    }

    /// Clients no longer use a session of the worker, which may have ended.
    fn uncount_in_use(&mut self, worker: WorkerId) {
        if let Some(count) = self.in_use.get_mut(&worker) {
            *count = count.saturating_sub(1);
        }
    }

    fn unlist_clients(&mut self, key: &SessionKey, conns: &[ConnId]) {
        for conn in conns {
            if let Some(keys) = self.by_client.get_mut(conn) {
                keys.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::ids::PoolId, *};

    const POOL: SessionScope = SessionScope::Pool(PoolId(1));
    const W1: WorkerId = WorkerId(1);
    const W2: WorkerId = WorkerId(2);
    const A: ConnId = ConnId(1);
    const B: ConnId = ConnId(2);

    #[test]
    fn moved_session_is_counted_at_its_new_worker() {
        let mut sessions = SessionRoutes::default();
        sessions.assign_session(POOL, "s", W1, A);
        sessions.assign_session(POOL, "s", W2, B);
        assert_eq!((sessions.in_use_count(W1), sessions.in_use_count(W2)), (0, 1));
        assert_eq!(sessions.find_route(POOL, "s").unwrap().clients(), [A, B]);
        assert_eq!(sessions.exclusive_count(W2, A), 0);
    }

    #[test]
    fn session_is_idle_when_its_last_client_is_gone() {
        let mut sessions = SessionRoutes::default();
        sessions.assign_session(POOL, "s", W1, A);
        sessions.assign_session(POOL, "s", W1, B);
        for (conn, idle_at) in [(A, None), (B, Some(W1))] {
            let keys = sessions.take_of_client(conn);
            assert_eq!(
                keys.into_iter().map(|it| sessions.release_session(conn, it)).collect::<Vec<_>>(),
                [idle_at]
            );
        }
        assert_eq!((sessions.session_count(), sessions.in_use_count(W1)), (1, 0));
        // It makes room for another one.
        assert!(sessions.reserve_sessions(POOL, [Some("t"), None], 1).is_ok());
        assert_eq!(sessions.session_count(), 0);
    }

    #[test]
    fn sessions_in_use_do_not_make_room() {
        let mut sessions = SessionRoutes::default();
        sessions.assign_session(POOL, "s", W1, A);
        assert!(sessions.reserve_sessions(POOL, [Some("t"), None], 1).is_err());
        assert!(sessions.reserve_sessions(POOL, [Some("s"), None], 1).is_ok());
    }

    #[test]
    fn removed_table_is_forgotten_for_all_clients() {
        let mut sessions = SessionRoutes::default();
        sessions.assign_session(SessionScope::Worker(W1), "s", W1, A);
        sessions.assign_session(POOL, "s", W2, A);
        sessions.remove_worker(W1);
        assert_eq!((sessions.session_count(), sessions.in_use_count(W1)), (1, 0));
        assert_eq!(sessions.take_of_client(A).len(), 1);
    }
}
