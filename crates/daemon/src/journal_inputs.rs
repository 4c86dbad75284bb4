//! Converts results of the journal to inputs of the hub.

use jackfield_events::{Seq, SessionEvent, SessionId};
use jackfield_hub::{AppendFailure, ConnId, Input, PageReadFailure, StorageFault};
use jackfield_journal::{AppendError, JournalStorageFault, ReadError, StoredEvent};
use jackfield_protocol::chain;

/// What a read of the journal is for. The journal returns it as a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalReader {
    /// The hub itself.
    Hub,
    Subscriber(ConnId),
    /// A page of a log, by its number.
    Page(u64),
}

/// Tokens of pages are above those of connections, whose ids start at 1.
const PAGE_TOKENS: u64 = 1 << 63;

impl JournalReader {
    pub(crate) fn to_token(self) -> u64 {
        match self {
            JournalReader::Hub => 0,
            JournalReader::Subscriber(ConnId(conn)) => conn,
            JournalReader::Page(page) => PAGE_TOKENS | page,
        }
    }

    fn from_token(token: u64) -> JournalReader {
        match token {
            0 => JournalReader::Hub,
            conn if conn < PAGE_TOKENS => JournalReader::Subscriber(ConnId(conn)),
            page => JournalReader::Page(page & !PAGE_TOKENS),
        }
    }

    /// The input for a read that failed; if `damaged`, every retry fails, too.
    fn failure_input(self, session: SessionId, after: Seq, why: String, damaged: bool) -> Input {
        match self {
            JournalReader::Hub => Input::RecallFailed { session, why },
            JournalReader::Subscriber(conn) => {
                Input::ReadFailed { conn, session, after, why, damaged }
            }
            JournalReader::Page(page) => {
                let events = Err(PageReadFailure { why, damaged });
                Input::PageRead { page, events }
            }
        }
    }
}

/// Decodes what the journal read. An invalid line fails the read: subscribers must not miss an event.
/// A page ends before it, so that the next read of the page starts there.
pub(crate) fn to_read_input(
    token: u64,
    session: SessionId,
    after: u64,
    lines: &[StoredEvent],
) -> Input {
    let (reader, after) = (JournalReader::from_token(token), Seq(after));
    let (mut events, mut invalid) = (Vec::with_capacity(lines.len()), None);
    for stored in lines {
        match SessionEvent::decode(Seq(stored.seq), &stored.line) {
            Ok(event) => events.push(event),
            Err(error) => {
                invalid = Some(error);
                break;
            }
        }
    }
    match (reader, invalid) {
        (JournalReader::Page(page), None) => Input::PageRead { page, events: Ok(events) },
        (JournalReader::Page(page), Some(_)) if !events.is_empty() => {
            Input::PageRead { page, events: Ok(events) }
        }
        (JournalReader::Hub, None) => Input::Recalled { session, after, events },
        (JournalReader::Subscriber(conn), None) => Input::Read { conn, session, after, events },
        (_, Some(error)) => {
            tracing::error!(%session, after = after.0, why = error.why, "failed to decode event");
            reader.failure_input(session, after, error.why, true)
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
    let is_damaged = matches!(error, ReadError::Damaged { .. });
    JournalReader::from_token(token).failure_input(session, Seq(after), why, is_damaged)
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
