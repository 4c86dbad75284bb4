//! One SQLite file: a connection that writes, some that read, one that keeps the WAL short.

mod acknowledged;
mod claim;
#[cfg(test)]
mod file_tests;
mod open_files;
mod read;
mod schema;
mod snapshot;
mod tail;
#[cfg(test)]
mod tests;
mod upkeep;
mod write;

use crate::{
    error::{AppendError, Cause, OpenError, ReadError, UpkeepError},
    journal::{Claim, Durability, LostRecords, Stream},
    record::{Answer, Append, Event, check_name},
};
use acknowledged::AcknowledgedRecord;
use open_files::{OpenFiles, wal_path};
use read::Failure;
use rusqlite::Connection;
use schema::{Place, last_record};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};
use tail::{SharedTail, Tail};
use upkeep::{More, UNPLACED_MAX, WAL_BYTES_MAX};
use write::{Wait, Writer};

/// Idle connections kept for reading; there is rarely more than one reader at a time.
const READERS_MAX: usize = 4;

/// How many times over upkeep may be due before an append does it, because nobody else does.
const NEGLECT_MAX: usize = 8;

pub(crate) struct Sqlite {
    place: Place,
    writer: Mutex<Writer>,
    tail: Arc<Mutex<Tail>>,
    readers: Mutex<Vec<Connection>>,
    keeper: Mutex<Connection>,
    upkeep_is_due: AtomicBool,
    /// The WAL is being copied: the file system may hold up writes to it.
    is_copying: AtomicBool,
    files: OpenFiles,
    acknowledged: AcknowledgedRecord,
    lost: Option<LostRecords>,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Sqlite, OpenError> {
        let place = Place { path: path.to_owned(), durability };
        let tail = Arc::<Mutex<Tail>>::default();
        let mut writer = Writer::new(place.prepare()?, SharedTail::new(tail.clone()));
        let unavailable = |source| OpenError::Unavailable { path: path.to_owned(), source };
        let keeper = place.connect().map_err(|it| unavailable(Arc::new(it)))?;
        // The last process may have ended before it emptied the WAL.
        let wal_bytes = std::fs::metadata(wal_path(path)).map_or(0, |it| it.len());
        writer.set_wal_bytes(usize::try_from(wal_bytes).unwrap_or(usize::MAX));
        let last = last_record(writer.conn()).map_err(|it| unavailable(Arc::new(it)))?;
        let files = OpenFiles::of(path).map_err(|it| unavailable(Arc::new(it)))?;
        let acknowledged =
            AcknowledgedRecord::open(path).map_err(|it| unavailable(Arc::new(it)))?;
        let journal = Sqlite {
            place,
            writer: Mutex::new(writer),
            tail,
            readers: Mutex::default(),
            keeper: Mutex::new(keeper),
            // The log may have a rest to be placed, the dead may wait to be swept.
            upkeep_is_due: AtomicBool::new(true),
            is_copying: AtomicBool::new(false),
            files,
            lost: acknowledged.missing_after(last),
            acknowledged,
        };
        Ok(journal)
    }

    pub(crate) fn claim(&self, stream: &str) -> Result<Claim, AppendError> {
        let invalid = |source| AppendError::Invalid { stream: stream.into(), source };
        check_name(stream).map_err(invalid)?;
        let mut writer = self.lock_writer();
        let claimed = writer.claim(stream);
        let confirmed = self.confirm(&writer);
        let failed = |source| AppendError::ClaimFailed { stream: stream.into(), source };
        let claim = claimed.map_err(|it| failed(Arc::new(it)))?.map_err(invalid)?;
        confirmed.map(|()| claim).map_err(failed)
    }

    pub(crate) fn lost_records(&self) -> Option<LostRecords> {
        self.lost
    }

    pub(crate) fn append(&self, batch: &[Append]) -> Vec<Result<u64, AppendError>> {
        let mut writer = self.lock_writer();
        let outcomes = writer.append(batch, Wait::Yes).expect("it waits");
        let outcomes = self.confirm_all(&writer, batch, outcomes);
        let is_neglected = UNPLACED_MAX * NEGLECT_MAX as u64 <= writer.unplaced()
            || WAL_BYTES_MAX * NEGLECT_MAX <= writer.wal_bytes();
        drop(writer);
        if is_neglected {
            // The append is done, whatever becomes of this; if it failed, it is tried again soon.
            let _ = self.upkeep();
        }
        outcomes
    }

