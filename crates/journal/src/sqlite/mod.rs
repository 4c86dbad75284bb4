//! The journal in one SQLite file: one connection writes, some read, one checkpoints the WAL.

mod acknowledged_record;
#[cfg(test)]
mod file_tests;
mod open_files;
mod read;
mod read_snapshot;
mod record_insert;
mod schema;
mod stream_lifecycle;
#[cfg(test)]
mod tests;
mod unindexed_tail;
mod upkeep;
mod writer;

use crate::{
    durability::{DurabilityLevel, LostRecords},
    error::{AppendError, OpenError, ReadError, SharedError, UpkeepError},
    record::{AppendRequest, EventBatch, StoredEvent, validate_name},
    stream::{StreamClaim, StreamInfo},
};
use acknowledged_record::AcknowledgedRecord;
use open_files::{OpenFiles, wal_path};
use read::ReadFailure;
use rusqlite::Connection;
use schema::{DatabaseFile, last_record};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};
use unindexed_tail::{TailUpdates, UnindexedTail};
use upkeep::{TurnResult, UNINDEXED_MAX, WAL_BYTES_MAX};
use writer::{BusyPolicy, SqliteWriter};

/// The maximum number of idle read connections. There is rarely more than one reader at a time.
const READERS_MAX: usize = 4;

/// By which factor the upkeep limits may be exceeded before an append runs the upkeep itself.
const OVERDUE_FACTOR: usize = 8;

pub(crate) struct SqliteJournal {
    database: DatabaseFile,
    writer: Mutex<SqliteWriter>,
    tail: Arc<Mutex<UnindexedTail>>,
    readers: Mutex<Vec<Connection>>,
    upkeep_conn: Mutex<Connection>,
    upkeep_is_due: AtomicBool,
    /// The WAL is being checkpointed: the file system may delay writes to it.
    is_checkpointing: AtomicBool,
    files: OpenFiles,
    acknowledged: AcknowledgedRecord,
    lost: Option<LostRecords>,
}

impl SqliteJournal {
    pub(crate) fn open(
        path: &Path,
        durability: DurabilityLevel,
    ) -> Result<SqliteJournal, OpenError> {
        let database = DatabaseFile { path: path.to_owned(), durability };
        let tail = Arc::<Mutex<UnindexedTail>>::default();
        let mut writer = SqliteWriter::new(database.prepare()?, TailUpdates::new(tail.clone()));
        let unavailable = |source| OpenError::Unavailable { path: path.to_owned(), source };
        let upkeep_conn = database.connect().map_err(|it| unavailable(Arc::new(it)))?;
        // The last process may have ended before it checkpointed the WAL.
        let wal_bytes = std::fs::metadata(wal_path(path)).map_or(0, |it| it.len());
        writer.set_wal_bytes(usize::try_from(wal_bytes).unwrap_or(usize::MAX));
        let last = last_record(writer.conn()).map_err(|it| unavailable(Arc::new(it)))?;
        let files = OpenFiles::new(path).map_err(|it| unavailable(Arc::new(it)))?;
        let acknowledged =
            AcknowledgedRecord::open(path).map_err(|it| unavailable(Arc::new(it)))?;
        let journal = SqliteJournal {
            database,
            writer: Mutex::new(writer),
            tail,
            readers: Mutex::default(),
            upkeep_conn: Mutex::new(upkeep_conn),
            // The log may have unindexed records, and deleted streams may have records.
            upkeep_is_due: AtomicBool::new(true),
            is_checkpointing: AtomicBool::new(false),
            files,
            lost: acknowledged.lost_records_after(last),
            acknowledged,
        };
        Ok(journal)
    }

