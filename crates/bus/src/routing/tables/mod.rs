//! The tables that decide where a message goes: pending requests, sessions, bound connections.
//!
//! They refer to clients and workers by id only.

mod bindings;
mod outer_ids;
mod pending_calls;
mod sessions;

pub(super) use bindings::ConnectionBindings;
pub(super) use outer_ids::OuterSessionIds;
pub(super) use pending_calls::{CallKind, CallPeer, PendingCall, PendingCalls};
pub(super) use sessions::{SessionRoute, SessionRoutes};

use super::ids::{PoolId, SessionScope, WorkerId};
use jackfield_hub::ConnId;

#[derive(Debug, Default)]
pub(super) struct RoutingTables {
    pub(super) calls: PendingCalls,
    pub(super) sessions: SessionRoutes,
    pub(super) bindings: ConnectionBindings,
    pub(super) outer_ids: OuterSessionIds,
}

impl RoutingTables {
    /// The number of sessions of the worker that clients use, and of clients bound to it.
    pub(super) fn count_users(&self, worker: WorkerId) -> usize {
        self.sessions.in_use_count(worker) + self.bindings.bound_count(worker)
    }

    /// Whether another client waits for a response of the worker, is bound to it, or uses one of
    /// its sessions.
    pub(super) fn is_used_by_others(&self, worker: WorkerId, conn: ConnId) -> bool {
        let mut callers = self.calls.received_by(CallPeer::Worker(worker)).map(|it| it.caller);
        self.bindings.bound_clients(worker).any(|it| it != conn)
            || callers.any(|it| matches!(it, CallPeer::Client(other) if other != conn))
            || self.sessions.exclusive_count(worker, conn) < self.sessions.in_use_count(worker)
    }

    /// Removes a worker that ended. Its pending requests are answered separately.
    pub(super) fn remove_worker(&mut self, worker: WorkerId) {
        self.sessions.remove_worker(worker);
        self.outer_ids.remove_table(SessionScope::Worker(worker));
        self.bindings.remove_worker(worker);
    }

    pub(super) fn remove_pool(&mut self, pool: PoolId) {
        self.sessions.remove_table(SessionScope::Pool(pool));
        self.outer_ids.remove_table(SessionScope::Pool(pool));
        self.bindings.remove_pool(pool);
    }
}
