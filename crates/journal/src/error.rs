//! One error enum per operation. Each error names the operation and its object.

use crate::limits::{APPEND_BYTES_MAX, NAME_BYTES_MAX, SEQ_MAX, STREAMS_MAX};
use std::{error::Error, path::PathBuf, sync::Arc};

/// The error of the storage layer. Shared, because one failed transaction fails many appends.
pub type SharedError = Arc<dyn Error + Send + Sync>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    #[error("failed to open the journal `{path}`", path = path.display())]
    Unavailable {
        path: PathBuf,
        #[source]
        source: SharedError,
    },

    /// No server of the cell answers, or JetStream has no leader. A retry may succeed when the
    /// servers are back.
    #[error("failed to open the journal on {servers}")]
    Unreachable {
        servers: String,
        #[source]
        source: SharedError,
    },

    /// The servers of the cell refuse the journal. A retry fails until their configuration or ours
    /// changes.
    #[error("failed to open the journal on {servers}")]
    Refused {
        servers: String,
        #[source]
        source: SharedError,
    },

    /// The URL is malformed, or the directory cannot be used.
    #[error("failed to open the archive `{url}`")]
    Archive {
        url: String,
        #[source]
        source: SharedError,
    },

    /// The path contains a file that is not a journal. The file is not changed.
    #[error(
        "`{path}` is not a jackfield journal: move it aside or choose another path",
        path = path.display()
    )]
    NotAJournal { path: PathBuf },

    /// A later version of Jackfield wrote this file. The file is not changed.
    #[error(
        "journal `{path}` has format {actual}, this version reads formats up to {supported}: \
         use a newer jackfield, or move the file aside to start afresh",
        path = path.display()
    )]
    TooNew { path: PathBuf, actual: i64, supported: i64 },
}

/// Why an append, a claim or a deletion failed. Nothing was stored, except for `Unavailable`: then
/// the outcome is unknown, and the same append may be repeated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// Another writer owns this stream, or the stream was deleted. The caller must stop writing to
    /// it.
    #[error("stream `{stream}` is at epoch {actual}, the append has epoch {epoch}")]
    Fenced { stream: Arc<str>, epoch: u64, actual: u64 },

    #[error("stream `{stream}` ends at event {head}, the append starts at event {first}")]
    Gap { stream: Arc<str>, first: u64, head: u64 },

    #[error("the append to stream `{stream}` is malformed")]
    Invalid {
        stream: Arc<str>,
        #[source]
        source: InvalidAppend,
    },

    /// Only from a [`NonBlockingJournal`](crate::NonBlockingJournal): storage is slower than its
    /// input.
    #[error(
        "write queue is full: {waiting_bytes} bytes wait before the append to stream `{stream}`"
    )]
    Overloaded { stream: Arc<str>, waiting_bytes: usize },

    #[error("failed to append {count} events to stream `{stream}`")]
    Unavailable {
        stream: Arc<str>,
        count: u32,
        #[source]
        source: SharedError,
    },

    #[error("failed to claim stream `{stream}`")]
    ClaimFailed {
        stream: Arc<str>,
        #[source]
        source: SharedError,
    },

    #[error("failed to delete stream `{stream}`")]
    DeleteFailed {
        stream: Arc<str>,
        #[source]
        source: SharedError,
    },
}

impl AppendError {
    /// The kind of storage failure, as far as the error shows it.
    pub fn storage_fault(&self) -> JournalStorageFault {
        let (AppendError::Unavailable { source, .. }
        | AppendError::ClaimFailed { source, .. }
        | AppendError::DeleteFailed { source, .. }) = self
        else {
            return JournalStorageFault::Other;
        };
        if source.is::<JournalFileChanged>() {
            return JournalStorageFault::FileChanged;
        }
        match source.downcast_ref::<rusqlite::Error>().map(rusqlite::Error::sqlite_error_code) {
            Some(Some(rusqlite::ErrorCode::DiskFull)) => JournalStorageFault::DiskFull,
            Some(Some(rusqlite::ErrorCode::ReadOnly)) => JournalStorageFault::ReadOnly,
            _ => JournalStorageFault::Other,
        }
    }
}

