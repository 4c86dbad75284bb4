//! [`Journal`]: the interface of all backends.

use crate::{
    durability::{DurabilityLevel, LostRecords},
    error::{AppendError, OpenError, ReadError, UpkeepError},
    memory::MemoryJournal,
    nats::{CellAddress, NatsJournal, StreamArchiver, StreamOwnership},
    record::{AppendRequest, StoredEvent},
    sqlite::SqliteJournal,
    stream::{StreamClaim, StreamInfo},
};
use std::{path::Path, sync::Arc};

/// Named streams of lines. Clones share one store.
#[derive(Clone)]
pub struct Journal {
    backend: JournalBackend,
}

#[derive(Clone)]
enum JournalBackend {
    Memory(Arc<MemoryJournal>),
    Sqlite(Arc<SqliteJournal>),
    Nats(Arc<NatsJournal>),
}

impl Journal {
    /// A journal that is lost when its last clone is dropped.
    pub fn in_memory() -> Journal {
        Journal { backend: JournalBackend::Memory(Arc::default()) }
    }

    /// Opens the journal in this SQLite file. Creates the file, readable only by its owner, if it
    /// does not exist.
    pub fn open(path: &Path, durability: DurabilityLevel) -> Result<Journal, OpenError> {
        Ok(Journal {
            backend: JournalBackend::Sqlite(Arc::new(SqliteJournal::open(path, durability)?)),
        })
    }

    /// Opens the journal of a cell of NATS servers. Creates the JetStream streams that are missing.
    pub fn connect(address: CellAddress) -> Result<Journal, OpenError> {
        Ok(Journal { backend: JournalBackend::Nats(Arc::new(NatsJournal::open(address)?)) })
    }

    /// Records that were acknowledged before this journal was opened and are missing now, because
    /// the WAL was removed or truncated, or because an older copy replaced the file.
    pub fn lost_records(&self) -> Option<LostRecords> {
        match &self.backend {
            JournalBackend::Sqlite(it) => it.lost_records(),
            JournalBackend::Memory(_) | JournalBackend::Nats(_) => None,
        }
    }

    /// Adopts and releases streams of a journal that many hosts share. `None` for a local journal.
    pub fn stream_ownership(&self) -> Option<StreamOwnership> {
        self.as_nats().cloned().map(StreamOwnership::new)
    }

    /// Archives and expires streams of a journal that many hosts share. `None` for a local journal.
    pub fn archiver(&self) -> Option<StreamArchiver> {
        self.as_nats().cloned().map(StreamArchiver::new)
    }

    /// Makes the caller the only writer of the stream. Creates the stream if it does not exist.
    /// Waits for a commit in progress.
    pub fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        match &self.backend {
            JournalBackend::Memory(it) => it.claim_stream(stream),
            JournalBackend::Sqlite(it) => it.claim_stream(stream),
            JournalBackend::Nats(it) => it.claim_stream(stream),
        }
    }

    /// Appends a batch in one transaction, on the calling thread. Each append is checked
    /// separately: a fenced append does not affect the others. `Ok` contains the new head of the
    /// stream.
    ///
    /// Events that are already stored are skipped, so an append whose outcome is unknown may be
    /// repeated with the same epoch.
    pub fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        match &self.backend {
            JournalBackend::Memory(it) => it.append_batch(batch),
            JournalBackend::Sqlite(it) => it.append_batch(batch),
            JournalBackend::Nats(it) => it.append_batch(batch),
        }
    }

    /// Like [`append_batch`](Journal::append_batch), but does nothing and returns `None` if the
    /// append would have to wait for another thread, another process or the disk.
    pub(crate) fn try_append_batch(
        &self,
        batch: &[AppendRequest],
    ) -> Option<Vec<Result<u64, AppendError>>> {
        match &self.backend {
            JournalBackend::Memory(it) => Some(it.append_batch(batch)),
            JournalBackend::Sqlite(it) => it.try_append_batch(batch),
            // A request to a server always waits.
            JournalBackend::Nats(_) => None,
        }
    }

    /// Reads the events after this sequence number, in order: at least one if one exists, then as
    /// many as both limits allow. An empty result means the end of the stream, or that the stream
    /// does not exist.
    ///
    /// The result ends before a damaged record; the read that starts at that record fails.
    pub fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        match &self.backend {
            JournalBackend::Memory(it) => Ok(it.read_events(stream, after, events_max, bytes_max)),
            JournalBackend::Sqlite(it) => it.read_events(stream, after, events_max, bytes_max),
            JournalBackend::Nats(it) => it.read_events(stream, after, events_max, bytes_max),
        }
    }

    /// Lists all streams, ordered by name.
    pub fn list_streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        let mut streams = Vec::new();
        self.for_each_stream(|it| streams.push(it))?;
        Ok(streams)
    }

    /// Visits all streams, ordered by name, without holding all summaries in memory. `visit` must
    /// not use the journal.
    pub fn for_each_stream(&self, mut visit: impl FnMut(StreamInfo)) -> Result<(), ReadError> {
        match &self.backend {
            JournalBackend::Memory(it) => it.list_streams().into_iter().for_each(visit),
            JournalBackend::Sqlite(it) => it.for_each_stream(&mut visit)?,
            JournalBackend::Nats(it) => it.list_streams()?.into_iter().for_each(visit),
        }
        Ok(())
    }

    /// Deletes a stream and its events. Its writer is fenced.
    pub fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        match &self.backend {
            JournalBackend::Memory(it) => it.delete_stream(stream),
            JournalBackend::Sqlite(it) => it.delete_stream(stream),
            JournalBackend::Nats(it) => it.delete_stream(stream),
        }
    }

    /// Indexes records, removes deleted ones and checkpoints the WAL. Due every few thousand
    /// appends; doing it separately keeps each append fast. A
    /// [`NonBlockingJournal`](crate::NonBlockingJournal) calls it on a thread of its own.
    pub fn run_upkeep(&self) -> Result<(), UpkeepError> {
        match &self.backend {
            JournalBackend::Memory(_) | JournalBackend::Nats(_) => Ok(()),
            JournalBackend::Sqlite(it) => it.run_upkeep(),
        }
    }

    pub(crate) fn as_nats(&self) -> Option<&Arc<NatsJournal>> {
        match &self.backend {
            JournalBackend::Nats(it) => Some(it),
            JournalBackend::Memory(_) | JournalBackend::Sqlite(_) => None,
        }
    }

    pub(crate) fn is_upkeep_due(&self) -> bool {
        match &self.backend {
            JournalBackend::Memory(_) | JournalBackend::Nats(_) => false,
            JournalBackend::Sqlite(it) => it.is_upkeep_due(),
        }
    }
}
