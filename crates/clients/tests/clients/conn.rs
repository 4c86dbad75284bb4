//! Frames in: whole, in order, at the pace of whoever takes them.

use crate::desk::{Desk, Home, beside, elsewhere, frame, lines, within};
use bytes::Bytes;
use jackfield_clients::{ClientEvent, Listener, Stream, dial, dial_blocking, pair};
use jackfield_wire::Fault;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

async fn talk(desk: &mut Desk, here: Stream, there: Stream) {
    let mut ours = desk.open(here, 1).await;
    let mut theirs = desk.open(there, 2).await;
    for round in 0..3 {
        let (question, answer) = (frame(round, 10), frame(round, 100_000));
        theirs.send(question.clone());
        let wrote = theirs.flush();
        desk_hears(desk, 2, 1, &question, wrote).await;
        ours.send(answer.clone());
        let wrote = ours.flush();
        desk_hears(desk, 1, 2, &answer, wrote).await;
        assert_eq!((ours.queued_bytes(), theirs.queued_bytes()), (0, 0));
    }
    theirs.close();
    let mut gone = Vec::new();
    while gone.len() < 2 {
        match desk.next().await {
            (key, ClientEvent::Gone) => gone.push(key),
            // A TCP peer that closes may have more to hear, as far as we can tell.
            (1, ClientEvent::Finished) => ours.close_after_flush(),
            (key, other) => panic!("{key} {other:?}"),
        }
    }
    gone.sort_unstable();
    assert_eq!(gone, [1, 2]);
}

/// `text` arrives from `from` at `to`, and all of it counts as written.
async fn desk_hears(desk: &mut Desk, from: u32, to: u32, text: &Bytes, mut wrote: usize) {
    let mut heard = false;
    while !heard || wrote < text.len() {
        match desk.next().await {
            (key, ClientEvent::Wrote(bytes)) if key == from => wrote += bytes,
            (key, ClientEvent::Frames(frames)) if key == to => {
                assert_eq!(frames.len(), 1);
                assert_eq!(frames[0].bytes(), text);
                heard = true;
            }
            (key, other) => panic!("{key} {other:?}"),
        }
    }
    assert_eq!(wrote, text.len());
}

#[tokio::test]
async fn frames_go_both_ways_over_a_unix_socket() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    let there = dial(&home.address(), None).await.unwrap();
    let here = within(listener.accept()).await.unwrap();
    talk(&mut Desk::new(), here, there).await;
}

#[tokio::test]
async fn frames_go_both_ways_over_tcp() {
    let home = Home::new();
    let mut listener = home.tcp();
    let (address, token) = (listener.address().clone(), home.token());
    let (there, here) = tokio::join!(dial(&address, Some(&token)), within(listener.accept()));
    let (there, here) = (there.unwrap(), here.unwrap());
    talk(&mut Desk::new(), here, there).await;
}

#[tokio::test]
async fn frames_go_both_ways_inside_a_process() {
    let (here, there) = pair().unwrap();
    let there = jackfield_clients::Socket::from(there).into_stream().unwrap();
    talk(&mut Desk::new(), here, there).await;
}

