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
use std::borrow::Cow;

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
        cx: &mut BusContext,
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
        let pool = self.find_pool(cx, workers, tables, &message)?;
        pool.last_used_at = cx.now();
        let worker = match pool.find_last_route(workers, tables, &message) {
            Some(worker) => worker,
            None => pool.assign_worker(cx, workers, tables, &message)?,
        };
        workers.get_mut(worker).ok_or_else(|| pool.no_worker_fault(cx))
    }

    /// The pool that a message names, or the one that has its session, or an agent that the
    /// launcher starts, or the only configured pool.
    fn find_pool(
        &mut self,
        cx: &mut BusContext,
        workers: &mut Workers,
        tables: &mut RoutingTables,
        message: &ClientMessage<'_>,
    ) -> Result<&mut PoolState, Fault> {
        let name = message.frame.pool().or_else(|| self.pool_of_agent(message.frame));
        let has_name = |it: &&PoolState| name.as_deref().is_none_or(|name| *it.config.id == *name);
        let candidates = || self.by_id.values().filter(has_name);
        // The sessions of an agent that was stopped because no client used it are over.
        let is_over =
            |it: &PoolState| it.is_launched && it.is_removed && !it.is_used(workers, tables);
        let has_route = |it: &&PoolState| it.has_route(tables, message) && !is_over(it);
        let routed = || single(candidates().filter(has_route));
        let agent = message.frame.agent_id().filter(|it| name.is_none() && self.can_launch(it));
        // A message without a name does not go to an agent that happens to run.
        let is_default = |it: &&PoolState| name.is_some() || !it.is_launched;
        // A removed pool still serves its sessions.
        let found = match &agent {
            Some(_) => routed(),
            None => single(candidates())
                .filter(is_default)
                .or_else(routed)
                .or_else(|| single(candidates().filter(|it| !it.is_removed && is_default(it)))),
        };
        let id = match (found.map(|it| it.id), agent) {
            (Some(id), _) => id,
            (None, Some(agent)) => self.launch_agent(cx, workers, tables, &agent)?,
            (None, None) => return Err(self.unknown_pool_fault(message.frame)),
        };
        Ok(self.by_id.get_mut(&id).expect("the pool was found or added"))
    }

    /// The agent that a message names, if it is the name of a pool. Otherwise `agentId` is for the
    /// worker.
    fn pool_of_agent<'a>(&self, frame: &'a Frame) -> Option<Cow<'a, str>> {
        let mut pools = self.by_id.values().filter(|it| !it.is_removed);
        frame.agent_id().filter(|agent| pools.any(|it| *it.config.id == **agent))
    }

    fn unknown_pool_fault(&self, frame: &Frame) -> Fault {
        let names = self.pool_names();
        let launcher = if self.launcher.is_some() {
            "; or set `\"agentId\"` to an agent of the launcher"
        } else {
            ""
        };
        let why = match (frame.pool(), frame.agent_id()) {
            (Some(name), _) => format!("unknown pool `{name}`; the pools are {names}"),
            (None, Some(agent)) => format!("unknown agent `{agent}`; the pools are {names}"),
            (None, None) if names.is_empty() => {
                "set `\"agentId\"` to an agent of the launcher".to_owned()
            }
            (None, None) => {
                format!("there are several pools: set `\"pool\"` to one of {names}{launcher}")
            }
        };
        Fault::NoWorker { why }
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
