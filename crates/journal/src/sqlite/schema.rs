//! The SQLite file: its tables, its versions, and the configuration of its connections.
//!
//! `record` is the log of the whole journal in commit order. Rows are never changed. Each record
//! takes the `id` after the last one, which makes the log its own lock: two writers cannot both
//! take an id. A claim is a record without events, and a deletion is a record of stream 0.
//!
//! `place` is the index of the records by stream and sequence number. It lags behind: it covers the
//! log up to `mark.placed`, and readers scan the short unindexed rest. So a commit touches one page
//! of one table, whether one stream is active or a thousand.
//!
//! `dead` lists deleted streams whose records are not removed yet.
//!
//! The view `event` is for users: `SELECT * FROM event WHERE stream = 's-…' ORDER BY seq`. Lines
//! that are not JSON appear there as one text per record.

use super::upkeep::WAL_BYTES_MAX;
use crate::{
    durability::DurabilityLevel,
    error::{OpenError, SharedError},
    limits::{SEQ_BITS, SEQ_MAX},
};
use rusqlite::{Connection, OpenFlags};
use std::{path::PathBuf, sync::Arc, time::Duration};

// Earlier versions can lose a commit when a checkpoint on one connection coincides with a write on
// another (the WAL-reset bug), and we checkpoint on a separate connection.
const _: () = assert!(3_051_003 <= rusqlite::ffi::SQLITE_VERSION_NUMBER);

/// "JKFD": distinguishes a journal from other SQLite databases.
pub(super) const APPLICATION_ID: i64 = 0x4A4B_4644;

/// Step `n` migrates a file from version `n` to `n + 1`. A step may add data, never rewrite it.
const MIGRATIONS: &[&str] = &[V1];

pub(super) const FORMAT_VERSION: i64 = MIGRATIONS.len().cast_signed() as i64;

const V1: &str = "
CREATE TABLE stream (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT NOT NULL UNIQUE,
    epoch        INTEGER NOT NULL,
    summary      BLOB NOT NULL DEFAULT x'',
    summary_upto INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE record (
    id           INTEGER PRIMARY KEY,
    stream       INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    first        INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    checksum     INTEGER NOT NULL,
    is_reference INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;

CREATE TABLE blob (
    record INTEGER PRIMARY KEY,
    body   BLOB NOT NULL
) STRICT;

CREATE TABLE place (
    at     INTEGER PRIMARY KEY,
    count  INTEGER NOT NULL,
    record INTEGER NOT NULL
) STRICT;

CREATE TABLE dead (
    stream    INTEGER PRIMARY KEY,
    tombstone INTEGER NOT NULL
) STRICT;

CREATE TABLE mark (
    only        INTEGER PRIMARY KEY CHECK (only = 1),
    placed      INTEGER NOT NULL,
    epoch_floor INTEGER NOT NULL
) STRICT;
INSERT INTO mark VALUES (1, 0, 0);

CREATE VIEW chunk (stream, record, epoch, first, count, is_reference, body) AS
    SELECT s.name, r.id, r.epoch, r.first, r.count, r.is_reference, r.body
      FROM stream s
      JOIN place p ON p.at BETWEEN s.number << 36 AND (s.number << 36) | 68719476735
      JOIN record r ON r.id = p.record
    UNION ALL
    SELECT s.name, r.id, r.epoch, r.first, r.count, r.is_reference, r.body
      FROM mark m
      JOIN record r ON m.placed < r.id AND 0 < r.count
      JOIN stream s ON s.number = r.stream;

CREATE VIEW event (stream, seq, epoch, json) AS
    SELECT c.stream, c.first + j.key, c.epoch, j.value
      FROM (SELECT *, '[' || replace(body, char(10), ',') || ']' AS list FROM chunk) c,
           json_each(iif(json_valid(c.list), c.list, json_array(CAST(c.body AS TEXT)))) j
     WHERE NOT c.is_reference
    UNION ALL
    SELECT c.stream, c.first, c.epoch, CAST(b.body AS TEXT)
      FROM chunk c JOIN blob b ON b.record = c.record
     WHERE c.is_reference;
";

// The view contains these numbers as literals.
const _: () = assert!(SEQ_BITS == 36 && SEQ_MAX == 68_719_476_735);

/// How long a write waits for another process that is writing to the same file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The path of the database and its durability.
pub(super) struct DatabaseFile {
    pub(super) path: PathBuf,
    pub(super) durability: DurabilityLevel,
}

/// Why a file cannot be used as a journal.
enum PrepareError {
    NotAJournal,
    TooNew(i64),
    Failed(SharedError),
}

impl From<rusqlite::Error> for PrepareError {
    fn from(error: rusqlite::Error) -> PrepareError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => PrepareError::NotAJournal,
            _ => PrepareError::Failed(Arc::new(error)),
        }
    }
}

