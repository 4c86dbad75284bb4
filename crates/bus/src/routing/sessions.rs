//! Which worker has a session, and which clients use it.

use super::WorkerId;
use jackfield_hub::ConnId;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug)]
pub(super) struct SessionRoute {
    /// It may have ended in the meantime.
    pub(super) worker: WorkerId,
    /// In the order of last use; rarely more than one.
    pub(super) clients: Vec<ConnId>,
}

#[derive(Debug, Default)]
pub(super) struct SessionTable(BTreeMap<Arc<str>, SessionRoute>);

impl SessionTable {
    pub(super) fn get(&self, id: &str) -> Option<&SessionRoute> {
        self.0.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut SessionRoute> {
        self.0.get_mut(id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, id: Arc<str>, worker: WorkerId) {
        self.0.insert(id, SessionRoute { worker, clients: Vec::new() });
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<(Arc<str>, SessionRoute)> {
        self.0.remove_entry(id)
    }
}

impl SessionRoute {
    /// Records that this client uses the session. Returns whether it is new to the session.
    pub(super) fn mark_used_by(&mut self, conn: ConnId) -> bool {
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
