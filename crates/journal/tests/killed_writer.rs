//! Kills a writer at random moments and damages the tail of its WAL: acknowledged events are never
//! lost, and the remaining events have no gaps.

use jackfield_journal::{AppendRequest, DurabilityLevel, Journal};
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

/// Pseudo-random numbers. A failing test prints the seed.
struct RandomNumbers {
    state: u64,
}

impl RandomNumbers {
    fn new() -> RandomNumbers {
        RandomNumbers { state: RandomState::new().hash_one(0) | 1 }
    }

    fn next_in(&mut self, range: Range<u64>) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        range.start + self.state % (range.end - range.start)
    }
}

/// The path of the example, which is built together with this test.
fn writer_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(format!("journal_writer{}", std::env::consts::EXE_SUFFIX))
}

/// Starts a writer and kills it. Returns the last event that it acknowledged.
fn run_and_kill_writer(file: &Path, mode: &str, random: &mut RandomNumbers) -> Option<u64> {
    let per_append = random.next_in(1..25);
    let mut child = Command::new(writer_path())
        .arg(file)
        .args([mode, &per_append.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example `journal_writer` is built with the tests");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut last = None;
    // Some are killed while they open or claim, most while they write.
    let acks = if random.next_in(0..8) == 0 { 0 } else { random.next_in(1..60) };
    for _ in 0..acks {
        last = Some(read_acknowledgment(&mut output).expect("the writer runs until it is killed"));
    }
    let end = Instant::now() + Duration::from_micros(random.next_in(0..4000));
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "the writer was killed by a signal");
    // The pipe still contains what the writer printed before it was killed.
    while let Some(head) = read_acknowledgment(&mut output) {
        last = Some(head);
    }
    last
}

/// Reads one complete line. An incomplete last line acknowledges nothing.
fn read_acknowledgment(output: &mut impl BufRead) -> Option<u64> {
    let mut line = String::new();
    output.take(100).read_line(&mut line).unwrap();
    line.strip_suffix('\n').map(|it| it.parse().unwrap())
}

/// Reads a stream to its end and checks every event. Returns the head.
fn check_stream(journal: &Journal, stream: &str) -> u64 {
    let mut head = 0;
    loop {
        let events = journal.read_events(stream, head, 500, 1 << 20).unwrap();
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

fn open_journal(file: &Path) -> Journal {
    Journal::open(file, DurabilityLevel::Process).unwrap()
}

fn kill_repeatedly(mode: &str, runs: u32) {
    let mut random = RandomNumbers::new();
    let seed = random.state;
    let mut written = 0;
    for round in 0..runs / 10 {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal.db");
        let mut head = 0;
        for run in 0..10 {
            let acknowledged = run_and_kill_writer(&file, mode, &mut random).unwrap_or(head);
            let journal = open_journal(&file);
            let found = ["a", "b"].map(|it| check_stream(&journal, it));
            let context = format!("seed {seed}, round {round}, run {run}");
            assert!(acknowledged <= found[0], "{context}: {acknowledged} was lost, {found:?} left");
            assert_eq!(found[0], found[1], "{context}: half a transaction");
            assert!(head <= found[0], "{context}: {head} was there before, {found:?} is now");
            for stream in journal.list_streams().unwrap() {
                assert_eq!(stream.head, found[0], "{context}");
            }
            head = found[0];
        }
        written += head;
    }
    assert!(u64::from(runs) < written, "the writers wrote too little: {written}");
}

#[test]
fn killed_writer_loses_nothing_that_it_acknowledged() {
    kill_repeatedly("direct", 20);
}

#[test]
fn killed_writer_with_threads_loses_nothing_that_it_acknowledged() {
    kill_repeatedly("non-blocking", 20);
}

#[test]
fn writer_killed_while_it_empties_the_wal_loses_nothing_that_it_acknowledged() {
    kill_repeatedly("reopen", 20);
}

#[test]
#[ignore = "nightly: half a minute of kills"]
fn writer_killed_hundreds_of_times_loses_nothing_that_it_acknowledged() {
    for mode in ["direct", "non-blocking", "reopen"] {
        kill_repeatedly(mode, 100);
    }
}

/// Returns the database and the WAL that a killed writer left, before they are opened again.
fn leave_wal(random: &mut RandomNumbers) -> (TempDir, Vec<u8>, Vec<u8>) {
    loop {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal.db");
        let acknowledged = run_and_kill_writer(&file, "direct", random);
        let database = fs::read(&file).unwrap_or_default();
        let wal = fs::read(dir.path().join("journal.db-wal")).unwrap_or_default();
        if acknowledged.is_some_and(|it| 0 < it) && !wal.is_empty() {
            return (dir, database, wal);
        }
    }
}

fn damage_wal(wal: &mut Vec<u8>, random: &mut RandomNumbers) -> String {
    let at = random.next_in(0..wal.len() as u64 + 1);
    let from = usize::try_from(at).unwrap();
    match random.next_in(0..4) {
        0 => {
            wal.truncate(from);
            format!("cut at {at}")
        }
        1 => {
            wal[from..].fill(0);
            format!("zeros from {at}")
        }
        2 => {
            wal[from..].fill_with(|| random.next_in(0..256).to_le_bytes()[0]);
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
fn damaged_wal_leaves_a_prefix_without_gaps() {
    let mut random = RandomNumbers::new();
    let seed = random.state;
    let mut heads = Vec::new();
    for _ in 0..5 {
        let (_killed, database, wal) = leave_wal(&mut random);
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("journal.db");
            let mut damaged = wal.clone();
            let context = format!("seed {seed}: {}", damage_wal(&mut damaged, &mut random));
            fs::write(&file, &database).unwrap();
            fs::write(dir.path().join("journal.db-wal"), damaged).unwrap();

            let journal = open_journal(&file);
            let found = ["a", "b"].map(|it| check_stream(&journal, it));
            assert_eq!(found[0], found[1], "{context}: half a transaction");
            heads.push(found[0]);
            check_usable(&journal, found[0], &context);
        }
    }
    let distinct = heads.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(5 < distinct, "the WALs were damaged at very different positions: {heads:?}");
}

/// Checks that the remaining journal can be written and read.
fn check_usable(journal: &Journal, head: u64, context: &str) {
    let claim = journal.claim_stream("a").unwrap();
    assert_eq!(claim.head, head, "{context}");
    let line = format!(r#"{{"seq":{},"pad":""}}"#, head + 1);
    let outcomes = journal.append_batch(&[AppendRequest {
        stream: "a".into(),
        epoch: claim.epoch,
        first: head + 1,
        count: 1,
        body: line.into(),
        summary: None,
    }]);
    assert!(matches!(outcomes[..], [Ok(it)] if it == head + 1), "{context}: {outcomes:?}");
    journal.run_upkeep().unwrap();
    assert_eq!(check_stream(journal, "a"), head + 1, "{context}");
}
