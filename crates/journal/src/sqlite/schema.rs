//! The SQLite file: its tables, its versions, and how a connection to it is set up.
//!
//! `record` is the log of the whole journal, in the order of the commits, never changed. Each takes
//! the `id` after the last one, which makes the log its own lock: two writers cannot both take it.
//! A claim is a record too (with no events), so is a deletion (of stream 0).
//!
//! `place` finds the records of one stream. It lags behind: it covers the log up to `mark.placed`,
//! and readers look through the short rest by themselves. So a commit touches one page of one
//! table, whether one stream is active or a thousand.
//!
//! The view `event` is for people: `SELECT * FROM event WHERE stream = 's-…' ORDER BY seq`. Lines
//! that are not JSON appear there as one text per record.

use super::upkeep::WAL_BYTES_MAX;
use crate::{
    error::{Cause, OpenError},
    journal::Durability,
    record::{SEQ_BITS, SEQ_MAX},
};
use rusqlite::{Connection, OpenFlags};
use std::{path::PathBuf, sync::Arc, time::Duration};

// Earlier versions can lose a commit when a checkpoint on one connection meets a write on another
// (the WAL-reset bug), and checkpoints on a connection of their own are what we do.
const _: () = assert!(3_051_003 <= rusqlite::ffi::SQLITE_VERSION_NUMBER);

/// "JKFD": tells our file from any other SQLite database.
pub(super) const APPLICATION_ID: i64 = 0x4A4B_4644;

/// What takes a file from version `n` to `n + 1`. A step may add, never rewrite what is there.
const STEPS: &[&str] = &[V1];

pub(super) const VERSION: i64 = STEPS.len().cast_signed() as i64;

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

// The view spells them out.
const _: () = assert!(SEQ_BITS == 36 && SEQ_MAX == 68_719_476_735);

/// How long a write waits for another process that writes to the same file.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Where the file is and how it is to be opened.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
}

/// What stands in the way of using a file.
enum Refusal {
    NotAJournal,
    TooNew(i64),
    Failed(Cause),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Refusal {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Refusal::NotAJournal,
            _ => Refusal::Failed(Arc::new(error)),
        }
    }
}

impl Place {
    /// Makes sure that the file is a journal of the present version, and returns a connection.
    pub(super) fn prepare(&self) -> Result<Connection, OpenError> {
        let path = self.path.clone();
        self.prepare_file().map_err(|refusal| match refusal {
            Refusal::NotAJournal => OpenError::NotAJournal { path },
            Refusal::TooNew(found) => OpenError::TooNew { path, found, known: VERSION },
            Refusal::Failed(source) => OpenError::Unavailable { path, source },
        })
    }

    fn prepare_file(&self) -> Result<Connection, Refusal> {
        jackfield_private_files::prepare_database(&self.path)
            .map_err(|error| Refusal::Failed(Arc::new(error)))?;
        let mut conn = self.open()?;
        if version(&conn)? < VERSION {
            migrate(&mut conn)?;
        }
        // Two processes may meet here on a new file; SQLite does not wait by itself then.
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            match conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
                Ok(_) => break,
                Err(error) if is_busy(&error) && std::time::Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.set_up(&conn)?;
        // What a burst left behind is given back to the file system with the next start of the WAL.
        conn.pragma_update(None, "journal_size_limit", 2 * WAL_BYTES_MAX.cast_signed() as i64)?;
        Ok(conn)
    }

    /// One more connection to a file that was prepared, for anything but appending.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let conn = self.open()?;
        self.set_up(&conn)?;
        // In KiB. They read in sequence: more of it would only be memory.
        conn.pragma_update(None, "cache_size", -512)?;
        Ok(conn)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        // Without the flag for URIs: a path is a path.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(PATIENCE)?;
        Ok(conn)
    }

    fn set_up(&self, conn: &Connection) -> rusqlite::Result<()> {
        conn.execute_batch(match self.durability {
            Durability::Process => "PRAGMA synchronous = NORMAL",
            // The second is for macOS, whose plain fsync stops at the drive's cache.
            Durability::Power => "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON",
        })?;
        // Checkpoints are `upkeep`'s work: on the connection that commits they would stall it.
        conn.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY")?;
        conn.set_prepared_statement_cache_capacity(32);
        Ok(())
    }
}

/// The file's version; 0 for one that is still empty.
fn version(conn: &Connection) -> Result<i64, Refusal> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version")?;
    let is_new = version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
    if !is_new && number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(Refusal::NotAJournal);
    }
    if VERSION < version {
        return Err(Refusal::TooNew(version));
    }
    Ok(version)
}

fn migrate(conn: &mut Connection) -> Result<(), Refusal> {
    let write = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Read again: another process may have been faster.
    let from = usize::try_from(version(&write)?).map_err(|_| Refusal::NotAJournal)?;
    for step in &STEPS[from..] {
        write.execute_batch(step)?;
    }
    write.pragma_update(None, "application_id", APPLICATION_ID)?;
    write.pragma_update(None, "user_version", VERSION)?;
    write.commit()?;
    Ok(())
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// The last record of the log; 0 if there is none.
pub(super) fn last_record(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT coalesce(max(id), 0) FROM record")?.query_row([], |row| row.get(0))
}

/// A stream's number and a seq as one integer, in the order in which they are read.
pub(super) fn place(stream: i64, seq: u64) -> i64 {
    stream << SEQ_BITS | seq.min(SEQ_MAX).cast_signed()
}
