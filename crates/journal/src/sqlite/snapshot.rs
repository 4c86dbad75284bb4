//! A snapshot that the writing connection keeps open from one small commit to the next.
//!
//! A commit takes a reader's place in the WAL, moves its mark, takes the writer's lock, and gives both
//! back: six calls to the kernel, of which four are about the place. Whoever has a snapshot open has
//! that place already. Its own commits carry the snapshot on; when somebody else has written, SQLite
//! refuses to write on it, and it is begun anew.

use rusqlite::{Connection, ErrorCode, ffi};

/// A snapshot lasts as long as this has not been asked for its second row.
const KEEP: &str = "SELECT only FROM mark";

#[derive(Debug, Default)]
pub(super) struct Snapshot {
    is_open: bool,
}

impl Snapshot {
    pub(super) fn begin(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        if !self.is_open {
            let mut keep = conn.prepare_cached(KEEP)?;
            let mut rows = keep.query([])?;
            rows.next()?;
            // To drop them would be to end the statement. It stays as it is in the connection's cache.
            std::mem::forget(rows);
            self.is_open = true;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, conn: &Connection) {
        // If the cache has let the statement go, that was its end.
        if std::mem::take(&mut self.is_open)
            && let Ok(keep) = conn.prepare_cached(KEEP)
        {
            keep.discard();
        }
    }
}

/// Whether a record could not be inserted because somebody else has written since: on a snapshot that
/// is kept SQLite says so, without one the next id is taken.
pub(super) fn is_outrun(error: &rusqlite::Error) -> bool {
    let is_stale =
        error.sqlite_error().is_some_and(|it| it.extended_code == ffi::SQLITE_BUSY_SNAPSHOT);
    is_stale || error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

#[cfg(test)]
mod tests {
    use super::super::{Append, Durability, Sqlite, upkeep::WAL_BYTES_MAX};
    use std::path::Path;
    use tempfile::TempDir;

    fn open(dir: &TempDir) -> Sqlite {
        Sqlite::open(&dir.path().join("journal.db"), Durability::Process).unwrap()
    }

    fn append(journal: &Sqlite, stream: &str, epoch: u64, seq: u64) {
        let body = seq.to_string().into();
        let append =
            Append { stream: stream.into(), epoch, first: seq, count: 1, body, summary: None };
        let outcomes = journal.try_append(&[append]).expect("nobody is in the way");
        assert_eq!(outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [seq]);
    }

    /// What is in the WAL and not in the database, as another process sees it.
    fn uncopied(path: &Path) -> i64 {
        let stranger = rusqlite::Connection::open(path).unwrap();
        let frames = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?);
        stranger.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], frames).unwrap()
    }

    #[test]
    fn two_who_commit_in_turn_do_not_stop_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (open(&dir), open(&dir));
        let (epoch_a, epoch_b) = (one.claim("a").unwrap().epoch, other.claim("b").unwrap().epoch);
        for seq in 1..=20 {
            append(&one, "a", epoch_a, seq);
            append(&other, "b", epoch_b, seq);
        }
        for (reader, stream) in [(&one, "b"), (&other, "a")] {
            assert_eq!(reader.read(stream, 0, 100, 10_000).unwrap().len(), 20);
        }
    }

    #[test]
    fn it_is_given_up_for_the_upkeep_and_begun_anew_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(&dir);
        let path = dir.path().join("journal.db");
        let epoch = journal.claim("s").unwrap().epoch;
        for round in 0..3 {
            for seq in 1..=50 {
                append(&journal, "s", epoch, round * 50 + seq);
            }
            assert!(0 < uncopied(&path), "a snapshot is open");
            journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
            journal.upkeep().unwrap();
            assert_eq!(journal.lock_writer().wal_bytes(), 0, "nothing was in the way");
            assert_eq!(uncopied(&path), 0);
        }
        assert_eq!(journal.read("s", 0, 1_000, 10_000).unwrap().len(), 150);
    }

    #[test]
    fn whoever_reads_meanwhile_sees_every_commit() {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(&dir);
        let stranger = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
        let epoch = journal.claim("s").unwrap().epoch;
        for seq in 1..=20 {
            append(&journal, "s", epoch, seq);
            let last: i64 =
                stranger.query_row("SELECT max(seq) FROM event", [], |row| row.get(0)).unwrap();
            assert_eq!(last.cast_unsigned(), seq);
        }
    }
}
