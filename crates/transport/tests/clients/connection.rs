//! Incoming frames: complete, in order, and as fast as the receiver takes them.

use crate::harness::{
    EventCollector, SocketFolder, frame, lines, run_blocking, start_blocking, within,
};
use bytes::Bytes;
use jackfield_protocol::Fault;
use jackfield_transport::{
    ClientEvent, ClientListener, ClientStream, dial_daemon, dial_daemon_blocking, stream_pair,
};
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

async fn exchange_frames(collector: &mut EventCollector, here: ClientStream, there: ClientStream) {
    let mut ours = collector.open(here, 1).await;
    let mut theirs = collector.open(there, 2).await;
    for round in 0..3 {
        let (question, answer) = (frame(round, 10), frame(round, 100_000));
        theirs.send(question.clone());
        let wrote = theirs.flush();
        expect_frames(collector, 2, 1, &question, wrote).await;
        ours.send(answer.clone());
        let wrote = ours.flush();
        expect_frames(collector, 1, 2, &answer, wrote).await;
        assert_eq!((ours.queued_bytes(), theirs.queued_bytes()), (0, 0));
    }
    theirs.close();
    let mut gone = Vec::new();
    while gone.len() < 2 {
        match collector.next().await {
            (key, ClientEvent::Gone) => gone.push(key),
            // A TCP peer that has closed may still read, as far as we can detect.
            (1, ClientEvent::Finished) => ours.close_after_flush(),
            (key, other) => panic!("{key} {other:?}"),
        }
    }
    gone.sort_unstable();
    assert_eq!(gone, [1, 2]);
}

