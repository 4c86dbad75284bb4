//! Tests of guarantees that only the SQLite backend makes.

use super::*;
use crate::{Journal, RECORD_BYTES_MAX, RecordDamage};
use bytes::Bytes;
use std::{path::PathBuf, thread};
use tempfile::TempDir;

pub(super) fn create_path() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    (dir, path)
}

pub(super) fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::open(path, DurabilityLevel::Process).unwrap()
}

pub(super) fn new_append(stream: &str, epoch: u64, first: u64, lines: &[&str]) -> AppendRequest {
    AppendRequest {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).unwrap(),
        body: Bytes::from(lines.join("\n")),
        summary: None,
    }
}

pub(super) fn append_one(
    journal: &SqliteJournal,
    append: AppendRequest,
) -> Result<u64, AppendError> {
    journal.append_batch(&[append]).remove(0)
}

pub(super) fn read_seqs(journal: &SqliteJournal, after: u64) -> Result<Vec<u64>, ReadError> {
    let events = journal.read_events("s", after, usize::MAX, usize::MAX)?;
    Ok(events.iter().map(|it| it.seq).collect())
}

/// A second connection, which to SQLite is like another process.
pub(super) fn second_connection(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

#[test]
#[cfg(unix)]
fn journal_files_are_accessible_only_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = create_path();
    let journal = open(&path);
    journal.claim_stream("s").unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files += 1;
    }
    assert_eq!(
        files, 4,
        "the database, its WAL, its shared memory and the last acknowledged record"
    );
}

