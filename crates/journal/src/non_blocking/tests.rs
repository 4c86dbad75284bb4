//! Guarantees for the event loop: calls do not block, operations keep their order, and shutdown
//! loses nothing.

use super::*;
use crate::durability::DurabilityLevel;
use bytes::Bytes;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;
use tempfile::TempDir;

/// A bound for operations that should take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(30);

struct TestJournal {
    dir: TempDir,
    journal: Journal,
    non_blocking: NonBlockingJournal,
    completions: Receiver<JournalCompletion>,
}

impl TestJournal {
    fn new(durability: DurabilityLevel) -> TestJournal {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("j.db"), durability).unwrap();
        let (tx, completions) = mpsc::sync_channel(100_000);
        let non_blocking =
            NonBlockingJournal::start(journal.clone(), move |it| tx.send(it).unwrap());
        let fixture = TestJournal { dir, journal, non_blocking, completions };
        // Every start requests upkeep, which would otherwise run at a random moment of the test.
        fixture.wait_until(|it| !it.journal.is_upkeep_due());
        fixture.journal.run_upkeep().unwrap();
        fixture
    }

    /// A second connection, which to SQLite is like another process.
    fn other_process(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("j.db")).unwrap()
    }

    fn next_completion(&self) -> JournalCompletion {
        self.completions.recv_timeout(TIMEOUT).unwrap()
    }

    fn wait_until(&self, condition: impl Fn(&TestJournal) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !condition(self) {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
    }

    fn indexed_upto(&self) -> i64 {
        self.other_process().query_row("SELECT placed FROM mark", [], |row| row.get(0)).unwrap()
    }
}

fn new_append(
    stream: &str,
    epoch: u64,
    first: u64,
    count: u32,
    line_bytes: usize,
) -> AppendRequest {
    let line = "x".repeat(line_bytes);
    let body = vec![line; count as usize].join("\n");
    AppendRequest { stream: stream.into(), epoch, first, count, body: body.into(), summary: None }
}

fn appended_upto(done: &JournalCompletion) -> (&str, u64) {
    match done {
        JournalCompletion::Appended { stream, upto } => (stream, *upto),
        other => panic!("{other:?}"),
    }
}

#[test]
fn small_batch_is_committed_inline() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let [a, b] = ["a", "b"].map(|name| it.journal.claim_stream(name).unwrap().epoch);
    for round in 0..100 {
        let batch =
            vec![new_append("a", a, round * 2 + 1, 2, 10), new_append("b", b, round + 1, 1, 10)];
        let done = it.non_blocking.append_batch(batch);
        let done: Vec<_> = done.iter().map(appended_upto).collect();
        assert_eq!(done, [("a", round * 2 + 2), ("b", round + 1)]);
    }
    assert_eq!(it.non_blocking.append_batch(Vec::new()).len(), 0);
    assert_eq!(it.journal.read_events("a", 0, 1000, 100_000).unwrap().len(), 200);
    it.non_blocking.stop();
    assert_eq!(it.completions.try_recv().unwrap_err(), mpsc::TryRecvError::Disconnected);
}

#[test]
fn refusal_of_a_small_batch_is_returned_inline() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    it.journal.claim_stream("s").unwrap();
    let done = it.non_blocking.append_batch(vec![new_append("s", epoch, 5, 1, 1)]);
    let [JournalCompletion::AppendFailed { first: 5, error: AppendError::Fenced { .. }, .. }] =
        &done[..]
    else {
        panic!("{done:?}")
    };
}

