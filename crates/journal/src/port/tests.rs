//! What a loop may count on: no waiting, nothing overtaken, nothing lost at the end.

use super::*;
use crate::journal::Durability;
use bytes::Bytes;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;
use tempfile::TempDir;

/// A bound for what should take milliseconds.
const SOON: Duration = Duration::from_secs(30);

struct Bench {
    dir: TempDir,
    journal: Journal,
    port: Port,
    done: Receiver<Done>,
}

impl Bench {
    fn new(durability: Durability) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("j.db"), durability).unwrap();
        let (tx, done) = mpsc::sync_channel(100_000);
        let port = Port::start(journal.clone(), move |it| tx.send(it).unwrap());
        let bench = Bench { dir, journal, port, done };
        // The upkeep that every start calls for would otherwise be in the way at random moments.
        bench.wait_until(|it| !it.journal.upkeep_is_due());
        bench.journal.upkeep().unwrap();
        bench
    }

    /// Another process, as far as SQLite is concerned.
    fn stranger(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("j.db")).unwrap()
    }

    fn next(&self) -> Done {
        self.done.recv_timeout(SOON).unwrap()
    }

    fn wait_until(&self, condition: impl Fn(&Bench) -> bool) {
        let deadline = Instant::now() + SOON;
        while !condition(self) {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
    }

    fn placed(&self) -> i64 {
        self.stranger().query_row("SELECT placed FROM mark", [], |row| row.get(0)).unwrap()
    }
}

fn append(stream: &str, epoch: u64, first: u64, count: u32, bytes: usize) -> Append {
    let line = "x".repeat(bytes);
    let body = vec![line; count as usize].join("\n");
    Append { stream: stream.into(), epoch, first, count, body: body.into(), summary: None }
}

fn upto(done: &Done) -> (&str, u64) {
    match done {
        Done::Appended { stream, upto } => (stream, *upto),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_small_batch_is_committed_at_once() {
    let mut it = Bench::new(Durability::Process);
    let [a, b] = ["a", "b"].map(|name| it.journal.claim(name).unwrap().epoch);
    for round in 0..100 {
        let batch = vec![append("a", a, round * 2 + 1, 2, 10), append("b", b, round + 1, 1, 10)];
        let done = it.port.append(batch);
        let done: Vec<_> = done.iter().map(upto).collect();
        assert_eq!(done, [("a", round * 2 + 2), ("b", round + 1)]);
    }
    assert_eq!(it.port.append(Vec::new()).len(), 0);
    assert_eq!(it.journal.read("a", 0, 1000, 100_000).unwrap().len(), 200);
    it.port.stop();
    assert_eq!(it.done.try_recv().unwrap_err(), mpsc::TryRecvError::Disconnected);
}

#[test]
fn a_refusal_is_told_at_once_too() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    it.journal.claim("s").unwrap();
    let done = it.port.append(vec![append("s", epoch, 5, 1, 1)]);
    let [Done::AppendFailed { first: 5, error: AppendError::Fenced { .. }, .. }] = &done[..] else {
        panic!("{done:?}")
    };
}

#[test]
fn large_batches_are_committed_by_the_writer_thread_in_order() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    let mut queued = 0;
    for round in 0..50 {
        let done = it.port.append(vec![append("s", epoch, round * 33 + 1, 33, 10)]);
        assert!(done.is_empty(), "33 events are too many to do at once");
        // A small one behind it: at once or queued, but never before it.
        queued += 1;
        if round == 49 {
            let done = it.port.append(vec![append("s", epoch, 50 * 33 + 1, 1, 10)]);
            queued += u64::from(done.is_empty());
        }
    }
    let mut last = 0;
    for _ in 0..queued {
        let done = it.next();
        assert!(last < upto(&done).1);
        last = upto(&done).1;
    }
    let done = it.port.append(vec![append("s", epoch, 1, 1, 100_000)]);
    assert!(done.is_empty(), "100,000 bytes are too many to do at once");
    assert_eq!(upto(&it.next()).1, 50 * 33 + 1);
}

#[test]
fn a_stranger_who_writes_does_not_stall_the_caller_and_nothing_is_overtaken() {
    let mut it = Bench::new(Durability::Process);
    let [a, b] = ["a", "b"].map(|name| it.journal.claim(name).unwrap().epoch);
    let stranger = it.stranger();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(it.port.append(vec![append("a", a, 1, 1, 10)]).is_empty());
    assert!(it.port.append(vec![append("a", a, 2, 1, 10)]).is_empty());
    assert!(it.port.append(vec![append("b", b, 1, 1, 10)]).is_empty());
    it.port.delete("b".into());
    assert!(it.port.append(vec![append("b", b, 2, 1, 10)]).is_empty());
    assert!(it.done.try_recv().is_err());
    stranger.execute_batch("COMMIT").unwrap();
    assert_eq!(upto(&it.next()), ("a", 1));
    assert_eq!(upto(&it.next()), ("a", 2));
    assert_eq!(upto(&it.next()), ("b", 1));
    assert!(matches!(it.next(), Done::Deleted { .. }));
    assert!(matches!(it.next(), Done::AppendFailed { error: AppendError::Fenced { .. }, .. }));
}

