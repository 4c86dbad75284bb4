//! Requests under way. Whoever is asked sees ids of ours, so equal ids of two askers never meet.

use super::WorkerId;
use jackfield_hub::ConnId;
use std::{collections::BTreeMap, sync::Arc};

/// Who asked, or is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Client(ConnId),
    Worker(WorkerId),
    /// The bus itself, about a worker's health.
    Bus,
}

/// One end's share of the calls: both ends of a call have it in their books.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// What it asked and waits for, by its own id and ours: it may use its own twice at a time.
    asked: BTreeMap<(Arc<str>, u64), Peer>,
    /// What it owes an answer to, by our id.
    owed: BTreeMap<u64, Call>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) by: Peer,
    /// What the asker calls it, as JSON text.
    pub(super) id: Arc<str>,
    /// What the answer means to the bus itself.
    pub(super) kind: CallKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallKind {
    Plain,
    /// It opens a session that has no name yet.
    Opens,
    /// This session is over when it is answered well.
    Closes(Arc<str>),
}

impl Calls {
    pub(super) fn ask(&mut self, id: Arc<str>, whom: Peer, ours: u64) {
        self.asked.insert((id, ours), whom);
    }

    pub(super) fn owe(&mut self, ours: u64, call: Call) {
        self.owed.insert(ours, call);
    }

    /// It answers; `None` if nobody waits.
    pub(super) fn answered(&mut self, ours: u64) -> Option<Call> {
        self.owed.remove(&ours)
    }

    /// It was answered, or will not be.
    pub(super) fn settled(&mut self, id: &Arc<str>, ours: u64) {
        self.asked.remove(&(Arc::clone(id), ours));
    }

    /// Whom it asked under this id last, and what we call that.
    pub(super) fn whom(&self, id: &str) -> Option<(Peer, u64)> {
        let id: Arc<str> = id.into();
        let last = self.asked.range((Arc::clone(&id), 0)..=(id, u64::MAX)).next_back();
        last.map(|((_, ours), whom)| (*whom, *ours))
    }

    /// What it owes an answer to under this id of ours.
    pub(super) fn about(&self, ours: u64) -> Option<&Call> {
        self.owed.get(&ours)
    }

    pub(super) fn owes(&self) -> usize {
        self.owed.len()
    }

    /// Whether it owes an answer to a peer like this.
    pub(super) fn has_owed(&self, is_it: impl Fn(Peer) -> bool) -> bool {
        self.owed.values().any(|it| is_it(it.by))
    }

    pub(super) fn waits(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn take_owed(&mut self) -> BTreeMap<u64, Call> {
        std::mem::take(&mut self.owed)
    }

    pub(super) fn take_asked(&mut self) -> BTreeMap<(Arc<str>, u64), Peer> {
        std::mem::take(&mut self.asked)
    }
}