#[test]
fn large_batches_are_committed_by_the_writer_thread_in_order() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    let mut queued = 0;
    for round in 0..50 {
        let done =
            it.non_blocking.append_batch(vec![new_append("s", epoch, round * 33 + 1, 33, 10)]);
        assert!(done.is_empty(), "33 events are too many for an inline commit");
        // A small batch after it is committed inline or queued, but never before it.
        queued += 1;
        if round == 49 {
            let done =
                it.non_blocking.append_batch(vec![new_append("s", epoch, 50 * 33 + 1, 1, 10)]);
            queued += u64::from(done.is_empty());
        }
    }
    let mut last = 0;
    for _ in 0..queued {
        let done = it.next_completion();
        assert!(last < appended_upto(&done).1);
        last = appended_upto(&done).1;
    }
    let done = it.non_blocking.append_batch(vec![new_append("s", epoch, 1, 1, 100_000)]);
    assert!(done.is_empty(), "100,000 bytes are too many for an inline commit");
    assert_eq!(appended_upto(&it.next_completion()).1, 50 * 33 + 1);
}

#[test]
fn write_lock_of_another_process_does_not_block_the_caller_or_reorder_operations() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let [a, b] = ["a", "b"].map(|name| it.journal.claim_stream(name).unwrap().epoch);
    let other_process = it.other_process();
    other_process.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(it.non_blocking.append_batch(vec![new_append("a", a, 1, 1, 10)]).is_empty());
    assert!(it.non_blocking.append_batch(vec![new_append("a", a, 2, 1, 10)]).is_empty());
    assert!(it.non_blocking.append_batch(vec![new_append("b", b, 1, 1, 10)]).is_empty());
    it.non_blocking.start_delete("b".into());
    assert!(it.non_blocking.append_batch(vec![new_append("b", b, 2, 1, 10)]).is_empty());
    assert!(it.completions.try_recv().is_err());
    other_process.execute_batch("COMMIT").unwrap();
    assert_eq!(appended_upto(&it.next_completion()), ("a", 1));
    assert_eq!(appended_upto(&it.next_completion()), ("a", 2));
    assert_eq!(appended_upto(&it.next_completion()), ("b", 1));
    assert!(matches!(it.next_completion(), JournalCompletion::Deleted { .. }));
    assert!(matches!(
        it.next_completion(),
        JournalCompletion::AppendFailed { error: AppendError::Fenced { .. }, .. }
    ));
}

#[test]
fn with_power_durability_the_caller_never_waits_for_the_disk() {
    let mut it = TestJournal::new(DurabilityLevel::Power);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    for seq in 1..=20 {
        assert!(it.non_blocking.append_batch(vec![new_append("s", epoch, seq, 1, 10)]).is_empty());
        assert_eq!(appended_upto(&it.next_completion()), ("s", seq));
    }
}

#[test]
fn reads_are_answered_by_token() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    let _ = it.non_blocking.append_batch(vec![new_append("s", epoch, 1, 10, 3)]);
    assert!(it.non_blocking.start_read(7, "s".into(), 8, 100, 1000).is_none());
    assert!(it.non_blocking.start_read(8, "missing".into(), 0, 100, 1000).is_none());
    let JournalCompletion::Read { token: 7, stream, after: 8, events } = it.next_completion()
    else {
        panic!()
    };
    assert_eq!((&*stream, events.len()), ("s", 2));
    assert_eq!(events[0], StoredEvent { seq: 9, line: Bytes::from("xxx") });
    let JournalCompletion::Read { token: 8, events, .. } = it.next_completion() else { panic!() };
    assert_eq!(events, []);

    it.other_process().execute_batch("UPDATE record SET body = x'20' WHERE 0 < count").unwrap();
    assert!(it.non_blocking.start_read(9, "s".into(), 3, 100, 1000).is_none());
    let JournalCompletion::ReadFailed { token: 9, after: 3, error, .. } = it.next_completion()
    else {
        panic!()
    };
    assert!(matches!(error, ReadError::Damaged { first: 4, .. }), "{error}");
}

