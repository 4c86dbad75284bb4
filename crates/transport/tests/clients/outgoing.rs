//! Outgoing frames: sending never waits, and every byte is reported once.

use crate::harness::{EventCollector, frame, lines, start_blocking};
use bytes::Bytes;
use jackfield_transport::{ClientEvent, stream_pair};
use proptest::prelude::*;
use std::io::Read as _;
use std::os::unix::net::UnixStream;

/// Everything until the end of file, in pieces of `step` bytes.
fn read_all(mut there: UnixStream, step: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    let mut piece = vec![0; step];
    loop {
        match there.read(&mut piece).unwrap() {
            0 => return heard,
            count => heard.extend_from_slice(&piece[..count]),
        }
    }
}

#[tokio::test]
async fn slow_peer_fills_the_queue_and_then_gets_everything() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let texts: Vec<_> = (0..4000).map(|it| frame(it, 1000)).collect();
    let total: usize = texts.iter().map(Bytes::len).sum();
    let mut wrote = 0;
    for text in &texts {
        handle.send(text.clone());
        wrote += handle.flush();
    }
    // The task may have done the first write if the socket was not yet registered as writable.
    while let Some(event) = collector.ready().await {
        let ClientEvent::Wrote(bytes) = event else { panic!("{event:?}") };
        wrote += bytes;
    }
    assert!(wrote < total / 2, "a socket does not hold {wrote} bytes");
    assert_eq!(handle.queued_bytes(), total - wrote);
    for _ in 0..10 {
        assert_eq!(handle.flush(), 0);
        assert!(collector.ready().await.is_none(), "nothing is written while nobody reads");
    }
    let heard = start_blocking(move || read_all(there, 64 << 10));
    collector.until_wrote(wrote, total).await;
    assert_eq!(handle.queued_bytes(), 0);
    handle.close_after_flush();
    assert_eq!(heard.await, lines(&texts));
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn one_flush_writes_many_frames() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let heard = start_blocking(move || read_all(there, 64 << 10));
    let texts: Vec<_> = (0..20_000).map(|it| frame(it, it % 200)).collect();
    let total: usize = texts.iter().map(Bytes::len).sum();
    for text in &texts {
        handle.send(text.clone());
    }
    assert_eq!(handle.queued_bytes(), total);
    let wrote = handle.flush();
    collector.until_wrote(wrote, total).await;
    handle.close_after_flush();
    assert_eq!(heard.await, lines(&texts));
    assert!(collector.until_gone().await.is_empty());
}

/// A step of the daemon's loop.
#[derive(Debug, Clone)]
enum QueueStep {
    Send(usize),
    Flush,
    Turn,
}

fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let size = prop_oneof![6 => 0_usize..600, 3 => 0_usize..20_000, 1 => 0_usize..600_000];
    let step = prop_oneof![5 => size.prop_map(QueueStep::Send), 2 => Just(QueueStep::Flush), 1 => Just(QueueStep::Turn)];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reported_bytes_equal_the_sent_bytes(steps in steps(), step in 1_usize..100_000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(account(steps, step));
    }
}

async fn account(steps: Vec<QueueStep>, step: usize) {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let heard = start_blocking(move || read_all(there, step));
    let (mut said, mut sent, mut wrote) = (Vec::new(), 0, 0);
    for step in steps {
        match step {
            QueueStep::Send(size) => {
                // The queue accepts any bytes; only the reader parses frames.
                let text = vec![b'x'; size];
                said.extend_from_slice(&text);
                said.push(b'\n');
                sent += size;
                handle.send(text.into());
            }
            QueueStep::Flush => wrote += handle.flush(),
            QueueStep::Turn => {
                while let Some(event) = collector.ready().await {
                    let ClientEvent::Wrote(bytes) = event else { panic!("{event:?}") };
                    wrote += bytes;
                }
            }
        }
        assert!(wrote <= sent);
        assert!(handle.queued_bytes() <= sent - wrote);
    }
    wrote += handle.flush();
    collector.until_wrote(wrote, sent).await;
    assert_eq!(handle.queued_bytes(), 0);
    handle.close_after_flush();
    assert_eq!(heard.await, said);
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn slow_reader_of_large_frames_gets_every_byte() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let texts = [frame(1, 3 << 20), frame(2, 0), frame(3, 2 << 20)];
    let total = texts.iter().map(Bytes::len).sum();
    for text in &texts {
        handle.send(text.clone());
    }
    let wrote = handle.flush();
    let heard = start_blocking(move || read_all(there, 1 << 10));
    collector.until_wrote(wrote, total).await;
    drop(handle);
    assert_eq!(heard.await, lines(&texts));
    assert!(collector.until_gone().await.is_empty());
}
