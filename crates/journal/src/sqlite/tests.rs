//! What only the SQLite file promises.

use super::*;
use crate::{Damage, Journal, RECORD_BYTES_MAX};
use bytes::Bytes;
use std::{path::PathBuf, thread};
use tempfile::TempDir;

pub(super) fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    (dir, path)
}

pub(super) fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, Durability::Process).unwrap()
}

pub(super) fn append(stream: &str, epoch: u64, first: u64, lines: &[&str]) -> Append {
    Append {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).unwrap(),
        body: Bytes::from(lines.join("\n")),
        summary: None,
    }
}

pub(super) fn write(journal: &Sqlite, append: Append) -> Result<u64, AppendError> {
    journal.append(&[append]).remove(0)
}

pub(super) fn seqs(journal: &Sqlite, after: u64) -> Result<Vec<u64>, ReadError> {
    let events = journal.read("s", after, usize::MAX, usize::MAX)?;
    Ok(events.iter().map(|it| it.seq).collect())
}

/// Another process, as far as SQLite is concerned.
pub(super) fn stranger(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

#[test]
#[cfg(unix)]
fn its_files_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = place();
    let journal = open(&path);
    journal.claim("s").unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        seen += 1;
    }
    assert_eq!(
        seen, 4,
        "the database, its WAL, the index of that and the last acknowledged record"
    );
}