#[tokio::test]
async fn a_blocking_client_and_the_loop_understand_each_other() {
    let home = Home::new();
    let mut listener = Listener::bind(&home.address(), None).unwrap();
    let address = home.address();
    let answer = beside(move || {
        let socket = dial_blocking(&address, None).unwrap();
        (&socket).write_all(b"{\"id\":1,\"method\":\"a\"}\r\n").unwrap();
        let mut answer = String::new();
        BufReader::new(&socket).lines().next().unwrap().unwrap().clone_into(&mut answer);
        answer
    });
    let mut desk = Desk::new();
    let stream = within(listener.accept()).await.unwrap();
    let mut handle = desk.open(stream, 1).await;
    assert_eq!(desk.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
    handle.send(Bytes::from_static(br#"{"id":1,"result":null}"#));
    handle.flush();
    assert_eq!(answer.await, r#"{"id":1,"result":null}"#);
}

#[tokio::test]
async fn it_does_not_matter_how_the_bytes_are_cut() {
    let texts: Vec<_> = (0..4).map(|it| frame(it, 7 * it)).collect();
    let bytes = lines(&texts);
    let mut desk = Desk::new();
    for step in [1, 2, 3, 7, 64, bytes.len() - 1, bytes.len()] {
        let (here, mut there) = pair().unwrap();
        let _handle = desk.open(here, 1).await;
        let mut heard = Vec::new();
        for piece in bytes.chunks(step) {
            there.write_all(piece).unwrap();
            while let Some(event) = desk.ready().await {
                let ClientEvent::Frames(frames) = event else { panic!("{event:?}") };
                heard.extend(frames.into_iter().map(|it| it.bytes().clone()));
            }
        }
        while heard.len() < texts.len() {
            heard.extend(desk.texts(1).await.into_iter().map(Bytes::from));
        }
        assert_eq!(heard, texts, "cut every {step} bytes");
        drop(there);
        assert!(desk.until_gone().await.is_empty());
    }
}

#[tokio::test]
async fn a_hundred_thousand_frames_arrive_in_order() {
    const COUNT: usize = 100_000;
    let (here, mut there) = pair().unwrap();
    let written = beside(move || {
        let mut bytes = Vec::new();
        for id in 0..COUNT {
            bytes.extend_from_slice(&frame(id, id % 300));
            bytes.push(b'\n');
        }
        there.write_all(&bytes).unwrap();
    });
    let mut desk = Desk::with_room_for(4);
    let _handle = desk.open(here, 1).await;
    let mut next = 0;
    while next < COUNT {
        let (_, ClientEvent::Frames(frames)) = desk.next().await else { panic!("at {next}") };
        for frame in frames {
            assert_eq!(frame.id(), Some(next.to_string().as_str()));
            next += 1;
        }
    }
    written.await;
    assert!(desk.until_gone().await.is_empty());
}

#[tokio::test]
async fn a_line_that_is_no_frame_is_told_in_its_place_and_the_next_one_survives() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let _handle = desk.open(here, 1).await;
    let said = b"{\"id\":1,\"method\":\"a\"}\nhello\n\n[1]\n{\"id\":2,\"method\":\"b\"}\n\xff\n\
                 {\"id\":3}\n{\"id\":4,\"method\":\"c\"}";
    there.write_all(said).unwrap();
    drop(there);
    let story = desk.until_gone().await;
    let babbled = |fault: Fault| format!("{:?}", ClientEvent::Babbled(fault));
    assert_eq!(story[0], r#"{"id":1,"method":"a"}"#);
    assert_eq!(story[1], babbled(Fault::Parse));
    assert!(story[2].starts_with("Babbled(InvalidRequest"), "{}", story[2]);
    assert_eq!(story[3], r#"{"id":2,"method":"b"}"#);
    assert_eq!(story[4], babbled(Fault::Parse));
    assert!(story[5].starts_with("Babbled(InvalidRequest"), "{}", story[5]);
    assert_eq!(story[6..], [r#"{"id":4,"method":"c"}"#], "the last one needs no newline");
}

#[tokio::test]
async fn a_line_longer_than_the_limit_is_told_once_and_the_next_one_survives() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let _handle = desk.open(here, 1).await;
    let written = beside(move || {
        there.write_all(&frame(1, 20 << 20)).unwrap();
        there.write_all(b"\n{\"id\":2,\"method\":\"b\"}\n").unwrap();
        there
    });
    let (_, event) = desk.next().await;
    assert!(matches!(event, ClientEvent::Babbled(Fault::TooLarge { .. })), "{event:?}");
    assert_eq!(desk.texts(1).await, [r#"{"id":2,"method":"b"}"#]);
    drop(written.await);
    assert!(desk.until_gone().await.is_empty());
}

#[tokio::test]
async fn an_endless_line_takes_no_more_memory_than_the_limit() {
    let (here, mut there) = pair().unwrap();
    let mut desk = Desk::new();
    let _handle = desk.open_with(here, 1, 1 << 20).await;
    let before = peak_kib();
    let written = beside(move || {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..128 {
            there.write_all(&piece).unwrap();
        }
        there.write_all(b"\n").unwrap();
    });
    let (_, event) = desk.next().await;
    assert!(matches!(event, ClientEvent::Babbled(Fault::TooLarge { .. })), "{event:?}");
    written.await;
    assert!(desk.until_gone().await.is_empty());
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "128 MiB were said, {grown} KiB were taken");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_desk_that_takes_nothing_stops_the_client_and_loses_nothing() {
    let (here, there) = pair().unwrap();
    let mut desk = Desk::with_room_for(1);
    let _handle = desk.open(here, 1).await;
    let text = frame(0, 1000);
    let line = lines(std::slice::from_ref(&text));
    let (there, sent) = elsewhere(move || fill(there, &line)).await;
    // Some socket buffers and a few chunks: far from everything a client might say.
    assert!(sent < 8 << 20, "{sent} bytes were taken");
    there.set_nonblocking(false).unwrap();
    let rest = text.len() + 1 - sent % (text.len() + 1);
    let end = lines(std::slice::from_ref(&text))[text.len() + 1 - rest..].to_vec();
    let ended = beside(move || (&there).write_all(&end).unwrap());
    let whole = (sent + rest) / (text.len() + 1);
    let heard = desk.texts(whole).await;
    assert!(heard.iter().all(|it| it.as_bytes() == text));
    ended.await;
    assert!(desk.until_gone().await.is_empty());
}

#[tokio::test]
async fn a_paused_client_is_not_read_until_it_is_resumed_and_can_still_be_told_and_closed() {
    let (here, there) = pair().unwrap();
    let mut desk = Desk::new();
    let mut handle = desk.open(here, 1).await;
    handle.pause();
    let text = frame(0, 1000);
    let line = lines(std::slice::from_ref(&text));
    let (mut there, sent) = elsewhere(move || fill(there, &line)).await;
    assert!(desk.ready().await.is_none(), "nothing of {sent} bytes is read");
    handle.send(text.clone());
    assert_eq!(handle.flush(), text.len());
    handle.resume();
    let whole = sent / (text.len() + 1);
    assert_eq!(desk.texts(whole).await.len(), whole);
    handle.pause();
    handle.close_after_flush();
    let mut heard = Vec::new();
    let heard = elsewhere(move || there.read_to_end(&mut heard).map(|_| heard)).await.unwrap();
    assert_eq!(heard, lines(&[text]));
    assert!(desk.until_gone().await.is_empty());
}

/// Says `line` again and again until nothing has been taken for a while.
fn fill(there: UnixStream, line: &[u8]) -> (UnixStream, usize) {
    there.set_write_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    let mut sent = 0;
    loop {
        match (&there).write(&line[sent % line.len()..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 64 << 20, "nothing stops this client");
    }
    there.set_write_timeout(None).unwrap();
    (there, sent)
}

#[tokio::test]
async fn one_channel_serves_many_connections() {
    let mut desk = Desk::new();
    let mut open = Vec::new();
    for key in 0..50 {
        let (here, there) = pair().unwrap();
        open.push((desk.open(here, key).await, there));
    }
    for (id, (_, there)) in open.iter_mut().enumerate() {
        there.write_all(&lines(&[frame(id, 1)])).unwrap();
    }
    for _ in 0..50 {
        let (key, ClientEvent::Frames(frames)) = desk.next().await else { panic!("no frames") };
        assert_eq!(frames[0].id(), Some(key.to_string().as_str()));
    }
    for (id, (handle, there)) in open.iter_mut().enumerate() {
        let text = frame(id, 10);
        handle.send(text.clone());
        let wrote = handle.flush();
        desk.until_wrote(wrote, text.len()).await;
        let mut heard = vec![0; text.len() + 1];
        there.read_exact(&mut heard).unwrap();
        assert_eq!(heard, lines(&[text]));
    }
}
