//! Tests of the file format: journals of every released version can be opened, a newer format is
//! refused with advice, and a foreign or altered file is detected.

use jackfield_journal::{DurabilityLevel, Journal, OpenError, ReadError, RecordDamage};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

fn fixture(version: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journal");
    root.join(format!("v{version}")).join("journal.db")
}

/// Copies the fixture, because opening may migrate it.
fn copy_fixture(version: u32) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::copy(fixture(version), &path).unwrap();
    (dir, path)
}

fn open(path: &Path) -> Result<Journal, OpenError> {
    Journal::open(path, DurabilityLevel::Process)
}

fn open_error(path: &Path) -> OpenError {
    match open(path) {
        Ok(_) => panic!("the file was opened"),
        Err(error) => error,
    }
}

fn read_lines(journal: &Journal, stream: &str) -> Vec<String> {
    let events = journal.read_events(stream, 0, usize::MAX, usize::MAX).unwrap();
    assert!(events.iter().map(|it| it.seq).eq(1..=events.len() as u64));
    events.iter().map(|it| String::from_utf8(it.line.to_vec()).unwrap()).collect()
}

/// Checks the content that `examples/journal_fixture.rs` writes.
fn check_fixture(journal: &Journal) {
    let streams = journal.list_streams().unwrap();
    let streams: Vec<_> = streams
        .iter()
        .map(|it| (&*it.name, it.epoch, it.head, &it.summary[..], it.summary_upto))
        .collect();
    let expected: [(&str, u64, u64, &[u8], u64); 3] = [
        ("empty", 1, 0, b"", 0),
        ("odd 'name' \u{1F980}", 1, 3, b"", 0),
        ("plain", 2, 8, b"two", 7),
    ];
    assert_eq!(streams, expected);

    let mut plain: Vec<_> = (1..=8).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    plain[4] = format!(r#"{{"n":5,"pad":"{}"}}"#, "x".repeat(262_144));
    assert_eq!(read_lines(journal, "plain"), plain);
    assert_eq!(read_lines(journal, "odd 'name' \u{1F980}"), ["", "no json", "\u{e4}\t\0"]);
    for none in ["empty", "gone", "swept"] {
        assert_eq!(read_lines(journal, none), [""; 0]);
    }
}

#[test]
fn journal_of_format_1_is_read_exactly_and_can_be_continued() {
    let (_dir, path) = copy_fixture(1);
    let journal = open(&path).unwrap();
    check_fixture(&journal);
    journal.run_upkeep().unwrap();
    check_fixture(&journal);
    drop(journal);
    check_fixture(&open(&path).unwrap());

    let journal = open(&path).unwrap();
    let claim = journal.claim_stream("plain").unwrap();
    assert_eq!((claim.epoch, claim.head), (3, 8));
    // The deleted streams had epoch 1. Their writers must not write to new streams of the same
    // name.
    assert_eq!(journal.claim_stream("gone").unwrap().epoch, 2);
}

#[test]
fn journal_of_a_newer_format_is_refused_with_advice_and_not_changed() {
    let (_dir, path) = copy_fixture(1);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 999).unwrap();
    conn.close().unwrap();
    let before = fs::read(&path).unwrap();

    let error = open_error(&path);
    assert!(matches!(error, OpenError::TooNew { actual: 999, supported: 1, .. }), "{error:?}");
    let text = format!(
        "journal `{}` has format 999, this version reads formats up to 1: \
         use a newer jackfield, or move the file aside to start afresh",
        path.display()
    );
    assert_eq!(error.to_string(), text);
    assert!(fs::read(&path).unwrap() == before, "it was changed");
}

#[test]
fn foreign_file_is_refused_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "a text that is long enough to be no database\n".repeat(100)).unwrap();
    let database = dir.path().join("database");
    let conn = rusqlite::Connection::open(&database).unwrap();
    conn.execute_batch("CREATE TABLE stream (name TEXT)").unwrap();
    conn.close().unwrap();
    for path in [text, database] {
        let before = fs::read(&path).unwrap();
        let error = open_error(&path);
        assert!(matches!(error, OpenError::NotAJournal { .. }), "{error:?}");
        assert!(error.to_string().contains("move it aside"), "{error}");
        assert!(fs::read(&path).unwrap() == before, "it was changed");
    }
}

#[test]
fn open_error_contains_the_path_and_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("no such directory").join("journal.db")] {
        let error = open_error(&path);
        assert!(matches!(error, OpenError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(&path.display().to_string()));
        assert!(error.source().is_some());
    }
}

#[test]
fn empty_file_becomes_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file:journal.db?mode=ro");
    fs::write(&path, "").unwrap();
    let journal = open(&path).unwrap();
    assert_eq!(journal.claim_stream("s").unwrap().head, 0);
}

#[test]
fn flipped_bit_is_reported_with_its_position() {
    let (_dir, path) = copy_fixture(1);
    let mut bytes = fs::read(&path).unwrap();
    let find = |needle: &[u8]| bytes.windows(needle.len()).position(|it| it == needle).unwrap();
    let (small, large) = (find(br#"{"n":7}"#), find(br#""n":5,"pad"#));
    bytes[small + 5] ^= 1;
    bytes[large + 100_000] ^= 4;
    fs::write(&path, bytes).unwrap();

    let journal = open(&path).unwrap();
    let read = |after| journal.read_events("plain", after, usize::MAX, usize::MAX);
    let seqs = |after| read(after).unwrap().iter().map(|it| it.seq).collect::<Vec<_>>();
    assert_eq!(seqs(0), [1, 2, 3, 4]);
    assert_eq!(seqs(5), [6]);
    assert_eq!(seqs(7), [8]);
    for (after, expected) in [(4, RecordDamage::Blob), (6, RecordDamage::Checksum)] {
        let error = read(after).unwrap_err();
        let ReadError::Damaged { stream, first, damage } = &error else { panic!("{error}") };
        assert_eq!((&**stream, *first, *damage), ("plain", after + 1, expected));
        assert!(error.to_string().starts_with("stream `plain` is damaged at event"), "{error}");
    }
}
