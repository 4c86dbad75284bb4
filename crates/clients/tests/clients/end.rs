//! How connections end: by the peer, by us, in the middle of a word; and that it is told once.

use crate::desk::{Desk, beside, frame, lines};
use jackfield_clients::{ClientEvent, pair};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;

#[tokio::test]
async fn a_peer_that_closes_is_gone_once() {
    let (here, there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    drop(there);
    assert!(desk.until_gone().await.is_empty());
    handle.send(frame(1, 10));
    assert_eq!((handle.flush(), handle.queued_bytes()), (0, 0), "there is nobody to write to");
    handle.close_after_flush();
    handle.close();
    drop(handle);
    assert!(desk.ready().await.is_none());
}

#[tokio::test]
async fn a_peer_that_closes_in_the_middle_of_a_write_is_gone_once() {
    let (here, there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    handle.send(frame(1, 4 << 20));
    handle.flush();
    assert!(desk.ready().await.is_none());
    let read = beside(move || (&there).read_exact(&mut vec![0; 1 << 20]).unwrap());
    assert!(desk.until_gone().await.is_empty());
    read.await;
    assert_eq!(handle.queued_bytes(), 0);
    drop(handle);
    assert!(desk.ready().await.is_none());
}

#[tokio::test]
async fn the_last_words_of_a_peer_that_cannot_hear_are_heard() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    let words: Vec<_> = (0..500).map(|it| frame(it, 100)).collect();
    there.write_all(&lines(&words)).unwrap();
    there.write_all(b"{\"id\":1,\"method\":\"cut in the mi").unwrap();
    drop(there);
    handle.send(frame(1, 10));
    assert_eq!(handle.flush(), 0);
    let story = desk.until_gone().await;
    assert_eq!(story.len(), 500, "the half line is not reported");
}

#[tokio::test]
async fn a_peer_that_only_stops_talking_still_hears() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    there.write_all(b"{\"id\":1,\"method\":\"a\"}").unwrap();
    there.shutdown(Shutdown::Write).unwrap();
    desk.texts(1).await;
    assert!(matches!(desk.next().await.1, ClientEvent::Finished));
    assert!(desk.ready().await.is_none());
    let answer = frame(1, 1 << 20);
    handle.send(answer.clone());
    let wrote = handle.flush();
    let heard = beside(move || {
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).unwrap();
        heard
    });
    desk.until_wrote(wrote, answer.len()).await;
    handle.close_after_flush();
    assert_eq!(heard.await, lines(&[answer]));
    assert!(desk.until_gone().await.is_empty());
}

#[tokio::test]
async fn a_farewell_is_heard_to_its_end_although_the_peer_talks_on() {
    let (here, there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    let texts: Vec<_> = (0..2000).map(|it| frame(it, 1000)).collect();
    for text in &texts {
        handle.send(text.clone());
    }
    handle.close_after_flush();
    // Too late.
    handle.send(frame(1, 1));
    let heard = beside(move || {
        for _ in 0..100 {
            (&there).write_all(&lines(&[frame(1, 1000)])).unwrap();
        }
        let mut heard = Vec::new();
        (&there).read_to_end(&mut heard).unwrap();
        heard
    });
    assert_eq!(heard.await, lines(&texts));
    let total: usize = texts.iter().map(bytes::Bytes::len).sum();
    let story = desk.until_gone().await;
    let wrote = story.iter().filter_map(|it| it.strip_prefix("Wrote(")?.strip_suffix(')'));
    assert_eq!(wrote.map(|it| it.parse::<usize>().unwrap()).sum::<usize>(), total);
    assert!(story.iter().all(|it| it.starts_with("Wrote")), "nobody listens after a farewell");
}

#[tokio::test]
async fn a_closed_connection_ends_at_once_and_drops_what_is_queued() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    handle.send(frame(1, 10 << 20));
    handle.flush();
    handle.close();
    assert_eq!(handle.queued_bytes(), 0);
    assert!(desk.until_gone().await.is_empty());
    let mut heard = Vec::new();
    there.read_to_end(&mut heard).unwrap();
    assert!(heard.len() < 10 << 20);
}

#[tokio::test]
async fn a_dropped_handle_closes() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    drop(desk.open(here, 1).await);
    assert!(desk.until_gone().await.is_empty());
    assert_eq!(there.read(&mut [0]).unwrap(), 0);
}

#[tokio::test]
async fn without_a_desk_a_connection_has_no_purpose() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let _handle = desk.open(here, 1).await;
    drop(desk);
    there.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    // Ends although the handle is held: nobody would hear of it.
    let end = beside(move || there.read(&mut [0]).unwrap());
    assert_eq!(end.await, 0);
}

// The clock jumps as soon as everyone waits: what would take seconds takes none.
#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_not_waited_for_at_the_end() {
    let (here, there) = pair().unwrap();
    let (events, mut told) = tokio::sync::mpsc::channel(8);
    let mut handle = jackfield_clients::open(here, 1, events, 1 << 20);
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
async fn a_peer_that_does_not_close_after_the_farewell_is_not_waited_for() {
    let (here, there) = pair().unwrap();
    let (events, mut told) = tokio::sync::mpsc::channel(8);
    let mut handle = jackfield_clients::open(here, 1, events, 1 << 20);
    handle.close_after_flush();
    let mut story = Vec::new();
    while let Some((_, event)) = told.recv().await {
        story.push(format!("{event:?}"));
    }
    assert_eq!(story, ["Opened", "Gone"]);
    drop(there);
}
