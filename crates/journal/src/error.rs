//! What can go wrong, one enum per operation: each says what was attempted and on what.

use crate::record::{APPEND_BYTES_MAX, NAME_BYTES_MAX, SEQ_MAX, STREAMS_MAX};
use std::{error::Error, path::PathBuf, sync::Arc};

/// What the storage below said. Shared, because one failed transaction fails many appends.
pub type Cause = Arc<dyn Error + Send + Sync>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    #[error("failed to open the journal `{path}`", path = path.display())]
    Unavailable {
        path: PathBuf,
        #[source]
        source: Cause,
    },

    /// No server of the cell answers, or JetStream has no leader: it may succeed when the servers are back.
    #[error("failed to open the journal on {servers}")]
    Unreachable {
        servers: String,
        #[source]
        source: Cause,
    },

    /// The servers of the cell will not serve the journal until their configuration or ours has changed.
    #[error("failed to open the journal on {servers}")]
    Refused {
        servers: String,
        #[source]
        source: Cause,
    },

    /// It is not written as it should be, or the directory cannot be used.
    #[error("failed to open the archive `{url}`")]
    Archive {
        url: String,
        #[source]
        source: Cause,
    },

    /// Some other file lies where the journal should be. It is left as it is.
    #[error(
        "`{path}` is not a jackfield journal: move it aside or choose another path",
        path = path.display()
    )]
    NotAJournal { path: PathBuf },

    /// A later version wrote this file. It is left as it is.
    #[error(
        "journal `{path}` has format {found}, this version reads formats up to {known}: \
         use a newer jackfield, or move the file aside to start afresh",
        path = path.display()
    )]
    TooNew { path: PathBuf, found: i64, known: i64 },
}

/// Why an append, a claim or a deletion was not carried out. Nothing of it was stored, unless it
/// says `Unavailable`: then the outcome is unknown, and the same append may be tried again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// Another writer owns this stream, or it was deleted; we must stop writing to it.
    #[error("stream `{stream}` is at epoch {actual}, the append is of epoch {epoch}")]
    Fenced { stream: Arc<str>, epoch: u64, actual: u64 },

    #[error("stream `{stream}` ends at {head}, the append begins at {first}")]
    Gap { stream: Arc<str>, first: u64, head: u64 },

    #[error("the append to stream `{stream}` is malformed")]
    Invalid {
        stream: Arc<str>,
        #[source]
        source: Invalid,
    },

    /// Only from a [`Port`](crate::Port): storage is slower than what comes in.
    #[error("{waiting_bytes} bytes already wait to be written before stream `{stream}`")]
    Overloaded { stream: Arc<str>, waiting_bytes: usize },

    #[error("failed to append {count} events to stream `{stream}`")]
    Unavailable {
        stream: Arc<str>,
        count: u32,
        #[source]
        source: Cause,
    },

    #[error("failed to claim stream `{stream}`")]
    ClaimFailed {
        stream: Arc<str>,
        #[source]
        source: Cause,
    },

    #[error("failed to delete stream `{stream}`")]
    DeleteFailed {
        stream: Arc<str>,
        #[source]
        source: Cause,
    },
}

impl AppendError {
    /// What is wrong with the storage, as far as its error tells.
    pub fn storage_fault(&self) -> StorageFault {
        let (AppendError::Unavailable { source, .. }
        | AppendError::ClaimFailed { source, .. }
        | AppendError::DeleteFailed { source, .. }) = self
        else {
            return StorageFault::Other;
        };
        if source.is::<JournalFileChanged>() {
            return StorageFault::FileChanged;
        }
        match source.downcast_ref::<rusqlite::Error>().map(rusqlite::Error::sqlite_error_code) {
            Some(Some(rusqlite::ErrorCode::DiskFull)) => StorageFault::DiskFull,
            Some(Some(rusqlite::ErrorCode::ReadOnly)) => StorageFault::ReadOnly,
            _ => StorageFault::Other,
        }
    }
}

/// Why storage does not take events, where the way out depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFault {
    DiskFull,
    ReadOnly,
    /// A file of the journal was removed or replaced while it was in use.
    FileChanged,
    Other,
}

/// What is written from now on would be lost with the next start, so nothing is acknowledged.
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

/// An append that no journal would take, now or later: the caller's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it says {count} events and carries {lines} lines")]
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
    /// What was written at this place is not what is there now. Nothing is skipped: every read
    /// that starts here says so again.
    #[error("stream `{stream}` is damaged at event {first}: {damage}")]
    Damaged { stream: Arc<str>, first: u64, damage: Damage },

    /// Only from a [`Port`](crate::Port): too many reads wait already.
    #[error("too many reads wait before the one of stream `{stream}`")]
    Overloaded { stream: Arc<str> },

    #[error("failed to read stream `{stream}` after event {after}")]
    Unavailable {
        stream: Arc<str>,
        after: u64,
        #[source]
        source: Cause,
    },

    #[error("failed to list the streams")]
    ListFailed {
        #[source]
        source: Cause,
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

    /// The caller cannot translate this line.
    #[error("event {seq} of stream `{stream}` cannot be told again: {why}")]
    Untold { stream: Arc<str>, seq: u64, why: String },

    #[error("stream `{stream}` is there already")]
    Taken { stream: Arc<str> },

    /// Only from a [`Port`](crate::Port): it is being closed.
    #[error("the copy of stream `{stream}` was cut short")]
    Closing { stream: Arc<str> },

    /// Only from a [`Port`](crate::Port): too many copies wait already.
    #[error("too many copies wait before the one of stream `{stream}`")]
    Overloaded { stream: Arc<str> },
}

/// In what way a record is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the checksum of the record does not match")]
    Checksum,
    #[error("the record is missing")]
    Missing,
    #[error("the large event it refers to is missing or altered")]
    Blob,
    /// It is not in the log any more, and there is no archive to look in.
    #[error("it is in an archive: start with `--archive`, as the hosts that wrote it did")]
    Archived,
    #[error("the segment of the archive that has it is altered")]
    Segment,
}

/// Housekeeping failed; nothing is lost, it is tried again later.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to tidy the journal")]
pub struct UpkeepError {
    #[source]
    pub source: Cause,
}

/// Looking after the logs of a cell failed. Nothing is lost; the logs grow until it succeeds.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CareError {
    #[error("what is cold stays in the log, because the archive does not answer as it should")]
    Archive {
        #[source]
        source: Cause,
    },

    #[error("failed to look after the logs")]
    Log {
        #[source]
        source: Cause,
    },
}
