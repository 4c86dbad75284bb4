//! A read snapshot that the writing connection keeps open from one small commit to the next.
//!
//! A commit takes a read lock on the WAL, moves its read mark, takes the write lock, and releases
//! both: six system calls, four of them for the read lock. A connection with an open snapshot
//! already holds the read lock. Its own commits move the snapshot forward. If another connection
//! has written, SQLite refuses to write on the snapshot, and it is opened again.

use rusqlite::{Connection, ErrorCode, ffi};

/// The snapshot stays open as long as the second row of this statement has not been requested.
const HOLD_SNAPSHOT_SQL: &str = "SELECT only FROM mark";

#[derive(Debug, Default)]
pub(super) struct ReadSnapshot {
    is_open: bool,
}

impl ReadSnapshot {
    pub(super) fn ensure_open(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if !self.is_open {
            let mut keep = conn.prepare_cached(HOLD_SNAPSHOT_SQL)?;
            let mut rows = keep.query([])?;
            rows.next()?;
            // Dropping the rows would reset the statement. It stays active in the statement cache.
            std::mem::forget(rows);
            self.is_open = true;
        }
        Ok(())
    }

    pub(super) fn close(&mut self, conn: &Connection) {
        // If the cache has evicted the statement, the snapshot is already closed.
        if std::mem::take(&mut self.is_open)
            && let Ok(keep) = conn.prepare_cached(HOLD_SNAPSHOT_SQL)
        {
            keep.discard();
        }
    }
}

/// Whether an insert failed because another connection has written in the meantime. With an open
/// snapshot SQLite reports that; without one the next id is already in use.
pub(super) fn is_overtaken(error: &rusqlite::Error) -> bool {
    let is_stale =
        error.sqlite_error().is_some_and(|it| it.extended_code == ffi::SQLITE_BUSY_SNAPSHOT);
    is_stale || error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

#[cfg(test)]
mod tests {
    use super::super::{AppendRequest, DurabilityLevel, SqliteJournal, upkeep::WAL_BYTES_MAX};
    use std::path::Path;
    use tempfile::TempDir;

    fn open(dir: &TempDir) -> SqliteJournal {
        SqliteJournal::open(&dir.path().join("journal.db"), DurabilityLevel::Process).unwrap()
    }

    fn append_event(journal: &SqliteJournal, stream: &str, epoch: u64, seq: u64) {
        let body = seq.to_string().into();
        let append = AppendRequest {
            stream: stream.into(),
            epoch,
            first: seq,
            count: 1,
            body,
            summary: None,
        };
        let outcomes = journal.try_append_batch(&[append]).expect("no other writer is active");
        assert_eq!(outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [seq]);
    }

    /// The number of WAL frames that are not in the database, as seen by another process.
    fn count_pending_frames(path: &Path) -> i64 {
        let stranger = rusqlite::Connection::open(path).unwrap();
        let frames = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?);
        stranger.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], frames).unwrap()
    }

    #[test]
    fn two_alternating_writers_do_not_block_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (open(&dir), open(&dir));
        let (epoch_a, epoch_b) =
            (one.claim_stream("a").unwrap().epoch, other.claim_stream("b").unwrap().epoch);
        for seq in 1..=20 {
            append_event(&one, "a", epoch_a, seq);
            append_event(&other, "b", epoch_b, seq);
        }
        for (reader, stream) in [(&one, "b"), (&other, "a")] {
            assert_eq!(reader.read_events(stream, 0, 100, 10_000).unwrap().len(), 20);
        }
    }

    #[test]
    fn upkeep_closes_the_snapshot_and_it_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(&dir);
        let path = dir.path().join("journal.db");
        let epoch = journal.claim_stream("s").unwrap().epoch;
        for round in 0..3 {
            for seq in 1..=50 {
                append_event(&journal, "s", epoch, round * 50 + seq);
            }
            assert!(0 < count_pending_frames(&path), "a snapshot is open");
            journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
            journal.run_upkeep().unwrap();
            assert_eq!(journal.lock_writer().wal_bytes(), 0, "the checkpoint was complete");
            assert_eq!(count_pending_frames(&path), 0);
        }
        assert_eq!(journal.read_events("s", 0, 1_000, 10_000).unwrap().len(), 150);
    }

    #[test]
    fn concurrent_reader_sees_every_commit() {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(&dir);
        let stranger = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
        let epoch = journal.claim_stream("s").unwrap().epoch;
        for seq in 1..=20 {
            append_event(&journal, "s", epoch, seq);
            let last: i64 =
                stranger.query_row("SELECT max(seq) FROM event", [], |row| row.get(0)).unwrap();
            assert_eq!(last.cast_unsigned(), seq);
        }
    }
}
