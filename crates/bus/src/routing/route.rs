//! Which worker a client's message goes to.
//!
//! A session stays with its worker; a new session goes to the least loaded worker; messages without a
//! session go to each worker in turn. In a pool with [`SessionAffinity::Connection`] all messages of a
//! connection go to the same worker.

use super::{
    Bus, IDLE_SESSIONS_MAX, SessionAffinity, SessionScope, WorkerDeathRule, WorkerId,
    pool::{PoolId, PoolState},
};
use jackfield_hub::ConnId;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

/// The method that opens a session whose id is not known yet.
pub(super) const OPEN_METHOD: &str = Method::SessionNew.name();
/// Methods that resume a session which its worker may not have.
const RESUME_METHODS: [&str; 2] = [Method::SessionLoad.name(), Method::SessionResume.name()];

impl Bus {
    pub(super) fn route(&mut self, conn: ConnId, frame: &Frame) -> Result<WorkerId, Fault> {
        if self.stopping.is_some() {
            return Err(Fault::Stopping);
        }
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let ids = [outer.as_deref(), inner.as_deref()];
        let pool = self.find_pool(conn, frame, ids)?;
        if let Some(worker) = self.find_last_route(pool, ids, conn) {
            return Ok(worker);
        }
        let (worker, scope) = match self.pools[&pool].spec.affinity {
            SessionAffinity::Connection => {
                let worker = self.bound_worker(conn, pool)?;
                (worker, SessionScope::Worker(worker))
            }
            SessionAffinity::Session => {
                (self.session_worker(pool, frame, ids)?, SessionScope::Pool(pool))
            }
        };
        // Before anything changes, so that a refused message has no effect.
        self.reserve_sessions(scope, ids)?;
        for id in ids.into_iter().flatten() {
            self.assign_session(scope, id, worker, conn);
        }
        if let SessionScope::Worker(worker) = scope {
            self.bind_client(conn, pool, worker);
        }
        Ok(worker)
    }

    /// The fast path of most messages: the session is known, and this client used it last. With
    /// many sessions each lookup is expensive.
    fn find_last_route(
        &self,
        pool: PoolId,
        ids: [Option<&str>; 2],
        conn: ConnId,
    ) -> Option<WorkerId> {
        let mut found = None;
        for id in ids.into_iter().flatten() {
            let session = self.pools[&pool].sessions.get(id)?;
            let is_current = session.clients.last() == Some(&conn)
                && found.is_none_or(|it| it == session.worker)
                && self.is_alive(session.worker);
            found = is_current.then_some(session.worker);
            found?;
        }
        found
    }

    /// The pool that a message names, or the only one, or the one that has its session.
    fn find_pool(
        &self,
        conn: ConnId,
        frame: &Frame,
        ids: [Option<&str>; 2],
    ) -> Result<PoolId, Fault> {
        let name = frame.pool();
        let has_name = |it: &&PoolState| name.as_deref().is_none_or(|name| *it.spec.id == *name);
        let bound = &self.clients[&conn].bound;
        let has_session = |id: PoolId, it: &PoolState| match it.spec.affinity {
            SessionAffinity::Session => {
                ids.into_iter().flatten().any(|id| it.sessions.get(id).is_some())
            }
            SessionAffinity::Connection => bound.contains_key(&id),
        };
        let candidates =
            || self.pools.iter().filter(|(_, it)| has_name(it)).map(|(id, it)| (*id, it));
        if let Some((id, _)) = single(candidates()) {
            return Ok(id);
        }
        // A removed pool still serves its sessions.
        let found = single(candidates().filter(|(id, it)| has_session(*id, it)));
        if let Some((id, _)) = found.or_else(|| single(candidates().filter(|it| !it.1.removed))) {
            return Ok(id);
        }
        let names = self.pool_names();
        let why = match name {
            Some(name) => format!("unknown pool `{name}`; the pools are {names}"),
            None => format!("there are several pools: set `\"pool\"` to one of {names}"),
        };
        Err(Fault::NoWorker { why })
    }

    fn pool_names(&self) -> String {
        let pools = self.pools.values().filter(|it| !it.removed);
        pools.map(|it| format!("`{}`", it.spec.id)).collect::<Vec<_>>().join(", ")
    }

    /// The worker for all messages of this client to the pool.
    fn bound_worker(&mut self, conn: ConnId, pool: PoolId) -> Result<WorkerId, Fault> {
        let bound = self.clients[&conn].bound.get(&pool).copied();
        if let Some(worker) = bound.filter(|it| self.is_alive(*it)) {
            return Ok(worker);
        }
        if bound.is_some() && self.pools[&pool].spec.on_death == WorkerDeathRule::End {
            let name = &self.pools[&pool].spec.id;
            let why =
                format!("the worker of this connection in pool `{name}` ended: connect again");
            return Err(Fault::NoWorker { why });
        }
        self.pick_least_loaded(pool)
    }

