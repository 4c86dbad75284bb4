//! Makes the journal that `tests/format.rs` expects every later version to read.
//!
//! `journal_fixture <file>`, once per format, by hand: `fixtures/journal/v<n>/journal.db` is
//! committed and never made again.

use bytes::Bytes;
use jackfield_journal::{Append, Durability, Journal};
use std::{env, path::Path};

fn main() {
    let file = env::args().nth(1).expect("usage: journal_fixture <file>");
    let path = Path::new(&file);
    assert!(!path.exists(), "a fixture is made once");
    let journal = Journal::open(path, Durability::Power).expect("the journal opens");
    let claim = |stream: &str| journal.claim(stream).expect("the stream can be claimed").epoch;

    let gone = claim("gone");
    let swept = claim("swept");
    let plain = claim("plain");
    claim("empty");
    let odd = claim("odd 'name' \u{1F980}");
    for first in 1..=3 {
        write(&journal, "gone", gone, first, &[r#"{"of":"gone"}"#], None);
        write(&journal, "swept", swept, first, &[r#"{"of":"swept"}"#], None);
    }
    journal.delete("swept").expect("it is there");
    write(&journal, "plain", plain, 1, &[r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#], Some("one"));
    write(&journal, "odd 'name' \u{1F980}", odd, 1, &["", "no json", "\u{e4}\t\0"], None);
    journal.upkeep().expect("upkeep works");

    // From here on nothing is placed.
    let plain = claim("plain");
    let large = format!(r#"{{"n":5,"pad":"{}"}}"#, "x".repeat(262_144));
    write(&journal, "plain", plain, 4, &[r#"{"n":4}"#, &large, r#"{"n":6}"#], None);
    write(&journal, "plain", plain, 7, &[r#"{"n":7}"#], Some("two"));
    write(&journal, "plain", plain, 8, &[r#"{"n":8}"#], None);
    journal.delete("gone").expect("it is there");
}

fn write(
    journal: &Journal,
    stream: &str,
    epoch: u64,
    first: u64,
    lines: &[&str],
    summary: Option<&'static str>,
) {
    let outcomes = journal.append(&[Append {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).expect("not that many"),
        body: Bytes::from(lines.join("\n")),
        summary: summary.map(Bytes::from),
    }]);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}