#[test]
fn plain_sql_sees_every_event() {
    let (_dir, path) = place();
    let journal = open(&path);
    let large = format!(r#"{{"n":5,"pad":"{}"}}"#, "x".repeat(RECORD_BYTES_MAX));
    for stream in ["other", "it's"] {
        let epoch = journal.claim(stream).unwrap().epoch;
        let lines = [r#"{"n":1}"#, r#"{"n":2, "text":"a,b\n[c]"}"#, r#"{"n":3}"#];
        write(&journal, append(stream, epoch, 1, &lines)).unwrap();
        journal.upkeep().unwrap();
        let epoch = journal.claim(stream).unwrap().epoch;
        write(&journal, append(stream, epoch, 4, &[r#"{"n":4}"#, &large])).unwrap();
    }
    let reader = stranger(&path);
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

    let epoch = journal.claim("words").unwrap().epoch;
    write(&journal, append("words", epoch, 1, &["not", "json"])).unwrap();
    let text = "SELECT json FROM event WHERE stream = 'words'";
    let text: String = reader.query_row(text, [], |row| row.get(0)).unwrap();
    assert_eq!(text, "not\njson");
}

#[test]
fn a_stream_is_found_by_its_place_also_by_plain_sql() {
    let (_dir, path) = place();
    open(&path).claim("s").unwrap();
    let reader = stranger(&path);
    let mut plan =
        reader.prepare("EXPLAIN QUERY PLAN SELECT * FROM event WHERE stream = 's'").unwrap();
    let steps = plan.query_map([], |row| row.get::<_, String>(3)).unwrap();
    let steps: Vec<_> = steps.map(Result::unwrap).collect();
    let slow = steps.iter().find(|it| it.starts_with("SCAN p") || it.starts_with("SCAN r"));
    assert_eq!(slow, None, "{steps:#?}");
}

/// Three records: 1-3, 4, 5-6.
fn three_records(path: &Path, is_placed: bool) -> Sqlite {
    let journal = open(path);
    let epoch = journal.claim("s").unwrap().epoch;
    write(&journal, append("s", epoch, 1, &["a", "b", "c"])).unwrap();
    write(&journal, append("s", epoch, 4, &["d"])).unwrap();
    write(&journal, append("s", epoch, 5, &["e", "f"])).unwrap();
    if is_placed {
        journal.upkeep().unwrap();
    }
    journal
}

#[test]
fn damage_is_reported_with_its_place_and_never_skipped() {
    let damages = [
        ("UPDATE record SET body = x'61' WHERE first = 4 AND count = 1", Damage::Checksum),
        ("UPDATE record SET epoch = 9 WHERE first = 4 AND count = 1", Damage::Checksum),
        ("UPDATE record SET checksum = checksum + 1 WHERE first = 4", Damage::Checksum),
        ("UPDATE record SET is_reference = 1 WHERE first = 4", Damage::Checksum),
        ("DELETE FROM record WHERE first = 4", Damage::Missing),
    ];
    for found_by in ["memory", "place", "search"] {
        for (sql, expected) in damages {
            let (_dir, path) = place();
            let mut journal = three_records(&path, found_by == "place");
            if found_by == "search" {
                drop(journal);
                journal = open(&path);
            }
            stranger(&path).execute_batch(sql).unwrap();
            // What comes before is good, what comes after too.
            assert_eq!(seqs(&journal, 0).unwrap(), [1, 2, 3], "{sql}");
            assert_eq!(seqs(&journal, 4).unwrap(), [5, 6], "{sql}");
            for _ in 0..2 {
                let error = seqs(&journal, 3).unwrap_err();
                let ReadError::Damaged { stream, first: 4, damage } = error else {
                    panic!("{error}")
                };
                assert_eq!((&*stream, damage), ("s", expected), "{sql}");
            }
        }
    }
}

#[test]
fn a_record_cannot_pass_for_another() {
    let (_dir, path) = place();
    let journal = three_records(&path, false);
    let epoch = journal.claim("t").unwrap().epoch;
    write(&journal, append("t", epoch, 1, &["x"])).unwrap();
    stranger(&path)
        .execute_batch("UPDATE record SET stream = 3 - stream WHERE stream IN (1, 2)")
        .unwrap();
    drop(journal);
    assert!(matches!(seqs(&open(&path), 0), Err(ReadError::Damaged { first: 1, .. })));
}

#[test]
fn a_large_event_that_is_gone_or_altered_is_reported() {
    for sql in ["DELETE FROM blob", "UPDATE blob SET body = substr(body, 2)"] {
        let (_dir, path) = place();
        let journal = open(&path);
        let epoch = journal.claim("s").unwrap().epoch;
        let large = "x".repeat(RECORD_BYTES_MAX + 1);
        write(&journal, append("s", epoch, 1, &["a", &large, "b"])).unwrap();
        stranger(&path).execute_batch(sql).unwrap();
        assert_eq!(seqs(&journal, 0).unwrap(), [1]);
        let error = seqs(&journal, 1).unwrap_err();
        let text = "stream `s` is damaged at event 2: \
                    the large event it refers to is missing or altered";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn when_the_disk_is_full_a_batch_fails_as_a_whole_and_can_be_repeated() {
    let (_dir, path) = place();
    let journal = open(&path);
    let [a, b] = ["a", "s"].map(|it| journal.claim(it).unwrap().epoch);
    write(&journal, append("s", b, 1, &["1"])).unwrap();
    let full = |pages: u32| {
        let limit = format!("PRAGMA max_page_count = {pages}");
        journal.lock_writer().conn().query_row(&limit, [], |_| Ok(())).unwrap();
    };
    let large = "x".repeat(200_000);
    let batch =
        [append("a", a, 1, &["1"]), append("a", 99, 1, &["x"]), append("s", b, 2, &["2", &large])];
    full(1);
    for _ in 0..2 {
        let outcomes = journal.append(&batch);
        let [first, fenced, second] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert!(matches!(first, Err(AppendError::Unavailable { count: 1, .. })), "{first:?}");
        assert!(matches!(fenced, Err(AppendError::Fenced { .. })), "{fenced:?}");
        assert!(matches!(second, Err(AppendError::Unavailable { count: 2, .. })), "{second:?}");
        // Alone it takes the quick way, and fails alike.
        assert!(write(&journal, append("s", b, 2, &["2", &large])).is_err());
        assert_eq!(seqs(&journal, 0).unwrap(), [1]);
    }
    full(1_000_000);
    // The next record is another one than that which failed.
    write(&journal, append("s", b, 2, &["2"])).unwrap();
    assert_eq!(seqs(&journal, 0).unwrap(), [1, 2]);
    assert_eq!(journal.read("a", 0, 10, 10).unwrap(), []);
    let outcomes = journal.append(&batch);
    assert!(matches!(outcomes[..], [Ok(1), Err(_), Ok(3)]), "{outcomes:?}");
    assert_eq!(seqs(&journal, 0).unwrap(), [1, 2, 3]);
}

#[test]
fn a_stranger_who_writes_makes_nobody_wait_who_does_not_want_to() {
    let (_dir, path) = place();
    let journal = open(&path);
    let epoch = journal.claim("s").unwrap().epoch;
    let stranger = stranger(&path);
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(journal.try_append(&[append("s", epoch, 1, &["a"])]).is_none());
    assert!(
        journal
            .try_append(&[append("s", epoch, 1, &["a"]), append("s", epoch, 2, &["b"])])
            .is_none()
    );
    assert!(seqs(&journal, 0).unwrap().is_empty());
    stranger.execute_batch("COMMIT").unwrap();
    assert!(journal.try_append(&[append("s", epoch, 1, &["a"])]).unwrap()[0].is_ok());
    let writing = journal.lock_writer();
    assert!(journal.try_append(&[append("s", epoch, 2, &["b"])]).is_none());
    drop(writing);
    journal.is_copying.store(true, Ordering::Relaxed);
    assert!(journal.try_append(&[append("s", epoch, 2, &["b"])]).is_none());
}

#[test]
fn a_reader_in_the_middle_of_its_answer_blocks_nobody() {
    let (_dir, path) = place();
    let journal = open(&path);
    let epoch = journal.claim("s").unwrap().epoch;
    write(&journal, append("s", epoch, 1, &["a"])).unwrap();
    let reader = stranger(&path);
    let count = |conn: &Connection| -> i64 {
        conn.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    let before = count(&reader);
    for seq in 2..=20 {
        assert!(journal.try_append(&[append("s", epoch, seq, &["b"])]).unwrap()[0].is_ok());
        journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
        journal.upkeep().unwrap();
    }
    assert_eq!(count(&reader), before);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(seqs(&journal, 0).unwrap().len(), 20);
}

#[test]
fn upkeep_starts_the_wal_over() {
    let (_dir, path) = place();
    let journal = open(&path);
    let epoch = journal.claim("s").unwrap().epoch;
    let wal_bytes = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    let mut sizes = Vec::new();
    for round in 0..4 {
        for seq in 1..=100 {
            write(&journal, append("s", epoch, round * 100 + seq, &["some event"])).unwrap();
        }
        journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
        journal.upkeep().unwrap();
        assert!(journal.lock_writer().wal_bytes() < WAL_BYTES_MAX);
        sizes.push(wal_bytes());
    }
    assert!(sizes[3] <= sizes[0] + sizes[0] / 2, "{sizes:?}");
    assert_eq!(seqs(&journal, 0).unwrap().len(), 400);
}

#[test]
fn a_neglected_journal_looks_after_itself() {
    let (_dir, path) = place();
    let journal = open(&path);
    let epoch = journal.claim("s").unwrap().epoch;
    let rounds = UNPLACED_MAX * NEGLECT_MAX as u64 / 500 + 1;
    for round in 0..rounds {
        let batch: Vec<_> =
            (1..=500).map(|it| append("s", epoch, round * 500 + it, &[""])).collect();
        assert!(journal.append(&batch).iter().all(Result::is_ok));
    }
    assert!(journal.lock_writer().unplaced() < UNPLACED_MAX);
}

#[test]
fn the_dead_are_swept_without_a_trace_but_not_before_they_are_placed() {
    let (_dir, path) = place();
    let journal = three_records(&path, true);
    let large = "x".repeat(RECORD_BYTES_MAX + 1);
    let epoch = journal.claim("s").unwrap().epoch;
    write(&journal, append("s", epoch, 7, &["g", &large])).unwrap();
    journal.delete("s").unwrap();
    let left = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        stranger(&path).query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(upkeep::sweep_some(&mut journal.lock_writer()).unwrap(), More::No);
    assert_eq!((left("dead"), left("place"), left("blob")), (1, 3, 1));
    journal.upkeep().unwrap();
    assert_eq!((left("dead"), left("place"), left("blob")), (0, 0, 0));
    assert_eq!(left("record WHERE 0 < count"), 0);
}

#[test]
fn a_new_journal_may_be_opened_by_many_at_once() {
    let (_dir, path) = place();
    thread::scope(|scope| {
        for index in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let journal = open(path);
                let stream = format!("s{index}");
                let epoch = journal.claim(&stream).unwrap().epoch;
                for seq in 1..=20 {
                    write(&journal, append(&stream, epoch, seq, &["x"])).unwrap();
                }
            });
        }
    });
    let mut streams = Vec::new();
    open(&path).each_stream(&mut |it| streams.push(it)).unwrap();
    assert_eq!(streams.iter().map(|it| it.head).collect::<Vec<_>>(), [20; 8]);
}

#[test]
fn readers_beside_a_writer_always_see_a_gapless_prefix() {
    let (_dir, path) = place();
    let journal = Journal::open(&path, Durability::Process).unwrap();
    let epoch = journal.claim("s").unwrap().epoch;
    let last = 5_000;
    thread::scope(|scope| {
        for _ in 0..2 {
            let journal = journal.clone();
            scope.spawn(move || {
                let mut seen = 0;
                while seen < last {
                    let events = journal.read("s", seen, 100, 10_000).unwrap();
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
            journal.append(&[append("s", epoch, seq, &[&line])])[0].as_ref().unwrap();
            if seq % 700 == 0 {
                journal.upkeep().unwrap();
            }
        }
    });
}