#[test]
fn with_power_durability_the_caller_never_waits_for_the_disk() {
    let mut it = Bench::new(Durability::Power);
    let epoch = it.journal.claim("s").unwrap().epoch;
    for seq in 1..=20 {
        assert!(it.port.append(vec![append("s", epoch, seq, 1, 10)]).is_empty());
        assert_eq!(upto(&it.next()), ("s", seq));
    }
}

#[test]
fn reads_are_answered_by_token() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    let _ = it.port.append(vec![append("s", epoch, 1, 10, 3)]);
    assert!(it.port.read(7, "s".into(), 8, 100, 1000).is_none());
    assert!(it.port.read(8, "nobody".into(), 0, 100, 1000).is_none());
    let Done::Read { token: 7, stream, after: 8, events } = it.next() else { panic!() };
    assert_eq!((&*stream, events.len()), ("s", 2));
    assert_eq!(events[0], Event { seq: 9, line: Bytes::from("xxx") });
    let Done::Read { token: 8, events, .. } = it.next() else { panic!() };
    assert_eq!(events, []);

    it.stranger().execute_batch("UPDATE record SET body = x'20' WHERE 0 < count").unwrap();
    assert!(it.port.read(9, "s".into(), 3, 100, 1000).is_none());
    let Done::ReadFailed { token: 9, after: 3, error, .. } = it.next() else { panic!() };
    assert!(matches!(error, ReadError::Damaged { first: 4, .. }), "{error}");
}

#[test]
fn stopping_flushes_what_is_queued() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    let stranger = it.stranger();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    for round in 0..20 {
        assert!(it.port.append(vec![append("s", epoch, round * 40 + 1, 40, 100)]).is_empty());
    }
    it.port.delete("t".into());
    assert!(it.port.read(1, "s".into(), 0, 1, 1).is_none());
    let Bench { dir, journal, port, done } = it;
    let Way::Threads(threads) = port.way() else { panic!("not on this machine") };
    let queue = threads.queue().clone();
    let stopping = thread::spawn(|| port.stop());
    let deadline = Instant::now() + SOON;
    while !queue.is_closed() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    stranger.execute_batch("COMMIT").unwrap();
    stopping.join().unwrap();
    assert_eq!(journal.read("s", 0, 10_000, 1 << 30).unwrap().len(), 800);
    assert_eq!(done.iter().count(), 22);
    drop((journal, dir));
}

#[test]
fn too_much_waiting_is_refused_and_may_be_tried_again() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    let stranger = it.stranger();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut first = 1;
    let refused = loop {
        let done = it.port.append(vec![append("s", epoch, first, 1, 200_000)]);
        if !done.is_empty() {
            break done;
        }
        first += 1;
        assert!(first < 100);
    };
    let [Done::AppendFailed { error: AppendError::Overloaded { waiting_bytes, .. }, .. }] =
        &refused[..]
    else {
        panic!("{refused:?}")
    };
    assert!(0 < *waiting_bytes && it.port.waiting_bytes() <= WAITING_BYTES_MAX);
    stranger.execute_batch("COMMIT").unwrap();
    for seq in 1..first {
        assert_eq!(upto(&it.next()), ("s", seq));
    }
    assert!(it.port.append(vec![append("s", epoch, first, 1, 200_000)]).is_empty());
    assert_eq!(upto(&it.next()), ("s", first));
}

#[test]
fn too_many_reads_are_refused() {
    let (go, wait) = mpsc::sync_channel::<()>(0);
    let wait = Mutex::new(wait);
    // The reader thread is held up by whoever takes its answers.
    let port = Port::start(Journal::memory(), move |_| {
        let _ = wait.lock().unwrap().recv();
    });
    let refused = (0..100).find_map(|token| port.read(token, "s".into(), 0, 1, 1)).unwrap();
    assert!(matches!(refused, Done::ReadFailed { error: ReadError::Overloaded { .. }, .. }));
    drop(go);
    port.stop();
}

#[test]
fn the_keeper_does_the_upkeep() {
    let mut it = Bench::new(Durability::Process);
    let epoch = it.journal.claim("s").unwrap().epoch;
    let before = it.placed();
    for seq in 1..=5_000 {
        if it.port.append(vec![append("s", epoch, seq, 1, 10)]).is_empty() {
            assert_eq!(upto(&it.next()), ("s", seq));
        }
    }
    it.wait_until(|it| before + 4_000 < it.placed());
    it.port.delete("s".into());
    assert!(matches!(it.next(), Done::Deleted { .. }));
    let left = |it: &Bench| -> i64 {
        let count = "SELECT count(*) FROM record WHERE 0 < count";
        it.stranger().query_row(count, [], |row| row.get(0)).unwrap()
    };
    it.wait_until(|it| left(it) == 0);
    assert!(matches!(it.done.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
}

#[test]
fn a_panic_in_on_done_is_not_swallowed() {
    let port = Port::start(Journal::memory(), |_| panic!("of the callback"));
    assert!(port.read(1, "s".into(), 0, 1, 1).is_none());
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| port.stop())).unwrap_err();
    assert_eq!(caught.downcast_ref(), Some(&"of the callback"));
}
