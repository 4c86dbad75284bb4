//! Converts results of the journal to inputs of the hub.

use jackfield_events::{Seq, SessionEvent, SessionId};
use jackfield_hub::{AppendFailure, ConnId, Input, StorageFault};
use jackfield_journal::{AppendError, JournalStorageFault, ReadError, StoredEvent};
use jackfield_protocol::chain;

/// The read token of the hub itself. Connection ids start at 1.
pub(crate) const HUB_READ_TOKEN: u64 = 0;

/// Decodes what the journal read; an invalid line fails the read, since events must not be skipped.
pub(crate) fn to_read_input(
    token: u64,
    session: SessionId,
    after: u64,
    lines: &[StoredEvent],
) -> Input {
    let (conn, after) = (ConnId(token), Seq(after));
    let events = lines.iter().map(|it| SessionEvent::decode(Seq(it.seq), &it.line));
    match events.collect::<Result<Vec<_>, _>>() {
        Ok(events) if token == HUB_READ_TOKEN => Input::Recalled { session, after, events },
        Ok(events) => Input::Read { conn, session, after, events },
        Err(error) => {
            tracing::error!(%session, after = after.0, why = error.why, "failed to decode event");
            if token == HUB_READ_TOKEN {
                return Input::RecallFailed { session, why: error.why };
            }
            Input::ReadFailed { conn, session, after, why: error.why, damaged: true }
        }
    }
}

/// The input for a failed read.
pub(crate) fn to_read_failure(
    token: u64,
    session: SessionId,
    after: u64,
    error: &ReadError,
) -> Input {
    let why = chain(error);
    tracing::error!(%session, after, why, "failed to read the journal");
    if token == HUB_READ_TOKEN {
        return Input::RecallFailed { session, why };
    }
    let (conn, after) = (ConnId(token), Seq(after));
    let is_damaged = matches!(error, ReadError::Damaged { .. });
    Input::ReadFailed { conn, session, after, why, damaged: is_damaged }
}

/// Why the hub must stop or retry an append.
pub(crate) fn to_append_failure(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Fenced { .. } => AppendFailure::Fenced,
        // A retry is safe even where it cannot help: stored events are skipped.
        _ => AppendFailure::Unavailable { fault: storage_fault(error), why: chain(error) },
    }
}

fn storage_fault(error: &AppendError) -> StorageFault {
    match error.storage_fault() {
        JournalStorageFault::DiskFull => StorageFault::DiskFull,
        JournalStorageFault::ReadOnly => StorageFault::ReadOnly,
        JournalStorageFault::FileChanged => StorageFault::FileChanged,
        JournalStorageFault::Other => StorageFault::Other,
    }
}
