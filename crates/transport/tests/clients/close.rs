//! Closing of connections by the peer and by us, which is reported exactly once.

use crate::harness::{EventCollector, frame, lines, start_blocking};
use jackfield_transport::{ClientEvent, stream_pair};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;

#[tokio::test]
async fn closing_peer_is_reported_gone_once() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    drop(there);
    assert!(collector.until_gone().await.is_empty());
    handle.send(frame(1, 10));
    assert_eq!((handle.flush(), handle.queued_bytes()), (0, 0), "there is nobody to write to");
    handle.close_after_flush();
    handle.close();
    drop(handle);
    assert!(collector.ready().await.is_none());
}

#[tokio::test]
async fn peer_that_closes_during_a_write_is_reported_gone_once() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    handle.send(frame(1, 4 << 20));
    handle.flush();
    assert!(collector.ready().await.is_none());
    let read = start_blocking(move || (&there).read_exact(&mut vec![0; 1 << 20]).unwrap());
    assert!(collector.until_gone().await.is_empty());
    read.await;
    assert_eq!(handle.queued_bytes(), 0);
    drop(handle);
    assert!(collector.ready().await.is_none());
}

#[tokio::test]
async fn last_frames_of_a_disconnected_peer_are_read() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let words: Vec<_> = (0..500).map(|it| frame(it, 100)).collect();
    there.write_all(&lines(&words)).unwrap();
    there.write_all(b"{\"id\":1,\"method\":\"cut in the mi").unwrap();
    drop(there);
    handle.send(frame(1, 10));
    assert_eq!(handle.flush(), 0);
    let story = collector.until_gone().await;
    assert_eq!(story.len(), 500, "the half line is not reported");
}

#[tokio::test]
async fn peer_that_closed_its_sending_side_still_receives() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    there.write_all(b"{\"id\":1,\"method\":\"a\"}").unwrap();
    there.shutdown(Shutdown::Write).unwrap();
    collector.texts(1).await;
    assert!(matches!(collector.next().await.1, ClientEvent::Finished));
    assert!(collector.ready().await.is_none());
    let answer = frame(1, 1 << 20);
    handle.send(answer.clone());
    let wrote = handle.flush();
    let heard = start_blocking(move || {
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).unwrap();
        heard
    });
    collector.until_wrote(wrote, answer.len()).await;
    handle.close_after_flush();
    assert_eq!(heard.await, lines(&[answer]));
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn graceful_close_delivers_everything_while_the_peer_sends() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    let texts: Vec<_> = (0..2000).map(|it| frame(it, 1000)).collect();
    for text in &texts {
        handle.send(text.clone());
    }
    handle.close_after_flush();
    // Too late.
    handle.send(frame(1, 1));
    let heard = start_blocking(move || {
        for _ in 0..100 {
            (&there).write_all(&lines(&[frame(1, 1000)])).unwrap();
        }
        let mut heard = Vec::new();
        (&there).read_to_end(&mut heard).unwrap();
        heard
    });
    assert_eq!(heard.await, lines(&texts));
    let total: usize = texts.iter().map(bytes::Bytes::len).sum();
    let story = collector.until_gone().await;
    let wrote = story.iter().filter_map(|it| it.strip_prefix("Wrote(")?.strip_suffix(')'));
    assert_eq!(wrote.map(|it| it.parse::<usize>().unwrap()).sum::<usize>(), total);
    assert!(story.iter().all(|it| it.starts_with("Wrote")), "nobody listens after a farewell");
}

#[tokio::test]
async fn close_ends_at_once_and_drops_the_queue() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    handle.send(frame(1, 10 << 20));
    handle.flush();
    handle.close();
    assert_eq!(handle.queued_bytes(), 0);
    assert!(collector.until_gone().await.is_empty());
    let mut heard = Vec::new();
    there.read_to_end(&mut heard).unwrap();
    assert!(heard.len() < 10 << 20);
}

#[tokio::test]
async fn dropped_handle_closes_the_connection() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    drop(collector.open(here, 1).await);
    assert!(collector.until_gone().await.is_empty());
    assert_eq!(there.read(&mut [0]).unwrap(), 0);
}

#[tokio::test]
async fn closed_event_channel_closes_the_connection() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let _handle = collector.open(here, 1).await;
    drop(collector);
    there.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    // It ends although the handle exists, because no events can be reported.
    let end = start_blocking(move || there.read(&mut [0]).unwrap());
    assert_eq!(end.await, 0);
}

// Time is paused and jumps to the next timer.
#[tokio::test(start_paused = true)]
async fn peer_that_reads_nothing_is_disconnected_while_closing() {
    let (here, there) = stream_pair().unwrap();
    let (events, mut told) = tokio::sync::mpsc::channel(8);
    let mut handle = jackfield_transport::open_connection(here, 1, events, 1 << 20);
    handle.send(frame(1, 4 << 20));
    handle.close_after_flush();
    let mut story = Vec::new();
    while let Some((_, event)) = told.recv().await {
        story.push(format!("{event:?}"));
    }
    assert_eq!(story, ["Opened", "Gone"]);
    drop(there);
}

#[tokio::test(start_paused = true)]
async fn peer_that_does_not_close_in_time_is_disconnected() {
    let (here, there) = stream_pair().unwrap();
    let (events, mut told) = tokio::sync::mpsc::channel(8);
    let mut handle = jackfield_transport::open_connection(here, 1, events, 1 << 20);
    handle.close_after_flush();
    let mut story = Vec::new();
    while let Some((_, event)) = told.recv().await {
        story.push(format!("{event:?}"));
    }
    assert_eq!(story, ["Opened", "Gone"]);
    drop(there);
}