    pub(crate) fn try_append(&self, batch: &[Append]) -> Option<Vec<Result<u64, AppendError>>> {
        if self.place.durability == Durability::Power || self.is_copying.load(Ordering::Relaxed) {
            return None;
        }
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISONED}"),
        };
        let outcomes = writer.append(batch, Wait::No)?;
        Some(self.confirm_all(&writer, batch, outcomes))
    }

    pub(crate) fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let answer = Answer::new(after, events_max, bytes_max);
        let glimpse = self.tail.lock().expect(POISONED).glimpse(stream, answer.next());
        let read = self.with_reader(|conn| read::read(conn, stream, glimpse, answer));
        read.map_err(|failure| match failure {
            Failure::Damaged { first, damage } => {
                ReadError::Damaged { stream: stream.into(), first, damage }
            }
            Failure::Sqlite(error) => {
                ReadError::Unavailable { stream: stream.into(), after, source: Arc::new(error) }
            }
        })
    }

    pub(crate) fn each_stream(&self, take: &mut dyn FnMut(Stream)) -> Result<(), ReadError> {
        self.with_reader(|conn| read::each_stream(conn, take))
            .map_err(|error| ReadError::ListFailed { source: Arc::new(error) })
    }

    pub(crate) fn delete(&self, stream: &str) -> Result<(), AppendError> {
        check_name(stream)
            .map_err(|source| AppendError::Invalid { stream: stream.into(), source })?;
        let mut writer = self.lock_writer();
        let deleted = writer.delete(stream);
        let confirmed = self.confirm(&writer);
        drop(writer);
        self.upkeep_is_due.store(true, Ordering::Relaxed);
        let failed = |source| AppendError::DeleteFailed { stream: stream.into(), source };
        deleted.map_err(|it| failed(Arc::new(it)))?;
        confirmed.map_err(failed)
    }

    pub(crate) fn upkeep(&self) -> Result<(), UpkeepError> {
        self.keep_up().map_err(|error| UpkeepError { source: Arc::new(error) })
    }

    fn keep_up(&self) -> rusqlite::Result<()> {
        let keeper = self.keeper.lock().expect(POISONED);
        self.upkeep_is_due.store(false, Ordering::Relaxed);
        if WAL_BYTES_MAX <= self.lock_writer().wal_bytes() {
            self.is_copying.store(true, Ordering::Relaxed);
            self.lock_writer().let_go();
            let copied = upkeep::copy_wal(&keeper)
                .and_then(|()| upkeep::restart_wal(&keeper, &mut self.lock_writer()));
            self.is_copying.store(false, Ordering::Relaxed);
            copied?;
        }
        // The writer is locked for one turn at a time: an append may come in between.
        while upkeep::place_some(&mut self.lock_writer())? == More::Yes {}
        while upkeep::sweep_some(&mut self.lock_writer())? == More::Yes {}
        Ok(())
    }

    pub(crate) fn upkeep_is_due(&self) -> bool {
        self.upkeep_is_due.load(Ordering::Relaxed)
    }

    /// After a commit: an error if it went to files that the next start will not find.
    fn confirm(&self, writer: &Writer) -> Result<(), Cause> {
        self.files.check().map_err(|it| -> Cause { Arc::new(it) })?;
        self.acknowledged.set(writer.last());
        self.note_upkeep(writer);
        Ok(())
    }

    /// The same for a batch: what was stored in such files is not acknowledged.
    fn confirm_all(
        &self,
        writer: &Writer,
        batch: &[Append],
        outcomes: Vec<Result<u64, AppendError>>,
    ) -> Vec<Result<u64, AppendError>> {
        if !outcomes.iter().any(Result::is_ok) {
            return outcomes;
        }
        let Err(source) = self.confirm(writer) else { return outcomes };
        let refuse = |(append, outcome): (&Append, Result<u64, AppendError>)| {
            let (stream, count) = (append.stream.clone(), append.count);
            outcome.and(Err(AppendError::Unavailable { stream, count, source: source.clone() }))
        };
        batch.iter().zip(outcomes).map(refuse).collect()
    }

    fn note_upkeep(&self, writer: &Writer) {
        if UNPLACED_MAX <= writer.unplaced() || WAL_BYTES_MAX <= writer.wal_bytes() {
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
            None => self.place.connect()?,
        };
        // A connection that failed is not used again.
        let done = work(&mut conn)?;
        let mut readers = self.readers.lock().expect(POISONED);
        if readers.len() < READERS_MAX {
            readers.push(conn);
        }
        Ok(done)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect(POISONED)
    }
}

const POISONED: &str = "nothing panics while it holds a connection";
