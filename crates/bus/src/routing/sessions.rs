//! Which worker has a session, and which clients use it.

use super::WorkerId;
use jackfield_hub::ConnId;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug)]
pub(super) struct Session {
    /// It may be gone: whoever looks finds out.
    pub(super) worker: WorkerId,
    /// In the order in which they last spoke; rarely more than one.
    pub(super) clients: Vec<ConnId>,
}

#[derive(Debug, Default)]
pub(super) struct Sessions(BTreeMap<Arc<str>, Session>);

impl Sessions {
    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.0.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.0.get_mut(id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, id: Arc<str>, worker: WorkerId) {
        self.0.insert(id, Session { worker, clients: Vec::new() });
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<(Arc<str>, Session)> {
        self.0.remove_entry(id)
    }
}

impl Session {
    /// This client used it just now. Says whether it is new to it.
    pub(super) fn used_by(&mut self, conn: ConnId) -> bool {
        if self.clients.last() == Some(&conn) {
            return false;
        }
        let known = self.clients.iter().position(|it| *it == conn);
        if let Some(at) = known {
            self.clients.remove(at);
        }
        self.clients.push(conn);
        known.is_none()
    }
}
