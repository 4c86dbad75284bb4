//! Servers die while many streams are written: nothing that was acknowledged is lost, nothing is there
//! twice, the order is kept. `LEADERS_EVENTS` and `LEADERS_STREAMS` make it as large as one likes.

#![expect(clippy::print_stderr, reason = "how long it paused is worth knowing")]

use jackfield_journal::{Address, Append, AppendError, Cell, Done, Journal, Port};
use jackfield_nats_access::NatsServers;
use jackfield_testkit::nats::Cluster;
use std::{
    collections::BTreeMap,
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

/// Events of one append, in turn: small ones and large ones.
const CHUNKS: [u32; 4] = [1, 8, 32, 19];
/// An election takes up to nine seconds; this is for a slow machine that has other work.
const PAUSE_MAX: Duration = Duration::from_mins(1);

fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

fn number(it: u64) -> usize {
    usize::try_from(it).expect("a small one")
}

fn line(stream: &str, seq: u64) -> String {
    format!(r#"{{"stream":"{stream}","seq":{seq},"text":"{}"}}"#, "x".repeat(number(seq % 300)))
}

fn chunk(stream: &str, after: u64) -> Append {
    let count = CHUNKS[number(after) % CHUNKS.len()];
    let lines: Vec<_> = (after + 1..=after + u64::from(count)).map(|it| line(stream, it)).collect();
    let (stream, body) = (stream.into(), lines.join("\n").into());
    Append { stream, epoch: 0, first: after + 1, count, body, summary: None }
}

/// What one run has seen.
struct Run {
    heads: BTreeMap<String, u64>,
    written: u64,
    longest: Duration,
    retries: u64,
}

#[test]
fn servers_die_while_streams_are_written_and_nothing_is_lost() {
    let (events, streams) = (given("LEADERS_EVENTS", 40_000), given("LEADERS_STREAMS", 100));
    let mut cluster = Cluster::start(3);
    let cell = Cell { name: "leaders".into(), shards: 8, replicas: 3 };
    let address = Address { servers: NatsServers::on_loopback(cluster.urls()), cell, owner: None };
    let journal = Journal::connect(address.clone()).unwrap();
    let run = write(&mut cluster, &journal, events, streams);
    eprintln!(
        "{} events of {streams} streams, {} appends tried again, longest pause {:?}",
        run.written, run.retries, run.longest
    );
    cluster.wait_until_well();
    // As somebody reads it who has written nothing.
    let reader = Journal::connect(address).unwrap();
    for (stream, head) in &run.heads {
        let mut seq = 0;
        while seq < *head {
            let events = reader.read(stream, seq, 4096, 1 << 20).unwrap();
            assert!(!events.is_empty(), "{stream} ends at {seq}, not at {head}");
            for event in events {
                seq += 1;
                assert_eq!(event.seq, seq);
                assert_eq!(event.line, line(stream, seq), "{stream}");
            }
        }
        assert_eq!(seq, *head, "{stream} has more than was acknowledged");
    }
}

/// Writes through a port, as a daemon does: one append of a stream at a time, all streams side by side.
/// Whenever a quarter of the events is written, the next server is killed; it comes back when the others
/// have taken over.
fn write(cluster: &mut Cluster, journal: &Journal, events: u64, streams: u64) -> Run {
    let (tx, done) = mpsc::channel();
    let mut port =
        Port::start(journal.clone(), move |it| tx.send(it).expect("it is heard to the end"));
    let names: Vec<_> = (0..streams).map(|it| format!("s-{it}")).collect();
    let mut run = Run {
        heads: names.iter().map(|it| (it.clone(), 0)).collect(),
        written: 0,
        longest: Duration::ZERO,
        retries: 0,
    };
    let first = names.iter().map(|it| chunk(it, 0)).collect();
    assert!(port.append(first).is_empty());
    let (mut under_way, mut killed, mut last) = (streams, 0, Instant::now());
    while under_way != 0 {
        let news = match done.recv_timeout(PAUSE_MAX) {
            Ok(news) => news,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was written for {PAUSE_MAX:?}"),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the port lives"),
        };
        under_way -= 1;
        let (stream, failed) = match news {
            Done::Appended { stream, upto } => {
                let head = run.heads.get_mut(&*stream).expect("one of ours");
                assert!(*head < upto);
                run.written += upto - *head;
                *head = upto;
                run.longest = run.longest.max(last.elapsed());
                last = Instant::now();
                (stream, false)
            }
            Done::AppendFailed { stream, error, .. } => {
                assert!(is_away(&error), "{error}");
                run.retries += 1;
                assert!(last.elapsed() < PAUSE_MAX, "{error:?}");
                (stream, true)
            }
            other => panic!("{other:?}"),
        };
        // One whose outcome is unknown is made again: it may be there.
        if failed || run.written < events {
            assert!(port.append(vec![chunk(&stream, run.heads[&*stream])]).is_empty());
            under_way += 1;
        }
        if killed < 3 && events * (killed + 1) / 4 < run.written {
            if let Some(before) = killed.checked_sub(1) {
                cluster.restart(number(before));
                cluster.wait_until_well();
                last = Instant::now();
            }
            cluster.kill_9(number(killed));
            killed += 1;
        }
    }
    assert_eq!(killed, 3);
    cluster.restart(2);
    run
}

fn is_away(error: &AppendError) -> bool {
    matches!(error, AppendError::Unavailable { .. } | AppendError::ClaimFailed { .. })
}