    fn bind_client(&mut self, conn: ConnId, pool: PoolId, worker: WorkerId) {
        let bound = &mut self.clients.get_mut(&conn).expect("it sent a frame").bound;
        let previous = bound.insert(pool, worker);
        if previous == Some(worker) {
            return;
        }
        if let Some(previous) = previous.and_then(|it| self.workers.get_mut(&it)) {
            previous.bound.remove(&conn);
        }
        self.workers.get_mut(&worker).expect("just picked").bound.insert(conn);
    }

    /// The worker of the session that a message names, or a new one.
    fn session_worker(
        &mut self,
        pool: PoolId,
        frame: &Frame,
        ids: [Option<&str>; 2],
    ) -> Result<WorkerId, Fault> {
        let sessions = &self.pools[&pool].sessions;
        let mut lost_session = None;
        for id in ids.into_iter().flatten() {
            match sessions.get(id) {
                Some(it) if self.is_alive(it.worker) && !is_planted("bus-moves-live-session") => {
                    return Ok(it.worker);
                }
                Some(_) => lost_session = Some(id),
                None => {}
            }
        }
        let method = frame.method();
        if let Some(id) = lost_session
            && self.pools[&pool].spec.on_death == WorkerDeathRule::End
            && !method.as_deref().is_some_and(|it| RESUME_METHODS.contains(&it))
        {
            let why = "its worker ended".to_owned();
            return Err(Fault::CannotResume { session: id.to_owned(), why });
        }
        let is_new = ids.iter().any(Option::is_some) || method.as_deref() == Some(OPEN_METHOD);
        if is_new { self.pick_least_loaded(pool) } else { self.pick_in_turn(pool) }
    }

    pub(super) fn is_alive(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|it| !it.stopping)
    }

    /// Assigns the session to this worker and records that this client uses it.
    pub(super) fn assign_session(
        &mut self,
        scope: SessionScope,
        id: &str,
        worker: WorkerId,
        conn: ConnId,
    ) {
        let session_table = self.session_table(scope).expect("its owner is alive");
        let Some(session) = session_table.get_mut(id) else {
            session_table.insert(id.into(), worker);
            self.session_count += 1;
            return self.assign_session(scope, id, worker, conn);
        };
        let (previous, was_in_use) = (session.worker, !session.clients.is_empty());
        session.worker = worker;
        let is_new = session.mark_used_by(conn);
        if previous != worker || !was_in_use {
            self.count_session(worker, 1);
            if previous != worker && was_in_use {
                self.count_session(previous, -1);
            }
        }
        if is_new {
            self.clients
                .get_mut(&conn)
                .expect("it sent a frame")
                .sessions
                .insert((scope, id.into()));
        }
    }

    /// Counts a session with clients that was assigned to a worker or removed from it. The worker
    /// may have ended.
    pub(super) fn count_session(&mut self, worker: WorkerId, delta: isize) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.used_sessions = worker.used_sessions.saturating_add_signed(delta);
        }
    }

    /// Makes room for these sessions, by removing idle ones if necessary.
    pub(super) fn reserve_sessions(
        &mut self,
        scope: SessionScope,
        ids: [Option<&str>; 2],
    ) -> Result<(), Fault> {
        let session_table = self.session_table(scope).expect("its owner is alive");
        let missing =
            ids.into_iter().flatten().filter(|id| session_table.get(id).is_none()).count();
        while self.limits.sessions_max < self.session_count + missing && 0 < missing {
            let Some((scope, id)) = self.idle.pop_front() else {
                let what = format!("{} sessions are open, which is the limit", self.session_count);
                return Err(Fault::Overloaded { what });
            };
            self.remove_idle_session(scope, &id);
        }
        Ok(())
    }

    /// Records that no client uses this session.
    pub(super) fn add_idle_session(&mut self, scope: SessionScope, id: Arc<str>) {
        self.idle.push_back((scope, id));
        while IDLE_SESSIONS_MAX < self.idle.len() {
            let (scope, id) = self.idle.pop_front().expect("there are some");
            self.remove_idle_session(scope, &id);
        }
    }

    fn remove_idle_session(&mut self, scope: SessionScope, id: &str) {
        let Some(session_table) = self.session_table(scope) else { return };
        // It may be in use again.
        if session_table.get(id).is_some_and(|it| it.clients.is_empty()) {
            session_table.remove(id);
            self.session_count -= 1;
        }
    }

    /// Removes the session for all clients.
    pub(super) fn remove_session(&mut self, scope: SessionScope, id: &str) {
        let Some((id, session)) = self.session_table(scope).and_then(|it| it.remove(id)) else {
            return;
        };
        self.session_count -= 1;
        if !session.clients.is_empty() {
            self.count_session(session.worker, -1);
        }
        let key = (scope, id);
        for conn in session.clients {
            if let Some(client) = self.clients.get_mut(&conn) {
                client.sessions.remove(&key);
            }
        }
    }
}

/// The item, if there is exactly one.
fn single<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
