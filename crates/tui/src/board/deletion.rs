//! Deletions that can still be taken back.

use crate::{
    hub::HubRequest,
    page::{AppEffect, UpdateContext},
};
use jackfield_events::Time;

/// How long a deletion can be taken back.
pub(crate) const UNDO_MS: u64 = 5_000;

/// A session that is deleted at a certain time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingDeletion {
    pub(crate) session: String,
    pub(crate) title: String,
    due: Time,
}

/// Pending deletions, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct DeletionQueue {
    pending: Vec<PendingDeletion>,
}

impl DeletionQueue {
    pub(crate) fn push(&mut self, cx: &mut UpdateContext<'_>, session: String, title: String) {
        let due = cx.now.plus(UNDO_MS);
        self.pending.push(PendingDeletion { session, title, due });
        cx.push_effect(AppEffect::WakeAt(due));
    }

    /// Takes back the last deletion.
    pub(crate) fn undo(&mut self) -> Option<PendingDeletion> {
        self.pending.pop()
    }

    /// Removes the deletions whose time has come.
    pub(crate) fn take_due(&mut self, now: Time) -> Vec<PendingDeletion> {
        let count = self.pending.iter().take_while(|it| it.due <= now).count();
        self.pending.drain(..count).collect()
    }

    /// Sends all deletions, because the interface ends.
    pub(crate) fn finish(&mut self, cx: &mut UpdateContext<'_>) {
        for it in self.pending.drain(..) {
            cx.send(HubRequest::DeleteSession { session: it.session });
        }
    }
}
