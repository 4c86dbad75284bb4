//! Which worker a client's message goes to.
//!
//! A session stays where it is; a new one goes to the worker with the least to do; what names no
//! session goes to each worker in turn. In a pool with [`SessionAffinity::Connection`] a client stays where
//! it is, whatever it names.

use super::{
    Bus, Home, IDLE_SESSIONS_MAX, SessionAffinity, WorkerDeathRule, WorkerId,
    pool::{PoolId, PoolState},
};
use jackfield_hub::ConnId;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, is_planted};
use std::sync::Arc;

/// What opens a session that has no name yet.
pub(super) const OPENS: &str = Method::SessionNew.name();
/// What takes up a session again that its worker may not know any more.
const TAKES_UP: [&str; 2] = [Method::SessionLoad.name(), Method::SessionResume.name()];

impl Bus {
    pub(super) fn route(&mut self, conn: ConnId, frame: &Frame) -> Result<WorkerId, Fault> {
        if self.stopping.is_some() {
            return Err(Fault::Stopping);
        }
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let ids = [outer.as_deref(), inner.as_deref()];
        let pool = self.pool_for(conn, frame, ids)?;
        if let Some(worker) = self.where_it_was(pool, ids, conn) {
            return Ok(worker);
        }
        let (worker, home) = match self.pools[&pool].spec.affinity {
            SessionAffinity::Connection => {
                let worker = self.worker_of(conn, pool)?;
                (worker, Home::Worker(worker))
            }
            SessionAffinity::Session => (self.worker_for(pool, frame, ids)?, Home::Pool(pool)),
        };
        // Before anything changes: a message that is refused leaves nothing behind.
        self.make_room(home, ids)?;
        for id in ids.into_iter().flatten() {
            self.attach(home, id, worker, conn);
        }
        if let Home::Worker(worker) = home {
            self.bind(conn, pool, worker);
        }
        Ok(worker)
    }

    /// The short way of nearly every message: its session is there, and this client used it last.
    /// With many sessions each look into the book costs.
    fn where_it_was(&self, pool: PoolId, ids: [Option<&str>; 2], conn: ConnId) -> Option<WorkerId> {
        let mut found = None;
        for id in ids.into_iter().flatten() {
            let session = self.pools[&pool].sessions.get(id)?;
            let settled = session.clients.last() == Some(&conn)
                && found.is_none_or(|it| it == session.worker)
                && self.is_alive(session.worker);
            found = settled.then_some(session.worker);
            found?;
        }
        found
    }

    /// The pool that a message names, or the only one, or the one that knows its session.
    fn pool_for(
        &self,
        conn: ConnId,
        frame: &Frame,
        ids: [Option<&str>; 2],
    ) -> Result<PoolId, Fault> {
        let name = frame.pool();
        let fits = |it: &&PoolState| name.as_deref().is_none_or(|name| *it.spec.id == *name);
        let bound = &self.clients[&conn].bound;
        let knows = |id: PoolId, it: &PoolState| match it.spec.affinity {
            SessionAffinity::Session => {
                ids.into_iter().flatten().any(|id| it.sessions.get(id).is_some())
            }
            SessionAffinity::Connection => bound.contains_key(&id),
        };
        let candidates = || self.pools.iter().filter(|(_, it)| fits(it)).map(|(id, it)| (*id, it));
        if let Some((id, _)) = only(candidates()) {
            return Ok(id);
        }
        // A pool that the configuration no longer has still serves the sessions it has.
        let found = only(candidates().filter(|(id, it)| knows(*id, it)));
        if let Some((id, _)) = found.or_else(|| only(candidates().filter(|it| !it.1.removed))) {
            return Ok(id);
        }
        let all = self.pool_names();
        let why = match name {
            Some(name) => format!("there is no pool `{name}`, only {all}"),
            None => format!("there are several pools: say `\"pool\"` with one of {all}"),
        };
        Err(Fault::NoWorker { why })
    }

    fn pool_names(&self) -> String {
        let pools = self.pools.values().filter(|it| !it.removed);
        pools.map(|it| format!("`{}`", it.spec.id)).collect::<Vec<_>>().join(", ")
    }

    /// Where all of this client's messages to the pool go.
    fn worker_of(&mut self, conn: ConnId, pool: PoolId) -> Result<WorkerId, Fault> {
        let bound = self.clients[&conn].bound.get(&pool).copied();
        if let Some(worker) = bound.filter(|it| self.is_alive(*it)) {
            return Ok(worker);
        }
        if bound.is_some() && self.pools[&pool].spec.on_death == WorkerDeathRule::End {
            let name = &self.pools[&pool].spec.id;
            let why = format!("your worker of pool `{name}` ended: connect again");
            return Err(Fault::NoWorker { why });
        }
        self.least_loaded(pool)
    }

