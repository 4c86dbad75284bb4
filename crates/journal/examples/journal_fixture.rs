//! Creates the journal that `tests/file_format.rs` expects every later version to read.
//!
//! Run `journal_fixture <file>` by hand, once per format: `fixtures/journal/v<n>/journal.db` is
//! committed and never created again.

use bytes::Bytes;
use jackfield_journal::{AppendRequest, DurabilityLevel, Journal};
use std::{env, path::Path};

fn main() {
    let file = env::args().nth(1).expect("usage: journal_fixture <file>");
    let path = Path::new(&file);
    assert!(!path.exists(), "a fixture is created only once");
    let journal = Journal::open(path, DurabilityLevel::Power).expect("the journal opens");
    let claim =
        |stream: &str| journal.claim_stream(stream).expect("the stream can be claimed").epoch;

    let gone = claim("gone");
    let swept = claim("swept");
    let plain = claim("plain");
    claim("empty");
    let odd = claim("odd 'name' \u{1F980}");
    for first in 1..=3 {
        append_lines(&journal, "gone", gone, first, &[r#"{"of":"gone"}"#], None);
        append_lines(&journal, "swept", swept, first, &[r#"{"of":"swept"}"#], None);
    }
    journal.delete_stream("swept").expect("the stream exists");
    append_lines(
        &journal,
        "plain",
        plain,
        1,
        &[r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#],
        Some("one"),
    );
    append_lines(&journal, "odd 'name' \u{1F980}", odd, 1, &["", "no json", "\u{e4}\t\0"], None);
    journal.run_upkeep().expect("upkeep works");

    // The following records stay unindexed.
    let plain = claim("plain");
    let large = format!(r#"{{"n":5,"pad":"{}"}}"#, "x".repeat(262_144));
    append_lines(&journal, "plain", plain, 4, &[r#"{"n":4}"#, &large, r#"{"n":6}"#], None);
    append_lines(&journal, "plain", plain, 7, &[r#"{"n":7}"#], Some("two"));
    append_lines(&journal, "plain", plain, 8, &[r#"{"n":8}"#], None);
    journal.delete_stream("gone").expect("the stream exists");
}

fn append_lines(
    journal: &Journal,
    stream: &str,
    epoch: u64,
    first: u64,
    lines: &[&str],
    summary: Option<&'static str>,
) {
    let outcomes = journal.append_batch(&[AppendRequest {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).expect("few lines"),
        body: Bytes::from(lines.join("\n")),
        summary: summary.map(Bytes::from),
    }]);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}