/// `text` arrives from `from` at `to`, and all of it counts as written.
async fn expect_frames(
    collector: &mut EventCollector,
    from: u32,
    to: u32,
    text: &Bytes,
    mut wrote: usize,
) {
    let mut heard = false;
    while !heard || wrote < text.len() {
        match collector.next().await {
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
async fn frames_pass_both_ways_over_a_unix_socket() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    let there = dial_daemon(&folder.address(), None).await.unwrap();
    let here = within(listener.accept()).await.unwrap();
    exchange_frames(&mut EventCollector::new(), here, there).await;
}

#[tokio::test]
async fn frames_pass_both_ways_over_tcp() {
    let folder = SocketFolder::new();
    let mut listener = folder.tcp();
    let (address, token) = (listener.address().clone(), folder.token());
    let (there, here) =
        tokio::join!(dial_daemon(&address, Some(&token)), within(listener.accept()));
    let (there, here) = (there.unwrap(), here.unwrap());
    exchange_frames(&mut EventCollector::new(), here, there).await;
}

#[tokio::test]
async fn frames_pass_both_ways_inside_a_process() {
    let (here, there) = stream_pair().unwrap();
    let there = jackfield_transport::BlockingSocket::from(there).into_stream().unwrap();
    exchange_frames(&mut EventCollector::new(), here, there).await;
}

#[tokio::test]
async fn blocking_client_exchanges_frames_with_the_loop() {
    let folder = SocketFolder::new();
    let mut listener = ClientListener::bind(&folder.address(), None).unwrap();
    let address = folder.address();
    let answer = start_blocking(move || {
        let socket = dial_daemon_blocking(&address, None).unwrap();
        (&socket).write_all(b"{\"id\":1,\"method\":\"a\"}\r\n").unwrap();
        let mut answer = String::new();
        BufReader::new(&socket).lines().next().unwrap().unwrap().clone_into(&mut answer);
        answer
    });
    let mut collector = EventCollector::new();
    let stream = within(listener.accept()).await.unwrap();
    let mut handle = collector.open(stream, 1).await;
    assert_eq!(collector.texts(1).await, [r#"{"id":1,"method":"a"}"#]);
    handle.send(Bytes::from_static(br#"{"id":1,"result":null}"#));
    handle.flush();
    assert_eq!(answer.await, r#"{"id":1,"result":null}"#);
}

#[tokio::test]
async fn any_split_of_the_bytes_gives_the_same_frames() {
    let texts: Vec<_> = (0..4).map(|it| frame(it, 7 * it)).collect();
    let bytes = lines(&texts);
    let mut collector = EventCollector::new();
    for step in [1, 2, 3, 7, 64, bytes.len() - 1, bytes.len()] {
        let (here, mut there) = stream_pair().unwrap();
        let _handle = collector.open(here, 1).await;
        let mut heard = Vec::new();
        for piece in bytes.chunks(step) {
            there.write_all(piece).unwrap();
            while let Some(event) = collector.ready().await {
                let ClientEvent::Frames(frames) = event else { panic!("{event:?}") };
                heard.extend(frames.into_iter().map(|it| it.bytes().clone()));
            }
        }
        while heard.len() < texts.len() {
            heard.extend(collector.texts(1).await.into_iter().map(Bytes::from));
        }
        assert_eq!(heard, texts, "cut every {step} bytes");
        drop(there);
        assert!(collector.until_gone().await.is_empty());
    }
}

#[tokio::test]
async fn hundred_thousand_frames_arrive_in_order() {
    const COUNT: usize = 100_000;
    let (here, mut there) = stream_pair().unwrap();
    let written = start_blocking(move || {
        let mut bytes = Vec::new();
        for id in 0..COUNT {
            bytes.extend_from_slice(&frame(id, id % 300));
            bytes.push(b'\n');
        }
        there.write_all(&bytes).unwrap();
    });
    let mut collector = EventCollector::with_room_for(4);
    let _handle = collector.open(here, 1).await;
    let mut next = 0;
    while next < COUNT {
        let (_, ClientEvent::Frames(frames)) = collector.next().await else { panic!("at {next}") };
        for frame in frames {
            assert_eq!(frame.id(), Some(next.to_string().as_str()));
            next += 1;
        }
    }
    written.await;
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn invalid_line_is_reported_in_order_and_next_frame_survives() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let _handle = collector.open(here, 1).await;
    let said = b"{\"id\":1,\"method\":\"a\"}\nhello\n\n[1]\n{\"id\":2,\"method\":\"b\"}\n\xff\n\
                 {\"id\":3}\n{\"id\":4,\"method\":\"c\"}";
    there.write_all(said).unwrap();
    drop(there);
    let story = collector.until_gone().await;
    let babbled = |fault: Fault| format!("{:?}", ClientEvent::InvalidFrame(fault));
    assert_eq!(story[0], r#"{"id":1,"method":"a"}"#);
    assert_eq!(story[1], babbled(Fault::Parse));
    assert!(story[2].starts_with("InvalidFrame(InvalidRequest"), "{}", story[2]);
    assert_eq!(story[3], r#"{"id":2,"method":"b"}"#);
    assert_eq!(story[4], babbled(Fault::Parse));
    assert!(story[5].starts_with("InvalidFrame(InvalidRequest"), "{}", story[5]);
    assert_eq!(story[6..], [r#"{"id":4,"method":"c"}"#], "the last one needs no newline");
}

#[tokio::test]
async fn oversized_line_is_reported_once_and_next_frame_survives() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let _handle = collector.open(here, 1).await;
    let written = start_blocking(move || {
        there.write_all(&frame(1, 20 << 20)).unwrap();
        there.write_all(b"\n{\"id\":2,\"method\":\"b\"}\n").unwrap();
        there
    });
    let (_, event) = collector.next().await;
    assert!(matches!(event, ClientEvent::InvalidFrame(Fault::TooLarge { .. })), "{event:?}");
    assert_eq!(collector.texts(1).await, [r#"{"id":2,"method":"b"}"#]);
    drop(written.await);
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn endless_line_uses_no_more_memory_than_the_limit() {
    let (here, mut there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let _handle = collector.open_with(here, 1, 1 << 20).await;
    let before = peak_kib();
    let written = start_blocking(move || {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..128 {
            there.write_all(&piece).unwrap();
        }
        there.write_all(b"\n").unwrap();
    });
    let (_, event) = collector.next().await;
    assert!(matches!(event, ClientEvent::InvalidFrame(Fault::TooLarge { .. })), "{event:?}");
    written.await;
    assert!(collector.until_gone().await.is_empty());
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "128 MiB were said, {grown} KiB were taken");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn full_channel_blocks_the_client_and_loses_nothing() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::with_room_for(1);
    let _handle = collector.open(here, 1).await;
    let text = frame(0, 1000);
    let line = lines(std::slice::from_ref(&text));
    let (there, sent) = run_blocking(move || fill(there, &line)).await;
    // Some socket buffers and a few chunks: far less than the client tries to send.
    assert!(sent < 8 << 20, "{sent} bytes were taken");
    there.set_nonblocking(false).unwrap();
    let rest = text.len() + 1 - sent % (text.len() + 1);
    let end = lines(std::slice::from_ref(&text))[text.len() + 1 - rest..].to_vec();
    let ended = start_blocking(move || (&there).write_all(&end).unwrap());
    let whole = (sent + rest) / (text.len() + 1);
    let heard = collector.texts(whole).await;
    assert!(heard.iter().all(|it| it.as_bytes() == text));
    ended.await;
    assert!(collector.until_gone().await.is_empty());
}

#[tokio::test]
async fn paused_client_is_not_read_but_can_be_written_and_closed() {
    let (here, there) = stream_pair().unwrap();
    let mut collector = EventCollector::new();
    let mut handle = collector.open(here, 1).await;
    handle.pause();
    let text = frame(0, 1000);
    let line = lines(std::slice::from_ref(&text));
    let (mut there, sent) = run_blocking(move || fill(there, &line)).await;
    assert!(collector.ready().await.is_none(), "nothing of {sent} bytes is read");
    handle.send(text.clone());
    assert_eq!(handle.flush(), text.len());
    handle.resume();
    let whole = sent / (text.len() + 1);
    assert_eq!(collector.texts(whole).await.len(), whole);
    handle.pause();
    handle.close_after_flush();
    let mut heard = Vec::new();
    let heard = run_blocking(move || there.read_to_end(&mut heard).map(|_| heard)).await.unwrap();
    assert_eq!(heard, lines(&[text]));
    assert!(collector.until_gone().await.is_empty());
}

/// Writes `line` repeatedly until the socket stays full for a while.
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
    let mut collector = EventCollector::new();
    let mut open = Vec::new();
    for key in 0..50 {
        let (here, there) = stream_pair().unwrap();
        open.push((collector.open(here, key).await, there));
    }
    for (id, (_, there)) in open.iter_mut().enumerate() {
        there.write_all(&lines(&[frame(id, 1)])).unwrap();
    }
    for _ in 0..50 {
        let (key, ClientEvent::Frames(frames)) = collector.next().await else {
            panic!("no frames")
        };
        assert_eq!(frames[0].id(), Some(key.to_string().as_str()));
    }
    for (id, (handle, there)) in open.iter_mut().enumerate() {
        let text = frame(id, 10);
        handle.send(text.clone());
        let wrote = handle.flush();
        collector.until_wrote(wrote, text.len()).await;
        let mut heard = vec![0; text.len() + 1];
        there.read_exact(&mut heard).unwrap();
        assert_eq!(heard, lines(&[text]));
    }
}