impl DatabaseFile {
    /// Creates or migrates the journal, and returns a connection.
    pub(super) fn prepare(&self) -> Result<Connection, OpenError> {
        let path = self.path.clone();
        self.prepare_file().map_err(|refusal| match refusal {
            PrepareError::NotAJournal => OpenError::NotAJournal { path },
            PrepareError::TooNew(actual) => {
                OpenError::TooNew { path, actual, supported: FORMAT_VERSION }
            }
            PrepareError::Failed(source) => OpenError::Unavailable { path, source },
        })
    }

    fn prepare_file(&self) -> Result<Connection, PrepareError> {
        jackfield_private_files::prepare_database(&self.path)
            .map_err(|error| PrepareError::Failed(Arc::new(error)))?;
        let mut conn = self.open()?;
        if read_version(&conn)? < FORMAT_VERSION {
            migrate(&mut conn)?;
        }
        // Two processes may do this to a new file at once, and SQLite does not wait in this case.
        let deadline = std::time::Instant::now() + BUSY_TIMEOUT;
        loop {
            match conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
                Ok(_) => break,
                Err(error) if is_busy(&error) && std::time::Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.configure_connection(&conn)?;
        // The next restart of the WAL returns the space of a burst to the file system.
        conn.pragma_update(None, "journal_size_limit", 2 * WAL_BYTES_MAX.cast_signed() as i64)?;
        Ok(conn)
    }

    /// Opens another connection to a prepared file, for anything but appends.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let conn = self.open()?;
        self.configure_connection(&conn)?;
        // In KiB. These connections read sequentially and do not profit from a larger cache.
        conn.pragma_update(None, "cache_size", -512)?;
        Ok(conn)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        // Without `SQLITE_OPEN_URI`: a path is never interpreted as a URI.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        Ok(conn)
    }

    fn configure_connection(&self, conn: &Connection) -> rusqlite::Result<()> {
        conn.execute_batch(match self.durability {
            DurabilityLevel::Process => "PRAGMA synchronous = NORMAL",
            // `fullfsync` is for macOS, where a plain fsync only reaches the cache of the drive.
            DurabilityLevel::Power => "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON",
        })?;
        // Checkpoints are part of upkeep: on the connection that commits they would delay it.
        conn.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY")?;
        conn.set_prepared_statement_cache_capacity(32);
        Ok(())
    }
}

/// The format version of the file; 0 if it is empty.
fn read_version(conn: &Connection) -> Result<i64, PrepareError> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version")?;
    let is_new = version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
    if !is_new && number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(PrepareError::NotAJournal);
    }
    if FORMAT_VERSION < version {
        return Err(PrepareError::TooNew(version));
    }
    Ok(version)
}

fn migrate(conn: &mut Connection) -> Result<(), PrepareError> {
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Read again: another process may have migrated the file in the meantime.
    let from =
        usize::try_from(read_version(&transaction)?).map_err(|_| PrepareError::NotAJournal)?;
    for step in &MIGRATIONS[from..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
    transaction.commit()?;
    Ok(())
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// The id of the last record; 0 if the log is empty.
pub(super) fn last_record(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT coalesce(max(id), 0) FROM record")?.query_row([], |row| row.get(0))
}

/// The key of `place`: a stream number and a sequence number in one integer that sorts in read
/// order.
pub(super) fn index_key(stream: i64, seq: u64) -> i64 {
    stream << SEQ_BITS | seq.min(SEQ_MAX).cast_signed()
}