/// Why storage fails, distinguished by remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalStorageFault {
    DiskFull,
    ReadOnly,
    /// A file of the journal was removed or replaced while it was in use.
    FileChanged,
    Other,
}

/// A file of the journal changed while it was in use. Commits would be lost at the next start, so
/// no append is acknowledged.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{path}` was {change} while it was in use", path = path.display())]
pub struct JournalFileChanged {
    pub path: PathBuf,
    pub change: FileChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileChange {
    #[error("removed")]
    Removed,
    #[error("replaced")]
    Replaced,
}

/// Why an append is malformed. This is an error of the caller; a retry fails as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAppend {
    #[error("it counts {count} events and carries {lines} lines")]
    Count { count: u32, lines: usize },
    #[error("it carries no event")]
    Empty,
    #[error("events are numbered from 1")]
    FirstIsZero,
    #[error("a stream holds at most {SEQ_MAX} events")]
    SeqTooLarge,
    #[error("an append carries at most {APPEND_BYTES_MAX} bytes")]
    TooLarge,
    #[error("a stream's name has 1 to {NAME_BYTES_MAX} bytes")]
    Name,
    #[error("a journal holds at most {STREAMS_MAX} streams over its life")]
    TooManyStreams,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The stored record differs from what was written. Nothing is skipped: every read that starts
    /// here fails with this error.
    #[error("stream `{stream}` is damaged at event {first}: {damage}")]
    Damaged { stream: Arc<str>, first: u64, damage: RecordDamage },

    /// Only from a [`NonBlockingJournal`](crate::NonBlockingJournal): the read queue is full.
    #[error("too many reads wait before the read of stream `{stream}`")]
    Overloaded { stream: Arc<str> },

    #[error("failed to read stream `{stream}` after event {after}")]
    Unavailable {
        stream: Arc<str>,
        after: u64,
        #[source]
        source: SharedError,
    },

    #[error("failed to list the streams")]
    ListFailed {
        #[source]
        source: SharedError,
    },
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Read(#[from] ReadError),

    #[error(transparent)]
    Append(#[from] AppendError),

    #[error("stream `{stream}` ends at event {head}, before {upto}")]
    Short { stream: Arc<str>, head: u64, upto: u64 },

    /// The caller's [`LineTranslator`](crate::LineTranslator) rejected this line.
    #[error("failed to translate event {seq} of stream `{stream}`: {reason}")]
    Untranslatable { stream: Arc<str>, seq: u64, reason: String },

    #[error("stream `{stream}` already exists")]
    AlreadyExists { stream: Arc<str> },

    /// Only from a [`NonBlockingJournal`](crate::NonBlockingJournal): it is being closed.
    #[error("the copy of stream `{stream}` was interrupted by shutdown")]
    Closing { stream: Arc<str> },

    /// Only from a [`NonBlockingJournal`](crate::NonBlockingJournal): the copy queue is full.
    #[error("too many copies wait before the copy of stream `{stream}`")]
    Overloaded { stream: Arc<str> },
}

/// How a stored record differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordDamage {
    #[error("the checksum of the record does not match")]
    Checksum,
    #[error("the record is missing")]
    Missing,
    #[error("the large event it refers to is missing or altered")]
    Blob,
    /// The record was moved to an archive, and none is configured here.
    #[error("it is in an archive: start with `--archive`, like the hosts that wrote it")]
    Archived,
    #[error("the archive segment that contains it is altered")]
    Segment,
}

/// Upkeep failed. Nothing is lost; it is retried later.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to run upkeep of the journal")]
pub struct UpkeepError {
    #[source]
    pub source: SharedError,
}

/// Archiving or expiring the logs of a cell failed. Nothing is lost; the logs grow until a retry
/// succeeds.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogMaintenanceError {
    #[error("failed to move cold events from the log to the archive")]
    Archive {
        #[source]
        source: SharedError,
    },

    #[error("failed to maintain the logs")]
    Log {
        #[source]
        source: SharedError,
    },
}
