//! What becomes of a journal whose files are removed, replaced, cut or damaged.

use super::*;
use crate::{
    Damage, Journal, StorageFault,
    sqlite::tests::{append, open, place, seqs, stranger, write},
};
use std::{
    fs,
    time::{Duration, Instant},
};

fn wal(path: &Path) -> std::path::PathBuf {
    wal_path(path)
}

/// A journal with one event, and the epoch to write more.
fn with_one_event(path: &Path) -> (Sqlite, u64) {
    let journal = open(path);
    let epoch = journal.claim("s").unwrap().epoch;
    write(&journal, append("s", epoch, 1, &["a"])).unwrap();
    (journal, epoch)
}

#[test]
fn nothing_is_acknowledged_while_a_file_of_the_journal_is_not_at_its_path() {
    for file in [|path: &Path| path.to_owned(), wal_path] {
        for is_replaced in [false, true] {
            let (dir, path) = place();
            let (journal, epoch) = with_one_event(&path);
            let (file, aside) = (file(&path), dir.path().join("aside"));
            fs::rename(&file, &aside).unwrap();
            if is_replaced {
                fs::copy(&aside, &file).unwrap();
            }
            let failed = write(&journal, append("s", epoch, 2, &["b"])).unwrap_err();
            assert_eq!(failed.storage_fault(), StorageFault::FileChanged);
            let change = if is_replaced { "replaced" } else { "removed" };
            let AppendError::Unavailable { source, .. } = &failed else { panic!("{failed}") };
            let expected = format!("`{}` was {change} while it was in use", file.display());
            assert_eq!(source.to_string(), expected);
            assert!(journal.claim("t").is_err());
            assert!(journal.delete("t").is_err());
            let inline = journal.try_append(&[append("s", epoch, 2, &["b"])]).unwrap();
            assert!(inline[0].is_err());

            fs::rename(&aside, &file).unwrap();
            assert_eq!(write(&journal, append("s", epoch, 2, &["b"])).unwrap(), 2);
            drop(journal);
            assert_eq!(seqs(&open(&path), 0).unwrap(), [1, 2]);
        }
    }
}

#[test]
fn acknowledged_records_that_are_gone_are_counted_at_the_next_start() {
    let (dir, path) = place();
    let (journal, epoch) = with_one_event(&path);
    assert_eq!(journal.lost_records(), None);
    journal.lock_writer().set_wal_bytes(WAL_BYTES_MAX);
    journal.upkeep().unwrap();
    // As a crash leaves the files: SQLite would empty the WAL when the journal is closed.
    let crashed = dir.path().join("crashed.db");
    for seq in 2..=4 {
        write(&journal, append("s", epoch, seq, &["b"])).unwrap();
    }
    for suffix in ["", "-acknowledged"] {
        fs::copy(open_files::beside(&path, suffix), open_files::beside(&crashed, suffix)).unwrap();
    }
    fs::copy(wal(&path), dir.path().join("tail")).unwrap();
    let journal = open(&crashed);
    assert_eq!(journal.lost_records(), Some(LostRecords { count: 3 }));
    assert_eq!(seqs(&journal, 0).unwrap(), [1]);
    drop(journal);
    // Until something new is written every start counts them.
    assert_eq!(open(&crashed).lost_records(), Some(LostRecords { count: 3 }));

    fs::copy(dir.path().join("tail"), wal(&crashed)).unwrap();
    let journal = open(&crashed);
    assert_eq!(journal.lost_records(), None);
    assert_eq!(seqs(&journal, 0).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn an_unreadable_note_of_the_last_record_is_no_loss() {
    let (_dir, path) = place();
    drop(with_one_event(&path));
    for note in ["", "7", "not a number at all, and long"] {
        fs::write(open_files::beside(&path, "-acknowledged"), note).unwrap();
        assert_eq!(open(&path).lost_records(), None);
    }
}

#[test]
fn an_inspection_names_every_damaged_event_and_reads_the_rest() {
    let (_dir, path) = place();
    let (journal, epoch) = with_one_event(&path);
    write(&journal, append("s", epoch, 2, &["b", "c", "d"])).unwrap();
    write(&journal, append("s", epoch, 5, &["e"])).unwrap();
    let other = journal.claim("t").unwrap().epoch;
    write(&journal, append("t", other, 1, &["x", "y"])).unwrap();
    drop(journal);
    let inspect = || {
        let journal = Journal::open(&path, Durability::Process).unwrap();
        journal.inspect(Instant::now() + Duration::from_mins(1)).unwrap()
    };
    let found = inspect();
    assert_eq!((found.streams, found.events, found.is_complete), (2, 7, true));
    assert_eq!(found.damaged, []);

    stranger(&path).execute_batch("UPDATE record SET body = x'61' WHERE count = 3").unwrap();
    let found = inspect();
    assert_eq!((found.streams, found.events, found.is_complete), (2, 4, true));
    let [damaged] = &found.damaged[..] else { panic!("{found:?}") };
    assert_eq!((&*damaged.stream, damaged.first, damaged.last), ("s", 2, 4));
    assert_eq!(damaged.damage, Damage::Checksum);
}
