//! The `sessionId` beside `params` under which a client uses a session, for pools whose workers do
//! not get it.

use super::super::ids::{PoolId, SessionScope, WorkerId};
use jackfield_hub::ConnId;
use std::{collections::BTreeMap, sync::Arc};

/// Outer session ids by client, table and session.
#[derive(Debug, Default)]
pub(in super::super) struct OuterSessionIds {
    by_client: BTreeMap<(ConnId, SessionScope), BTreeMap<Arc<str>, Arc<str>>>,
}

impl OuterSessionIds {
    pub(in super::super) fn find_outer_id(
        &self,
        conn: ConnId,
        scope: SessionScope,
        session: &str,
    ) -> Option<&Arc<str>> {
        self.by_client.get(&(conn, scope))?.get(session)
    }

    /// The client used this outer id last for the session.
    pub(in super::super) fn set_outer_id(
        &mut self,
        conn: ConnId,
        scope: SessionScope,
        session: &str,
        outer: &Arc<str>,
    ) {
        let ids = self.by_client.entry((conn, scope)).or_default();
        match ids.get_mut(session) {
            Some(current) => *current = Arc::clone(outer),
            None => drop(ids.insert(session.into(), Arc::clone(outer))),
        }
    }

    pub(in super::super) fn remove_client(&mut self, conn: ConnId) {
        let first = (conn, SessionScope::Pool(PoolId(0)));
        let last = (conn, SessionScope::Worker(WorkerId(u64::MAX)));
        let keys: Vec<_> = self.by_client.range(first..=last).map(|(key, _)| *key).collect();
        for key in keys {
            self.by_client.remove(&key);
        }
    }

    pub(in super::super) fn remove_session(&mut self, scope: SessionScope, session: &str) {
        for ((_, it), ids) in &mut self.by_client {
            if *it == scope {
                ids.remove(session);
            }
        }
    }

    /// The table of these sessions is gone.
    pub(super) fn remove_table(&mut self, scope: SessionScope) {
        self.by_client.retain(|(_, it), _| *it != scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: SessionScope = SessionScope::Pool(PoolId(1));
    const WORKER: SessionScope = SessionScope::Worker(WorkerId(1));
    const A: ConnId = ConnId(1);
    const B: ConnId = ConnId(2);

    #[test]
    fn ids_are_removed_with_client_session_and_table() {
        let mut ids = OuterSessionIds::default();
        for (conn, scope) in [(A, POOL), (A, WORKER), (B, POOL), (B, WORKER)] {
            ids.set_outer_id(conn, scope, "s", &"old".into());
            ids.set_outer_id(conn, scope, "s", &"outer".into());
        }
        let has = |ids: &OuterSessionIds, conn, scope| {
            ids.find_outer_id(conn, scope, "s").is_some_and(|it| **it == *"outer")
        };
        ids.remove_client(A);
        assert!(!has(&ids, A, POOL) && !has(&ids, A, WORKER) && has(&ids, B, POOL));
        ids.remove_session(POOL, "s");
        assert!(!has(&ids, B, POOL) && has(&ids, B, WORKER));
        ids.remove_table(WORKER);
        assert!(!has(&ids, B, WORKER));
    }
}
