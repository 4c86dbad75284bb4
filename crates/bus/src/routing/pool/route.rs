//! Which worker a client's message goes to.
//!
//! A session stays with its worker; a new session goes to the least loaded worker; messages without a
//! session go to each worker in turn. In a pool with [`SessionAffinity::Connection`] all messages of a
//! connection go to the same worker.

use super::{
    super::{
        config::{SessionAffinity, WorkerDeathRule},
        context::BusContext,
        ids::{SessionScope, WorkerId},
        methods,
        tables::RoutingTables,
        worker::{Worker, Workers},
    },
    PoolState, Pools,
};
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame, is_planted};

/// A message of a client.
struct ClientMessage<'a> {
    conn: ConnId,
    frame: &'a Frame,
    /// The sessions that it names.
    session_ids: [Option<&'a str>; 2],
}

impl ClientMessage<'_> {
    fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.session_ids.into_iter().flatten()
    }
}

impl Pools {
    /// The worker for a message of this client.
    pub(in super::super) fn route_message<'a>(
        &mut self,
        cx: &BusContext,
        workers: &'a mut Workers,
        tables: &mut RoutingTables,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<&'a mut Worker, Fault> {
        if cx.is_stopping() {
            return Err(Fault::Stopping);
        }
        let (outer, inner) = (frame.outer_session_id(), frame.session_id());
        let session_ids = [outer.as_deref(), inner.as_deref()];
        let message = ClientMessage { conn, frame, session_ids };
        let pool = self.find_pool(tables, &message)?;
        let worker = match pool.find_last_route(workers, tables, &message) {
            Some(worker) => worker,
            None => pool.assign_worker(cx, workers, tables, &message)?,
        };
        workers.get_mut(worker).ok_or_else(|| pool.no_worker_fault(cx))
    }

    /// The pool that a message names, or the only one, or the one that has its session.
    fn find_pool(
        &mut self,
        tables: &RoutingTables,
        message: &ClientMessage<'_>,
    ) -> Result<&mut PoolState, Fault> {
        let name = message.frame.pool();
        let has_name = |it: &&PoolState| name.as_deref().is_none_or(|name| *it.config.id == *name);
        let candidates = || self.by_id.values().filter(has_name);
        // A removed pool still serves its sessions.
        let found = single(candidates())
            .or_else(|| single(candidates().filter(|it| it.has_route(tables, message))))
            .or_else(|| single(candidates().filter(|it| !it.is_removed)))
            .map(|it| it.id);
        let names = if found.is_none() { self.pool_names() } else { String::new() };
        found.and_then(|id| self.by_id.get_mut(&id)).ok_or_else(|| {
            let why = match name {
                Some(name) => format!("unknown pool `{name}`; the pools are {names}"),
                None => format!("there are several pools: set `\"pool\"` to one of {names}"),
            };
            Fault::NoWorker { why }
        })
    }

    fn pool_names(&self) -> String {
        let pools = self.by_id.values().filter(|it| !it.is_removed);
        pools.map(|it| format!("`{}`", it.config.id)).collect::<Vec<_>>().join(", ")
    }
}

impl PoolState {
    /// Whether the pool has a session that the message names, or the client is bound to a worker.
    fn has_route(&self, tables: &RoutingTables, message: &ClientMessage<'_>) -> bool {
        match self.config.affinity {
            SessionAffinity::Session => {
                let scope = SessionScope::Pool(self.id);
                message.session_ids().any(|id| tables.sessions.find_route(scope, id).is_some())
            }
            SessionAffinity::Connection => {
                tables.bindings.bound_worker(message.conn, self.id).is_some()
            }
        }
    }

    /// The fast path of most messages: the session is known, and this client used it last. With
    /// many sessions each lookup is expensive.
    fn find_last_route(
        &self,
        workers: &Workers,
        tables: &RoutingTables,
        message: &ClientMessage<'_>,
    ) -> Option<WorkerId> {
        let mut found = None;
        for id in message.session_ids() {
            let route = tables.sessions.find_route(SessionScope::Pool(self.id), id)?;
            let worker = route.worker();
            let is_current = route.clients().last() == Some(&message.conn)
                && found.is_none_or(|it| it == worker)
                && workers.is_alive(worker);
            found = is_current.then_some(worker);
            found?;
        }
        found
    }

    /// Chooses a worker, and assigns the sessions that the message names to it.
    fn assign_worker(
        &mut self,
        cx: &BusContext,
        workers: &Workers,
        tables: &mut RoutingTables,
        message: &ClientMessage<'_>,
    ) -> Result<WorkerId, Fault> {
        let (worker, scope) = match self.config.affinity {
            SessionAffinity::Connection => {
                let worker = self.bound_worker(cx, workers, tables, message.conn)?;
                (worker, SessionScope::Worker(worker))
            }
            SessionAffinity::Session => {
                let worker = self.session_worker(cx, workers, tables, message)?;
                (worker, SessionScope::Pool(self.id))
            }
        };
        // Before anything changes, so that a refused message has no effect.
        tables.sessions.reserve_sessions(scope, message.session_ids, cx.limits().sessions_max)?;
        for id in message.session_ids() {
            tables.sessions.assign_session(scope, id, worker, message.conn);
        }
        if self.config.affinity == SessionAffinity::Connection {
            tables.bindings.bind_client(message.conn, self.id, worker);
        }
        Ok(worker)
    }

    /// The worker for all messages of this client to the pool.
    fn bound_worker(
        &mut self,
        cx: &BusContext,
        workers: &Workers,
        tables: &RoutingTables,
        conn: ConnId,
    ) -> Result<WorkerId, Fault> {
        let bound = tables.bindings.bound_worker(conn, self.id);
        if let Some(worker) = bound.filter(|it| workers.is_alive(*it)) {
            return Ok(worker);
        }
        if bound.is_some() && self.config.on_death == WorkerDeathRule::End {
            let name = &self.config.id;
            let why =
                format!("the worker of this connection in pool `{name}` ended: connect again");
            return Err(Fault::NoWorker { why });
        }
        self.pick_worker(cx, workers, |it| it.load(tables))
    }

    /// The worker of the session that a message names, or a new one.
    fn session_worker(
        &mut self,
        cx: &BusContext,
        workers: &Workers,
        tables: &RoutingTables,
        message: &ClientMessage<'_>,
    ) -> Result<WorkerId, Fault> {
        let mut lost_session = None;
        for id in message.session_ids() {
            match tables.sessions.find_route(SessionScope::Pool(self.id), id) {
                Some(it)
                    if workers.is_alive(it.worker()) && !is_planted("bus-moves-live-session") =>
                {
                    return Ok(it.worker());
                }
                Some(_) => lost_session = Some(id),
                None => {}
            }
        }
        if let Some(id) = lost_session
            && self.config.on_death == WorkerDeathRule::End
            && !methods::resumes_session(message.frame)
        {
            let why = "its worker ended".to_owned();
            return Err(Fault::CannotResume { session: id.to_owned(), why });
        }
        let is_new =
            message.session_ids().next().is_some() || methods::opens_session(message.frame);
        if is_new {
            self.pick_worker(cx, workers, |it| it.load(tables))
        } else {
            // Each worker in turn.
            self.pick_worker(cx, workers, |_| 0)
        }
    }
}

/// The item, if there is exactly one.
fn single<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
