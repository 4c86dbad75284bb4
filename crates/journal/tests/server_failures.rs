//! Kills servers while many streams are written: no acknowledged event is lost or duplicated, and
//! the order is kept. `LEADERS_EVENTS` and `LEADERS_STREAMS` set the size of the test.

#![expect(clippy::print_stderr, reason = "the test reports the longest pause")]

use jackfield_journal::{
    AppendError, AppendRequest, CellAddress, CellConfig, Journal, JournalCompletion,
    NonBlockingJournal, OpenError,
};
use jackfield_nats_access::NatsServers;
use jackfield_test_support::{nats::Cluster, wait::wait_for};
use std::{
    collections::BTreeMap,
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

/// The numbers of events per append, in turn.
const APPEND_COUNTS: [u32; 4] = [1, 8, 32, 19];
/// An election takes up to nine seconds; the limit is for a slow machine under load.
const PAUSE_MAX: Duration = Duration::from_mins(1);

fn read_variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn to_usize(it: u64) -> usize {
    usize::try_from(it).expect("the number is small")
}

fn make_line(stream: &str, seq: u64) -> String {
    format!(r#"{{"stream":"{stream}","seq":{seq},"text":"{}"}}"#, "x".repeat(to_usize(seq % 300)))
}

fn next_append(stream: &str, after: u64) -> AppendRequest {
    let count = APPEND_COUNTS[to_usize(after) % APPEND_COUNTS.len()];
    let lines: Vec<_> =
        (after + 1..=after + u64::from(count)).map(|it| make_line(stream, it)).collect();
    let (stream, body) = (stream.into(), lines.join("\n").into());
    AppendRequest { stream, epoch: 0, first: after + 1, count, body, summary: None }
}

/// The result of one run.
struct RunResult {
    heads: BTreeMap<String, u64>,
    written: u64,
    longest_pause: Duration,
    retries: u64,
}

#[test]
fn acknowledged_events_survive_server_failures() {
    let (events, streams) =
        (read_variable("LEADERS_EVENTS", 40_000), read_variable("LEADERS_STREAMS", 100));
    let mut cluster = Cluster::start(3);
    let cell = CellConfig { name: "leaders".into(), shards: 8, replicas: 3 };
    let address =
        CellAddress { servers: NatsServers::on_loopback(cluster.urls()), cell, owner: None };
    // A new cluster on a busy machine may not create a stream within the time limit of one request.
    let journal = wait_for("the streams of the cell", Duration::from_mins(1), || {
        Journal::connect(address.clone()).ok()
    });
    let run = write_streams(&mut cluster, &journal, events, streams);
    eprintln!(
        "{} events of {streams} streams, {} appends retried, longest pause {:?}",
        run.written, run.retries, run.longest_pause
    );
    cluster.wait_until_well();
    // A reader without the caches of the writer.
    let reader = Journal::connect(address).unwrap();
    for (stream, head) in &run.heads {
        let mut seq = 0;
        while seq < *head {
            let events = reader.read_events(stream, seq, 4096, 1 << 20).unwrap();
            assert!(!events.is_empty(), "{stream} ends at {seq}, not at {head}");
            for event in events {
                seq += 1;
                assert_eq!(event.seq, seq);
                assert_eq!(event.line, make_line(stream, seq), "{stream}");
            }
        }
        assert_eq!(seq, *head, "{stream} has more than was acknowledged");
    }
}

/// A host whose servers fail during its start waits for them, and does not end.
#[test]
fn opening_an_archive_without_servers_can_be_tried_again() {
    let mut cluster = Cluster::start(1);
    let cell = CellConfig { name: "cell".into(), shards: 1, replicas: 1 };
    let servers = NatsServers::on_loopback(cluster.urls());
    let journal = Journal::connect(CellAddress { servers, cell, owner: None }).unwrap();
    cluster.kill_9(0);
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    let opened = journal.archiver().unwrap().open_archive(&url);
    assert!(matches!(opened, Err(OpenError::Unreachable { .. })), "{opened:?}");
}

/// Writes through a [`NonBlockingJournal`], like the daemon: one append per stream at a time, all
/// streams concurrently. After each quarter of the events it kills the next server, and restarts it
/// when the others have taken over.
fn write_streams(cluster: &mut Cluster, journal: &Journal, events: u64, streams: u64) -> RunResult {
    let (tx, completions) = mpsc::channel();
    let mut non_blocking = NonBlockingJournal::start(journal.clone(), move |it| {
        tx.send(it).expect("the receiver lives until the end");
    });
    let names: Vec<_> = (0..streams).map(|it| format!("s-{it}")).collect();
    let mut run = RunResult {
        heads: names.iter().map(|it| (it.clone(), 0)).collect(),
        written: 0,
        longest_pause: Duration::ZERO,
        retries: 0,
    };
    let first = names.iter().map(|it| next_append(it, 0)).collect();
    assert!(non_blocking.append_batch(first).is_empty());
    let (mut in_progress, mut killed, mut last) = (streams, 0, Instant::now());
    while in_progress != 0 {
        let completion = match completions.recv_timeout(PAUSE_MAX) {
            Ok(completion) => completion,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was written for {PAUSE_MAX:?}"),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the journal is running"),
        };
        in_progress -= 1;
        let (stream, failed) = match completion {
            JournalCompletion::Appended { stream, upto } => {
                let head = run.heads.get_mut(&*stream).expect("a stream of this test");
                assert!(*head < upto);
                run.written += upto - *head;
                *head = upto;
                run.longest_pause = run.longest_pause.max(last.elapsed());
                last = Instant::now();
                (stream, false)
            }
            JournalCompletion::AppendFailed { stream, error, .. } => {
                assert!(is_temporary(&error), "{error}");
                run.retries += 1;
                assert!(last.elapsed() < PAUSE_MAX, "{error:?}");
                (stream, true)
            }
            other => panic!("{other:?}"),
        };
        // An append with an unknown outcome is repeated; its events may already be stored.
        if failed || run.written < events {
            assert!(
                non_blocking
                    .append_batch(vec![next_append(&stream, run.heads[&*stream])])
                    .is_empty()
            );
            in_progress += 1;
        }
        if killed < 3 && events * (killed + 1) / 4 < run.written {
            if let Some(before) = killed.checked_sub(1) {
                cluster.restart(to_usize(before));
                cluster.wait_until_well();
                last = Instant::now();
            }
            cluster.kill_9(to_usize(killed));
            killed += 1;
        }
    }
    assert_eq!(killed, 3);
    cluster.restart(2);
    run
}

fn is_temporary(error: &AppendError) -> bool {
    matches!(error, AppendError::Unavailable { .. } | AppendError::ClaimFailed { .. })
}