#[test]
fn stopping_flushes_the_queue() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    let other_process = it.other_process();
    other_process.execute_batch("BEGIN IMMEDIATE").unwrap();
    for round in 0..20 {
        assert!(
            it.non_blocking
                .append_batch(vec![new_append("s", epoch, round * 40 + 1, 40, 100)])
                .is_empty()
        );
    }
    it.non_blocking.start_delete("t".into());
    assert!(it.non_blocking.start_read(1, "s".into(), 0, 1, 1).is_none());
    let TestJournal { dir, journal, non_blocking, completions } = it;
    let JournalExecutor::Threads(threads) = non_blocking.executor() else {
        panic!("not a local journal")
    };
    let queue = threads.queue().clone();
    let stopping = thread::spawn(|| non_blocking.stop());
    let deadline = Instant::now() + TIMEOUT;
    while !queue.is_closed() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    other_process.execute_batch("COMMIT").unwrap();
    stopping.join().unwrap();
    assert_eq!(journal.read_events("s", 0, 10_000, 1 << 30).unwrap().len(), 800);
    assert_eq!(completions.iter().count(), 22);
    drop((journal, dir));
}

#[test]
fn append_beyond_the_queue_limit_is_refused_and_may_be_retried() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    let other_process = it.other_process();
    other_process.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut first = 1;
    let refused = loop {
        let done = it.non_blocking.append_batch(vec![new_append("s", epoch, first, 1, 200_000)]);
        if !done.is_empty() {
            break done;
        }
        first += 1;
        assert!(first < 100);
    };
    let [
        JournalCompletion::AppendFailed {
            error: AppendError::Overloaded { waiting_bytes, .. },
            ..
        },
    ] = &refused[..]
    else {
        panic!("{refused:?}")
    };
    assert!(0 < *waiting_bytes && it.non_blocking.waiting_bytes() <= WAITING_BYTES_MAX);
    other_process.execute_batch("COMMIT").unwrap();
    for seq in 1..first {
        assert_eq!(appended_upto(&it.next_completion()), ("s", seq));
    }
    assert!(
        it.non_blocking.append_batch(vec![new_append("s", epoch, first, 1, 200_000)]).is_empty()
    );
    assert_eq!(appended_upto(&it.next_completion()), ("s", first));
}

#[test]
fn reads_beyond_the_queue_limit_are_refused() {
    let (go, wait) = mpsc::sync_channel::<()>(0);
    let wait = Mutex::new(wait);
    // The completion handler blocks the reader thread.
    let non_blocking = NonBlockingJournal::start(Journal::in_memory(), move |_| {
        let _ = wait.lock().unwrap().recv();
    });
    let refused =
        (0..100).find_map(|token| non_blocking.start_read(token, "s".into(), 0, 1, 1)).unwrap();
    assert!(matches!(
        refused,
        JournalCompletion::ReadFailed { error: ReadError::Overloaded { .. }, .. }
    ));
    drop(go);
    non_blocking.stop();
}

#[test]
fn upkeep_thread_indexes_and_removes_records() {
    let mut it = TestJournal::new(DurabilityLevel::Process);
    let epoch = it.journal.claim_stream("s").unwrap().epoch;
    let before = it.indexed_upto();
    for seq in 1..=5_000 {
        if it.non_blocking.append_batch(vec![new_append("s", epoch, seq, 1, 10)]).is_empty() {
            assert_eq!(appended_upto(&it.next_completion()), ("s", seq));
        }
    }
    it.wait_until(|it| before + 4_000 < it.indexed_upto());
    it.non_blocking.start_delete("s".into());
    assert!(matches!(it.next_completion(), JournalCompletion::Deleted { .. }));
    let left = |it: &TestJournal| -> i64 {
        let count = "SELECT count(*) FROM record WHERE 0 < count";
        it.other_process().query_row(count, [], |row| row.get(0)).unwrap()
    };
    it.wait_until(|it| left(it) == 0);
    assert!(matches!(it.completions.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
}

#[test]
fn panic_in_the_completion_handler_is_propagated() {
    let non_blocking =
        NonBlockingJournal::start(Journal::in_memory(), |_| panic!("of the callback"));
    assert!(non_blocking.start_read(1, "s".into(), 0, 1, 1).is_none());
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| non_blocking.stop())).unwrap_err();
    assert_eq!(caught.downcast_ref(), Some(&"of the callback"));
}