    fn bind(&mut self, conn: ConnId, pool: PoolId, worker: WorkerId) {
        let bound = &mut self.clients.get_mut(&conn).expect("it spoke").bound;
        let was = bound.insert(pool, worker);
        if was == Some(worker) {
            return;
        }
        if let Some(was) = was.and_then(|it| self.workers.get_mut(&it)) {
            was.bound.remove(&conn);
        }
        self.workers.get_mut(&worker).expect("just picked").bound.insert(conn);
    }

    /// Where the session is that a message names, or shall be.
    fn worker_for(
        &mut self,
        pool: PoolId,
        frame: &Frame,
        ids: [Option<&str>; 2],
    ) -> Result<WorkerId, Fault> {
        let sessions = &self.pools[&pool].sessions;
        let mut lost = None;
        for id in ids.into_iter().flatten() {
            match sessions.get(id) {
                Some(it) if self.is_alive(it.worker) && !is_planted("bus-moves-live-session") => {
                    return Ok(it.worker);
                }
                Some(_) => lost = Some(id),
                None => {}
            }
        }
        let method = frame.method();
        if let Some(id) = lost
            && self.pools[&pool].spec.on_death == WorkerDeathRule::End
            && !method.as_deref().is_some_and(|it| TAKES_UP.contains(&it))
        {
            let why = "the worker that had it ended".to_owned();
            return Err(Fault::CannotResume { session: id.to_owned(), why });
        }
        let is_new = ids.iter().any(Option::is_some) || method.as_deref() == Some(OPENS);
        if is_new { self.least_loaded(pool) } else { self.in_turn(pool) }
    }

    pub(super) fn is_alive(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|it| !it.stopping)
    }

    /// The session is with this worker, and this client uses it.
    pub(super) fn attach(&mut self, home: Home, id: &str, worker: WorkerId, conn: ConnId) {
        let table = self.table(home).expect("its owner is alive");
        let Some(session) = table.get_mut(id) else {
            table.insert(id.into(), worker);
            self.session_count += 1;
            return self.attach(home, id, worker, conn);
        };
        let (was, was_used) = (session.worker, !session.clients.is_empty());
        session.worker = worker;
        let is_new = session.used_by(conn);
        if was != worker || !was_used {
            self.count_session(worker, 1);
            if was != worker && was_used {
                self.count_session(was, -1);
            }
        }
        if is_new {
            self.clients.get_mut(&conn).expect("it spoke").sessions.insert((home, id.into()));
        }
    }

    /// A session that has clients came to a worker, or left it. It may be gone by now.
    pub(super) fn count_session(&mut self, worker: WorkerId, by: isize) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.used_sessions = worker.used_sessions.saturating_add_signed(by);
        }
    }

    /// These sessions may be known; if need be, some that nobody uses are forgotten.
    pub(super) fn make_room(&mut self, home: Home, ids: [Option<&str>; 2]) -> Result<(), Fault> {
        let table = self.table(home).expect("its owner is alive");
        let missing = ids.into_iter().flatten().filter(|id| table.get(id).is_none()).count();
        while self.limits.sessions_max < self.session_count + missing && 0 < missing {
            let Some((home, id)) = self.idle.pop_front() else {
                let what = format!("{} sessions are open, as many as may be", self.session_count);
                return Err(Fault::Overloaded { what });
            };
            self.forget_idle(home, &id);
        }
        Ok(())
    }

    /// Nobody uses this session now.
    pub(super) fn rest(&mut self, home: Home, id: Arc<str>) {
        self.idle.push_back((home, id));
        while IDLE_SESSIONS_MAX < self.idle.len() {
            let (home, id) = self.idle.pop_front().expect("there are some");
            self.forget_idle(home, &id);
        }
    }

    fn forget_idle(&mut self, home: Home, id: &str) {
        let Some(table) = self.table(home) else { return };
        // It may have been taken up again since.
        if table.get(id).is_some_and(|it| it.clients.is_empty()) {
            table.remove(id);
            self.session_count -= 1;
        }
    }

    /// The session is over, for everyone.
    pub(super) fn forget(&mut self, home: Home, id: &str) {
        let Some((id, session)) = self.table(home).and_then(|it| it.remove(id)) else { return };
        self.session_count -= 1;
        if !session.clients.is_empty() {
            self.count_session(session.worker, -1);
        }
        let key = (home, id);
        for conn in session.clients {
            if let Some(client) = self.clients.get_mut(&conn) {
                client.sessions.remove(&key);
            }
        }
    }
}

/// What there is, if there is exactly one.
fn only<T>(mut of: impl Iterator<Item = T>) -> Option<T> {
    let first = of.next()?;
    of.next().is_none().then_some(first)
}
