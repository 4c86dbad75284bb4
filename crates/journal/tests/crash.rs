//! A writer is killed at a random moment, again and again, and the tail of its WAL is torn: what
//! was acknowledged is there, and what is there has no gap.

use jackfield_journal::{Append, Durability, Journal};
use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, Read},
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Numbers that look random; the seed is printed by whoever fails.
struct Dice {
    state: u64,
}

impl Dice {
    fn new() -> Dice {
        Dice { state: RandomState::new().hash_one(0) | 1 }
    }

    fn roll(&mut self, range: Range<u64>) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        range.start + self.state % (range.end - range.start)
    }
}

/// The example, built together with this test.
fn writer() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(format!("journal_writer{}", std::env::consts::EXE_SUFFIX))
}

/// One life of a writer, up to its violent end. Returns the last event it acknowledged.
fn live_and_die(file: &Path, way: &str, dice: &mut Dice) -> Option<u64> {
    let per_append = dice.roll(1..25);
    let mut child = Command::new(writer())
        .arg(file)
        .args([way, &per_append.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example `journal_writer` is built with the tests");
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut last = None;
    // Some die while they open or claim, most while they write.
    let acks = if dice.roll(0..8) == 0 { 0 } else { dice.roll(1..60) };
    for _ in 0..acks {
        last = Some(ack(&mut said).expect("it lives until we kill it"));
    }
    let end = Instant::now() + Duration::from_micros(dice.roll(0..4000));
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "it did not end by itself");
    // What it had said before it died still lies in the pipe.
    while let Some(head) = ack(&mut said) {
        last = Some(head);
    }
    last
}

/// One whole line: a line that was cut short by the end acknowledges nothing.
fn ack(said: &mut impl BufRead) -> Option<u64> {
    let mut line = String::new();
    said.take(100).read_line(&mut line).unwrap();
    line.strip_suffix('\n').map(|it| it.parse().unwrap())
}

/// Reads a stream to its end and checks every event. Returns the head.
fn check(journal: &Journal, stream: &str) -> u64 {
    let mut head = 0;
    loop {
        let events = journal.read(stream, head, 500, 1 << 20).unwrap();
        if events.is_empty() {
            return head;
        }
        for event in events {
            assert_eq!(event.seq, head + 1);
            let start = format!(r#"{{"seq":{},"pad":""#, event.seq);
            assert!(event.line.starts_with(start.as_bytes()));
            assert!(event.line.ends_with(br#""}"#));
            head = event.seq;
        }
    }
}

fn open(file: &Path) -> Journal {
    Journal::open(file, Durability::Process).unwrap()
}

fn kill_again_and_again(way: &str, lives: u32) {
    let mut dice = Dice::new();
    let seed = dice.state;
    let mut written = 0;
    for family in 0..lives / 10 {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal.db");
        let mut head = 0;
        for life in 0..10 {
            let acknowledged = live_and_die(&file, way, &mut dice).unwrap_or(head);
            let journal = open(&file);
            let found = ["a", "b"].map(|it| check(&journal, it));
            let story = format!("seed {seed}, family {family}, life {life}");
            assert!(acknowledged <= found[0], "{story}: {acknowledged} was lost, {found:?} left");
            assert_eq!(found[0], found[1], "{story}: half a transaction");
            assert!(head <= found[0], "{story}: {head} was there before, {found:?} is now");
            for stream in journal.streams().unwrap() {
                assert_eq!(stream.head, found[0], "{story}");
            }
            head = found[0];
        }
        written += head;
    }
    assert!(u64::from(lives) < written, "they hardly ever wrote: {written}");
}

#[test]
fn killed_writer_loses_nothing_that_it_acknowledged() {
    kill_again_and_again("direct", 20);
}

#[test]
fn killed_writer_with_threads_loses_nothing_that_it_acknowledged() {
    kill_again_and_again("port", 20);
}

#[test]
fn writer_killed_while_it_empties_the_wal_loses_nothing_that_it_acknowledged() {
    kill_again_and_again("reopen", 20);
}

#[test]
#[ignore = "nightly: half a minute of kills"]
fn writer_killed_hundreds_of_times_loses_nothing_that_it_acknowledged() {
    for way in ["direct", "port", "reopen"] {
        kill_again_and_again(way, 100);
    }
}

/// The database and the WAL that a killed writer left, opened by nobody since.
fn remains(dice: &mut Dice) -> (TempDir, Vec<u8>, Vec<u8>) {
    loop {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal.db");
        let acknowledged = live_and_die(&file, "direct", dice);
        let database = fs::read(&file).unwrap_or_default();
        let wal = fs::read(dir.path().join("journal.db-wal")).unwrap_or_default();
        if acknowledged.is_some_and(|it| 0 < it) && !wal.is_empty() {
            return (dir, database, wal);
        }
    }
}

fn tear(wal: &mut Vec<u8>, dice: &mut Dice) -> String {
    let at = dice.roll(0..wal.len() as u64 + 1);
    let from = usize::try_from(at).unwrap();
    match dice.roll(0..4) {
        0 => {
            wal.truncate(from);
            format!("cut at {at}")
        }
        1 => {
            wal[from..].fill(0);
            format!("zeros from {at}")
        }
        2 => {
            wal[from..].fill_with(|| dice.roll(0..256).to_le_bytes()[0]);
            format!("garbage from {at}")
        }
        _ => {
            // A sector that never reached the disk, while later ones did.
            let sector = from / 512 * 512;
            let end = wal.len().min(sector + 512);
            wal[sector..end].fill(0);
            format!("a hole at {sector}")
        }
    }
}

#[test]
fn a_torn_wal_leaves_a_gapless_prefix() {
    let mut dice = Dice::new();
    let seed = dice.state;
    let mut heads = Vec::new();
    for _ in 0..5 {
        let (_killed, database, wal) = remains(&mut dice);
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("journal.db");
            let mut torn = wal.clone();
            let story = format!("seed {seed}: {}", tear(&mut torn, &mut dice));
            fs::write(&file, &database).unwrap();
            fs::write(dir.path().join("journal.db-wal"), torn).unwrap();

            let journal = open(&file);
            let found = ["a", "b"].map(|it| check(&journal, it));
            assert_eq!(found[0], found[1], "{story}: half a transaction");
            heads.push(found[0]);
            go_on(&journal, found[0], &story);
        }
    }
    let distinct = heads.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(5 < distinct, "they were torn at very different places: {heads:?}");
}

/// What is left is a journal like any other.
fn go_on(journal: &Journal, head: u64, story: &str) {
    let claim = journal.claim("a").unwrap();
    assert_eq!(claim.head, head, "{story}");
    let line = format!(r#"{{"seq":{},"pad":""}}"#, head + 1);
    let outcomes = journal.append(&[Append {
        stream: "a".into(),
        epoch: claim.epoch,
        first: head + 1,
        count: 1,
        body: line.into(),
        summary: None,
    }]);
    assert!(matches!(outcomes[..], [Ok(it)] if it == head + 1), "{story}: {outcomes:?}");
    journal.upkeep().unwrap();
    assert_eq!(check(journal, "a"), head + 1, "{story}");
}