    pub(crate) fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        let invalid = |source| AppendError::Invalid { stream: stream.into(), source };
        validate_name(stream).map_err(invalid)?;
        let mut writer = self.lock_writer();
        let claimed = writer.claim_stream(stream);
        let confirmed = self.verify_commit(&writer);
        let failed = |source| AppendError::ClaimFailed { stream: stream.into(), source };
        let claim = claimed.map_err(|it| failed(Arc::new(it)))?.map_err(invalid)?;
        confirmed.map(|()| claim).map_err(failed)
    }

    pub(crate) fn lost_records(&self) -> Option<LostRecords> {
        self.lost
    }

    pub(crate) fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        let mut writer = self.lock_writer();
        let outcomes = writer.append_batch(batch, BusyPolicy::Wait).expect("it waits");
        let outcomes = self.verify_batch(&writer, batch, outcomes);
        let is_overdue = UNINDEXED_MAX * OVERDUE_FACTOR as u64 <= writer.unindexed_count()
            || WAL_BYTES_MAX * OVERDUE_FACTOR <= writer.wal_bytes();
        drop(writer);
        if is_overdue {
            // The append has succeeded in any case; failed upkeep is retried soon.
            let _ = self.run_upkeep();
        }
        outcomes
    }

    pub(crate) fn try_append_batch(
        &self,
        batch: &[AppendRequest],
    ) -> Option<Vec<Result<u64, AppendError>>> {
        if self.database.durability == DurabilityLevel::Power
            || self.is_checkpointing.load(Ordering::Relaxed)
        {
            return None;
        }
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISONED}"),
        };
        let outcomes = writer.append_batch(batch, BusyPolicy::Fail)?;
        Some(self.verify_batch(&writer, batch, outcomes))
    }

    pub(crate) fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let batch = EventBatch::new(after, events_max, bytes_max);
        let stream_tail = self.tail.lock().expect(POISONED).stream_tail(stream, batch.next_seq());
        let read = self.with_reader(|conn| read::read_events(conn, stream, stream_tail, batch));
        read.map_err(|failure| match failure {
            ReadFailure::Damaged { first, damage } => {
                ReadError::Damaged { stream: stream.into(), first, damage }
            }
            ReadFailure::Sqlite(error) => {
                ReadError::Unavailable { stream: stream.into(), after, source: Arc::new(error) }
            }
        })
    }

    pub(crate) fn for_each_stream(
        &self,
        visit: &mut dyn FnMut(StreamInfo),
    ) -> Result<(), ReadError> {
        self.with_reader(|conn| read::for_each_stream(conn, visit))
            .map_err(|error| ReadError::ListFailed { source: Arc::new(error) })
    }

    pub(crate) fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        validate_name(stream)
            .map_err(|source| AppendError::Invalid { stream: stream.into(), source })?;
        let mut writer = self.lock_writer();
        let deleted = writer.delete_stream(stream);
        let confirmed = self.verify_commit(&writer);
        drop(writer);
        self.upkeep_is_due.store(true, Ordering::Relaxed);
        let failed = |source| AppendError::DeleteFailed { stream: stream.into(), source };
        deleted.map_err(|it| failed(Arc::new(it)))?;
        confirmed.map_err(failed)
    }

    pub(crate) fn run_upkeep(&self) -> Result<(), UpkeepError> {
        self.try_run_upkeep().map_err(|error| UpkeepError { source: Arc::new(error) })
    }

    fn try_run_upkeep(&self) -> rusqlite::Result<()> {
        let upkeep_conn = self.upkeep_conn.lock().expect(POISONED);
        self.upkeep_is_due.store(false, Ordering::Relaxed);
        if WAL_BYTES_MAX <= self.lock_writer().wal_bytes() {
            self.is_checkpointing.store(true, Ordering::Relaxed);
            self.lock_writer().close_snapshot();
            let checkpointed = upkeep::checkpoint_wal(&upkeep_conn)
                .and_then(|()| upkeep::restart_wal(&upkeep_conn, &mut self.lock_writer()));
            self.is_checkpointing.store(false, Ordering::Relaxed);
            checkpointed?;
        }
        // The writer is locked for one turn at a time, so that appends can run in between.
        while upkeep::index_records(&mut self.lock_writer())? == TurnResult::MoreWork {}
        while upkeep::sweep_deleted_records(&mut self.lock_writer())? == TurnResult::MoreWork {}
        Ok(())
    }

    pub(crate) fn is_upkeep_due(&self) -> bool {
        self.upkeep_is_due.load(Ordering::Relaxed)
    }

    /// Called after a commit. Fails if the commit went to files that the next start will not find.
    fn verify_commit(&self, writer: &SqliteWriter) -> Result<(), SharedError> {
        self.files.check_paths().map_err(|it| -> SharedError { Arc::new(it) })?;
        self.acknowledged.store_record(writer.last_record());
        self.update_upkeep_due(writer);
        Ok(())
    }

    /// Like [`verify_commit`](Self::verify_commit) for a batch: appends to such files are not
    /// acknowledged.
    fn verify_batch(
        &self,
        writer: &SqliteWriter,
        batch: &[AppendRequest],
        outcomes: Vec<Result<u64, AppendError>>,
    ) -> Vec<Result<u64, AppendError>> {
        if !outcomes.iter().any(Result::is_ok) {
            return outcomes;
        }
        let Err(source) = self.verify_commit(writer) else { return outcomes };
        let refuse = |(append, outcome): (&AppendRequest, Result<u64, AppendError>)| {
            let (stream, count) = (append.stream.clone(), append.count);
            outcome.and(Err(AppendError::Unavailable { stream, count, source: source.clone() }))
        };
        batch.iter().zip(outcomes).map(refuse).collect()
    }

    fn update_upkeep_due(&self, writer: &SqliteWriter) {
        if UNINDEXED_MAX <= writer.unindexed_count() || WAL_BYTES_MAX <= writer.wal_bytes() {
            self.upkeep_is_due.store(true, Ordering::Relaxed);
        }
    }

    fn with_reader<T, E: From<rusqlite::Error>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.readers.lock().expect(POISONED).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => self.database.connect()?,
        };
        // A connection that failed is not reused.
        let done = work(&mut conn)?;
        let mut readers = self.readers.lock().expect(POISONED);
        if readers.len() < READERS_MAX {
            readers.push(conn);
        }
        Ok(done)
    }

    fn lock_writer(&self) -> MutexGuard<'_, SqliteWriter> {
        self.writer.lock().expect(POISONED)
    }
}

const POISONED: &str = "nothing panics while it holds a connection";
