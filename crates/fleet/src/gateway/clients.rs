//! All clients of the gateway.

use super::client::ClientConnection;
use jackfield_hub::{ConnId, SessionId};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Clients {
    by_id: BTreeMap<ConnId, ClientConnection>,
}

impl Clients {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn add_client(&mut self, conn: ConnId, client: ClientConnection) {
        let known = self.by_id.insert(conn, client);
        assert!(known.is_none(), "a conn id is used once");
    }

    pub(super) fn get(&self, conn: ConnId) -> Option<&ClientConnection> {
        self.by_id.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut ClientConnection> {
        self.by_id.get_mut(&conn)
    }

    pub(super) fn remove_client(&mut self, conn: ConnId) -> Option<ClientConnection> {
        self.by_id.remove(&conn)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ClientConnection> {
        self.by_id.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientConnection> {
        self.by_id.values_mut()
    }

    pub(super) fn uses_session(&self, conn: ConnId, session: &SessionId) -> bool {
        self.by_id.get(&conn).is_some_and(|it| it.uses_session(session))
    }
}