#[test]
fn event_view_contains_every_event() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let large = format!(r#"{{"n":5,"pad":"{}"}}"#, "x".repeat(RECORD_BYTES_MAX));
    for stream in ["other", "it's"] {
        let epoch = journal.claim_stream(stream).unwrap().epoch;
        let lines = [r#"{"n":1}"#, r#"{"n":2, "text":"a,b\n[c]"}"#, r#"{"n":3}"#];
        append_one(&journal, new_append(stream, epoch, 1, &lines)).unwrap();
        journal.run_upkeep().unwrap();
        let epoch = journal.claim_stream(stream).unwrap().epoch;
        append_one(&journal, new_append(stream, epoch, 4, &[r#"{"n":4}"#, &large])).unwrap();
    }
    let reader = second_connection(&path);
    let mut query = reader
        .prepare(
            "SELECT stream, seq, epoch, json ->> 'n', length(json) FROM event
              WHERE stream = 'it''s' ORDER BY seq",
        )
        .unwrap();
    let rows = query.query_map([], |row| {
        assert_eq!(row.get::<_, String>(0)?, "it's");
        Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    });
    let rows: Vec<(i64, i64, i64, u32)> = rows.unwrap().map(Result::unwrap).collect();
    let rows: Vec<_> =
        rows.iter().map(|&(a, b, c, size)| (a, b, c, size as usize == large.len())).collect();
    let expected =
        [(1, 1, 1, false), (2, 1, 2, false), (3, 1, 3, false), (4, 2, 4, false), (5, 2, 5, true)];
    assert_eq!(rows, expected);
    let all: i64 = reader.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();
    assert_eq!(all, 10);

    let epoch = journal.claim_stream("words").unwrap().epoch;
    append_one(&journal, new_append("words", epoch, 1, &["not", "json"])).unwrap();
    let text = "SELECT json FROM event WHERE stream = 'words'";
    let text: String = reader.query_row(text, [], |row| row.get(0)).unwrap();
    assert_eq!(text, "not\njson");
}

#[test]
fn event_view_uses_the_index_for_a_stream() {
    let (_dir, path) = create_path();
    open(&path).claim_stream("s").unwrap();
    let reader = second_connection(&path);
    let mut plan =
        reader.prepare("EXPLAIN QUERY PLAN SELECT * FROM event WHERE stream = 's'").unwrap();
    let steps = plan.query_map([], |row| row.get::<_, String>(3)).unwrap();
    let steps: Vec<_> = steps.map(Result::unwrap).collect();
    let full_scan = steps.iter().find(|it| it.starts_with("SCAN p") || it.starts_with("SCAN r"));
    assert_eq!(full_scan, None, "{steps:#?}");
}

/// Creates a journal with three records: 1-3, 4, 5-6.
fn create_with_three_records(path: &Path) -> SqliteJournal {
    let journal = open(path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    append_one(&journal, new_append("s", epoch, 1, &["a", "b", "c"])).unwrap();
    append_one(&journal, new_append("s", epoch, 4, &["d"])).unwrap();
    append_one(&journal, new_append("s", epoch, 5, &["e", "f"])).unwrap();
    journal
}

#[test]
fn damage_is_reported_with_its_position_and_never_skipped() {
    let damages = [
        ("UPDATE record SET body = x'61' WHERE first = 4 AND count = 1", RecordDamage::Checksum),
        ("UPDATE record SET epoch = 9 WHERE first = 4 AND count = 1", RecordDamage::Checksum),
        ("UPDATE record SET checksum = checksum + 1 WHERE first = 4", RecordDamage::Checksum),
        ("UPDATE record SET is_reference = 1 WHERE first = 4", RecordDamage::Checksum),
        ("DELETE FROM record WHERE first = 4", RecordDamage::Missing),
    ];
    for found_by in ["tail", "index", "scan"] {
        for (sql, expected) in damages {
            let (_dir, path) = create_path();
            let mut journal = create_with_three_records(&path);
            if found_by == "index" {
                journal.run_upkeep().unwrap();
            } else if found_by == "scan" {
                drop(journal);
                journal = open(&path);
            }
            second_connection(&path).execute_batch(sql).unwrap();
            // The events before and after the damage can be read.
            assert_eq!(read_seqs(&journal, 0).unwrap(), [1, 2, 3], "{sql}");
            assert_eq!(read_seqs(&journal, 4).unwrap(), [5, 6], "{sql}");
            for _ in 0..2 {
                let error = read_seqs(&journal, 3).unwrap_err();
                let ReadError::Damaged { stream, first: 4, damage } = error else {
                    panic!("{error}")
                };
                assert_eq!((&*stream, damage), ("s", expected), "{sql}");
            }
        }
    }
}

#[test]
fn record_of_another_stream_is_reported_as_damage() {
    let (_dir, path) = create_path();
    let journal = create_with_three_records(&path);
    let epoch = journal.claim_stream("t").unwrap().epoch;
    append_one(&journal, new_append("t", epoch, 1, &["x"])).unwrap();
    second_connection(&path)
        .execute_batch("UPDATE record SET stream = 3 - stream WHERE stream IN (1, 2)")
        .unwrap();
    drop(journal);
    assert!(matches!(read_seqs(&open(&path), 0), Err(ReadError::Damaged { first: 1, .. })));
}

#[test]
fn missing_or_altered_blob_is_reported() {
    for sql in ["DELETE FROM blob", "UPDATE blob SET body = substr(body, 2)"] {
        let (_dir, path) = create_path();
        let journal = open(&path);
        let epoch = journal.claim_stream("s").unwrap().epoch;
        let large = "x".repeat(RECORD_BYTES_MAX + 1);
        append_one(&journal, new_append("s", epoch, 1, &["a", &large, "b"])).unwrap();
        second_connection(&path).execute_batch(sql).unwrap();
        assert_eq!(read_seqs(&journal, 0).unwrap(), [1]);
        let error = read_seqs(&journal, 1).unwrap_err();
        let text = "stream `s` is damaged at event 2: \
                    the large event it refers to is missing or altered";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn batch_fails_as_a_whole_on_a_full_disk_and_can_be_repeated() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let [a, b] = ["a", "s"].map(|it| journal.claim_stream(it).unwrap().epoch);
    append_one(&journal, new_append("s", b, 1, &["1"])).unwrap();
    let limit_pages = |pages: u32| {
        let limit = format!("PRAGMA max_page_count = {pages}");
        journal.lock_writer().conn().query_row(&limit, [], |_| Ok(())).unwrap();
    };
    let large = "x".repeat(200_000);
    let batch = [
        new_append("a", a, 1, &["1"]),
        new_append("a", 99, 1, &["x"]),
        new_append("s", b, 2, &["2", &large]),
    ];
    limit_pages(1);
    for _ in 0..2 {
        let outcomes = journal.append_batch(&batch);
        let [first, fenced, second] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert!(matches!(first, Err(AppendError::Unavailable { count: 1, .. })), "{first:?}");
        assert!(matches!(fenced, Err(AppendError::Fenced { .. })), "{fenced:?}");
        assert!(matches!(second, Err(AppendError::Unavailable { count: 2, .. })), "{second:?}");
        // A single append takes the fast path and fails as well.
        assert!(append_one(&journal, new_append("s", b, 2, &["2", &large])).is_err());
        assert_eq!(read_seqs(&journal, 0).unwrap(), [1]);
    }
    limit_pages(1_000_000);
    // The next record differs from the one that failed.
    append_one(&journal, new_append("s", b, 2, &["2"])).unwrap();
    assert_eq!(read_seqs(&journal, 0).unwrap(), [1, 2]);
    assert_eq!(journal.read_events("a", 0, 10, 10).unwrap(), []);
    let outcomes = journal.append_batch(&batch);
    assert!(matches!(outcomes[..], [Ok(1), Err(_), Ok(3)]), "{outcomes:?}");
    assert_eq!(read_seqs(&journal, 0).unwrap(), [1, 2, 3]);
}

#[test]
fn try_append_does_not_wait_for_another_writer() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    let other = second_connection(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(journal.try_append_batch(&[new_append("s", epoch, 1, &["a"])]).is_none());
    assert!(
        journal
            .try_append_batch(&[
                new_append("s", epoch, 1, &["a"]),
                new_append("s", epoch, 2, &["b"])
            ])
            .is_none()
    );
    assert!(read_seqs(&journal, 0).unwrap().is_empty());
    other.execute_batch("COMMIT").unwrap();
    assert!(journal.try_append_batch(&[new_append("s", epoch, 1, &["a"])]).unwrap()[0].is_ok());
    let writing = journal.lock_writer();
    assert!(journal.try_append_batch(&[new_append("s", epoch, 2, &["b"])]).is_none());
    drop(writing);
    journal.is_checkpointing.store(true, Ordering::Relaxed);
    assert!(journal.try_append_batch(&[new_append("s", epoch, 2, &["b"])]).is_none());
}

#[test]
fn open_read_transaction_blocks_neither_appends_nor_upkeep() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    append_one(&journal, new_append("s", epoch, 1, &["a"])).unwrap();
    let reader = second_connection(&path);
    let count = |conn: &Connection| -> i64 {
        conn.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    let before = count(&reader);
    for seq in 2..=20 {
        assert!(
            journal.try_append_batch(&[new_append("s", epoch, seq, &["b"])]).unwrap()[0].is_ok()
        );
        journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
        journal.run_upkeep().unwrap();
    }
    assert_eq!(count(&reader), before);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(read_seqs(&journal, 0).unwrap().len(), 20);
}

#[test]
fn upkeep_restarts_the_wal() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    let wal_bytes = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    let mut sizes = Vec::new();
    for round in 0..4 {
        for seq in 1..=100 {
            append_one(&journal, new_append("s", epoch, round * 100 + seq, &["some event"]))
                .unwrap();
        }
        journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
        journal.run_upkeep().unwrap();
        assert!(journal.lock_writer().wal_bytes() < WAL_BYTES_MAX);
        sizes.push(wal_bytes());
    }
    assert!(sizes[3] <= sizes[0] + sizes[0] / 2, "{sizes:?}");
    assert_eq!(read_seqs(&journal, 0).unwrap().len(), 400);
}

#[test]
fn append_runs_overdue_upkeep() {
    let (_dir, path) = create_path();
    let journal = open(&path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    let rounds = UNINDEXED_MAX * OVERDUE_FACTOR as u64 / 500 + 1;
    for round in 0..rounds {
        let batch: Vec<_> =
            (1..=500).map(|it| new_append("s", epoch, round * 500 + it, &[""])).collect();
        assert!(journal.append_batch(&batch).iter().all(Result::is_ok));
    }
    assert!(journal.lock_writer().unindexed_count() < UNINDEXED_MAX);
}

#[test]
fn records_of_a_deleted_stream_are_removed_after_they_are_indexed() {
    let (_dir, path) = create_path();
    let journal = create_with_three_records(&path);
    journal.run_upkeep().unwrap();
    let large = "x".repeat(RECORD_BYTES_MAX + 1);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    append_one(&journal, new_append("s", epoch, 7, &["g", &large])).unwrap();
    journal.delete_stream("s").unwrap();
    let count_rows = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        second_connection(&path).query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(
        upkeep::sweep_deleted_records(&mut journal.lock_writer()).unwrap(),
        TurnResult::Finished
    );
    assert_eq!((count_rows("dead"), count_rows("place"), count_rows("blob")), (1, 3, 1));
    journal.run_upkeep().unwrap();
    assert_eq!((count_rows("dead"), count_rows("place"), count_rows("blob")), (0, 0, 0));
    assert_eq!(count_rows("record WHERE 0 < count"), 0);
}

#[test]
fn new_journal_may_be_opened_concurrently() {
    let (_dir, path) = create_path();
    thread::scope(|scope| {
        for index in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let journal = open(path);
                let stream = format!("s{index}");
                let epoch = journal.claim_stream(&stream).unwrap().epoch;
                for seq in 1..=20 {
                    append_one(&journal, new_append(&stream, epoch, seq, &["x"])).unwrap();
                }
            });
        }
    });
    let mut streams = Vec::new();
    open(&path).for_each_stream(&mut |it| streams.push(it)).unwrap();
    assert_eq!(streams.iter().map(|it| it.head).collect::<Vec<_>>(), [20; 8]);
}

#[test]
fn concurrent_readers_see_a_prefix_without_gaps() {
    let (_dir, path) = create_path();
    let journal = Journal::open(&path, DurabilityLevel::Process).unwrap();
    let epoch = journal.claim_stream("s").unwrap().epoch;
    let last = 5_000;
    thread::scope(|scope| {
        for _ in 0..2 {
            let journal = journal.clone();
            scope.spawn(move || {
                let mut seen = 0;
                while seen < last {
                    let events = journal.read_events("s", seen, 100, 10_000).unwrap();
                    for event in events {
                        assert_eq!(event.seq, seen + 1);
                        assert_eq!(event.line, event.seq.to_string());
                        seen = event.seq;
                    }
                }
            });
        }
        for seq in 1..=last {
            let line = seq.to_string();
            journal.append_batch(&[new_append("s", epoch, seq, &[&line])])[0].as_ref().unwrap();
            if seq % 700 == 0 {
                journal.run_upkeep().unwrap();
            }
        }
    });
}
