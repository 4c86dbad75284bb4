//! Reports that the journal does not accept events, and that it does again.

use super::Sessions;
use crate::{
    ConnId, Note, StorageFault,
    context::HubContext,
    parts::HubParts,
    storage::{self, StorageFailure},
};
use jackfield_protocol::{Frame, acp::Method};
use serde_json::{Value, json};

impl Sessions {
    pub(crate) fn count_pending_events(&self) -> usize {
        self.by_id.values().map(|it| it.log.pending_events().count()).sum()
    }

    /// Stores all due summaries before the end, so that the next start reads nothing else.
    pub(crate) fn store_due_summaries(&mut self, cx: &mut HubContext) {
        for session in self.by_id.values_mut().filter(|it| it.log.can_store_summary()) {
            session.store_summary(cx);
        }
    }

    /// An append of a session failed for the `failures`th time in a row.
    pub(super) fn on_storage_failed(
        &self,
        parts: &mut HubParts,
        failures: u32,
        fault: StorageFault,
        error: &str,
    ) {
        if let Some(note) = parts.storage.count_failure(parts.cx.now, failures, fault, error) {
            parts.cx.note(note);
            self.send_storage_state(parts);
        }
    }

    /// Reports the end of a failure when no session waits for the storage any more.
    pub(crate) fn check_storage(&self, parts: &mut HubParts) {
        let is_stalled = || self.by_id.values().any(|it| storage::is_stalled(&it.log));
        if let Some(after_ms) = parts.storage.clear_failure(parts.cx.now, is_stalled) {
            parts.cx.note(Note::StorageRecovered { after_ms });
            self.send_storage_state(parts);
        }
    }

    /// The state for status and notices. Tenants do not get the names of files.
    pub(super) fn describe_storage(&self, parts: &HubParts, conn: ConnId) -> Value {
        self.describe_storage_failure(parts, conn).unwrap_or_else(|| json!({ "ok": true }))
    }

    /// The state for lists, which omit a storage that works.
    pub(super) fn describe_storage_failure(&self, parts: &HubParts, conn: ConnId) -> Option<Value> {
        let is_operator = parts.clients.tenant_name(conn).is_none();
        let lost = parts.cx.config.lost_records.filter(|_| is_operator);
        let failure = parts.storage.failure();
        if lost.is_none() && failure.is_none() {
            return None;
        }
        let mut state = failure.map_or_else(|| json!({ "ok": true }), StorageFailure::to_json);
        if let Some(lost) = lost {
            state["lostRecords"] = json!(lost);
        }
        if let Some(failure) = failure.filter(|_| is_operator) {
            state["error"] = json!(failure.error);
            state["unwrittenEvents"] = json!(self.count_pending_events());
        }
        Some(state)
    }

    /// Sends the state of the storage to all clients that know the hub.
    fn send_storage_state(&self, parts: &mut HubParts) {
        let recipients = parts.clients.connections.iter();
        let recipients = recipients.filter(|(_, it)| it.notices && !it.relay);
        let recipients: Vec<ConnId> = recipients.map(|(conn, _)| *conn).collect();
        for conn in recipients {
            let state = self.describe_storage(parts, conn).to_string();
            let frame = Frame::notification(Method::ControlStorage.name(), &state);
            parts.clients.send(&mut parts.cx, conn, frame.into_bytes());
        }
    }
}
