//! All sessions by id, and which of them may have changed since the watchers were notified.

use crate::{SessionId, session::Session};
use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet, btree_map},
    ops::Deref,
};

/// Sessions by id. While it is tracked, it records each session that was accessed for a change.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    sessions: BTreeMap<SessionId, Session>,
    is_tracked: bool,
    touched: BTreeSet<SessionId>,
}

impl SessionTable {
    pub(super) fn new(sessions: impl IntoIterator<Item = Session>) -> SessionTable {
        let sessions = sessions.into_iter().map(|it| (it.id.clone(), it)).collect();
        SessionTable { sessions, ..SessionTable::default() }
    }

    pub(super) fn get_mut<Id: Ord + ?Sized>(&mut self, id: &Id) -> Option<&mut Session>
    where
        SessionId: Borrow<Id>,
    {
        let session = self.sessions.get_mut(id)?;
        if self.is_tracked && !self.touched.contains(id) {
            self.touched.insert(session.id.clone());
        }
        Some(session)
    }

    /// All sessions, for a change that watchers do not see.
    pub(super) fn values_mut(&mut self) -> btree_map::ValuesMut<'_, SessionId, Session> {
        self.sessions.values_mut()
    }

    pub(super) fn insert(&mut self, session: Session) {
        let id = session.id.clone();
        if self.is_tracked {
            self.touched.insert(id.clone());
        }
        self.sessions.insert(id, session);
    }

    pub(super) fn remove(&mut self, id: &SessionId) -> Option<Session> {
        self.sessions.remove(id)
    }

    pub(super) fn remove_if(&mut self, is_removed: impl Fn(&Session) -> bool) -> Vec<Session> {
        self.sessions.extract_if(.., |_, it| is_removed(it)).map(|(_, it)| it).collect()
    }

    /// Whether accessed sessions are recorded.
    pub(super) fn set_tracked(&mut self, is_tracked: bool) {
        self.is_tracked = is_tracked;
        if !is_tracked {
            self.touched.clear();
        }
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The sessions that were accessed since the last call.
    pub(super) fn take_touched(&mut self) -> BTreeSet<SessionId> {
        std::mem::take(&mut self.touched)
    }

    /// Looks at a session again the next time.
    pub(super) fn touch(&mut self, id: SessionId) {
        self.touched.insert(id);
    }
}

impl Deref for SessionTable {
    type Target = BTreeMap<SessionId, Session>;

    fn deref(&self) -> &BTreeMap<SessionId, Session> {
        &self.sessions
    }
}
