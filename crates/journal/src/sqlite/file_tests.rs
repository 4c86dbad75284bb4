//! Tests of a journal whose files are removed, replaced, truncated or damaged.

use super::*;
use crate::{
    Journal, JournalStorageFault, RecordDamage,
    sqlite::tests::{append_one, create_path, new_append, open, read_seqs, second_connection},
};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Creates a journal with one event. Returns the epoch for further appends.
fn create_with_one_event(path: &Path) -> (SqliteJournal, u64) {
    let journal = open(path);
    let epoch = journal.claim_stream("s").unwrap().epoch;
    append_one(&journal, new_append("s", epoch, 1, &["a"])).unwrap();
    (journal, epoch)
}

#[test]
fn append_is_not_acknowledged_while_a_journal_file_is_removed_or_replaced() {
    for file in [|path: &Path| path.to_owned(), wal_path] {
        for is_replaced in [false, true] {
            let (dir, path) = create_path();
            let (journal, epoch) = create_with_one_event(&path);
            let (file, aside) = (file(&path), dir.path().join("aside"));
            fs::rename(&file, &aside).unwrap();
            if is_replaced {
                fs::copy(&aside, &file).unwrap();
            }
            let failed = append_one(&journal, new_append("s", epoch, 2, &["b"])).unwrap_err();
            assert_eq!(failed.storage_fault(), JournalStorageFault::FileChanged);
            let change = if is_replaced { "replaced" } else { "removed" };
            let AppendError::Unavailable { source, .. } = &failed else { panic!("{failed}") };
            let expected = format!("`{}` was {change} while it was in use", file.display());
            assert_eq!(source.to_string(), expected);
            assert!(journal.claim_stream("t").is_err());
            assert!(journal.delete_stream("t").is_err());
            let inline = journal.try_append_batch(&[new_append("s", epoch, 2, &["b"])]).unwrap();
            assert!(inline[0].is_err());

            fs::rename(&aside, &file).unwrap();
            assert_eq!(append_one(&journal, new_append("s", epoch, 2, &["b"])).unwrap(), 2);
            drop(journal);
            assert_eq!(read_seqs(&open(&path), 0).unwrap(), [1, 2]);
        }
    }
}

#[test]
fn next_start_counts_acknowledged_records_that_are_missing() {
    let (dir, path) = create_path();
    let (journal, epoch) = create_with_one_event(&path);
    assert_eq!(journal.lost_records(), None);
    journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
    journal.run_upkeep().unwrap();
    // Copies the files as a crash would leave them: closing the journal would empty the WAL.
    let crashed = dir.path().join("crashed.db");
    for seq in 2..=4 {
        append_one(&journal, new_append("s", epoch, seq, &["b"])).unwrap();
    }
    for suffix in ["", "-acknowledged"] {
        fs::copy(
            open_files::companion_path(&path, suffix),
            open_files::companion_path(&crashed, suffix),
        )
        .unwrap();
    }
    fs::copy(wal_path(&path), dir.path().join("tail")).unwrap();
    let journal = open(&crashed);
    assert_eq!(journal.lost_records(), Some(LostRecords { count: 3 }));
    assert_eq!(read_seqs(&journal, 0).unwrap(), [1]);
    drop(journal);
    // Every start counts them until a new record is written.
    assert_eq!(open(&crashed).lost_records(), Some(LostRecords { count: 3 }));

    fs::copy(dir.path().join("tail"), wal_path(&crashed)).unwrap();
    let journal = open(&crashed);
    assert_eq!(journal.lost_records(), None);
    assert_eq!(read_seqs(&journal, 0).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn unreadable_acknowledged_record_is_not_reported_as_loss() {
    let (_dir, path) = create_path();
    drop(create_with_one_event(&path));
    for note in ["", "7", "not a number at all, and long"] {
        fs::write(open_files::companion_path(&path, "-acknowledged"), note).unwrap();
        assert_eq!(open(&path).lost_records(), None);
    }
}

#[test]
fn inspection_reports_every_damaged_event_and_reads_the_rest() {
    let (_dir, path) = create_path();
    let (journal, epoch) = create_with_one_event(&path);
    append_one(&journal, new_append("s", epoch, 2, &["b", "c", "d"])).unwrap();
    append_one(&journal, new_append("s", epoch, 5, &["e"])).unwrap();
    let other = journal.claim_stream("t").unwrap().epoch;
    append_one(&journal, new_append("t", other, 1, &["x", "y"])).unwrap();
    drop(journal);
    let inspect = || {
        let journal = Journal::open(&path, DurabilityLevel::Process).unwrap();
        journal.inspect_events(Instant::now() + Duration::from_mins(1)).unwrap()
    };
    let found = inspect();
    assert_eq!((found.streams, found.events, found.is_complete), (2, 7, true));
    assert_eq!(found.damaged, []);

    second_connection(&path)
        .execute_batch("UPDATE record SET body = x'61' WHERE count = 3")
        .unwrap();
    let found = inspect();
    assert_eq!((found.streams, found.events, found.is_complete), (2, 4, true));
    let [damaged] = &found.damaged[..] else { panic!("{found:?}") };
    assert_eq!((&*damaged.stream, damaged.first, damaged.last), ("s", 2, 4));
    assert_eq!(damaged.damage, RecordDamage::Checksum);
}
