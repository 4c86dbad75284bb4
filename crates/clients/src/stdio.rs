//! Stdin and stdout of this process as a connection.
//!
//! `O_NONBLOCK` belongs to the open file, not to the descriptor: setting it on our stdin sets it
//! for the shell and whoever else was given the same pipe or terminal, and their reads begin to
//! fail. So it is never set on what we were given. A pipe is opened a second time through `/proc`,
//! which makes an open file of our own. What cannot be opened twice (a socket, a terminal, a file,
//! a pipe of another user) is copied by two blocking threads, at the price of one more hop.

use crate::relay::relay;
use crate::stream::{Carrier, Stream, pair};
use rustix::fs::FileType;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::thread;
use tokio::net::unix::pipe;

/// The connection over stdin and stdout. To be made once.
pub fn stdio() -> io::Result<Stream> {
    let (input, output) = (io::stdin(), io::stdout());
    match reopened(input.as_fd(), output.as_fd()) {
        Some(stream) => Ok(stream),
        None => relayed(input, output),
    }
}

fn reopened(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Option<Stream> {
    let receiver = pipe::OpenOptions::new().open_receiver(name_of(input)?).ok()?;
    let sender = pipe::OpenOptions::new().open_sender(name_of(output)?).ok()?;
    Some(Carrier::Pipes(receiver, sender).into())
}

/// A name under which a pipe can be opened again.
fn name_of(fd: BorrowedFd<'_>) -> Option<String> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let is_pipe = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    is_pipe.then(|| format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The threads end with the connection; the one that reads ends with its input.
fn relayed<I, O>(input: I, output: O) -> io::Result<Stream>
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + Sync + 'static,
{
    let (ours, theirs) = pair()?;
    thread::Builder::new()
        .name("stdio".to_owned())
        .spawn(move || relay(input, output, theirs.into()))?;
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::{ClientEvent, ConnHandle, open};
    use bytes::Bytes;
    use rustix::fs::OFlags;
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use tokio::sync::mpsc;

    async fn next(told: &mut mpsc::Receiver<(u8, ClientEvent)>) -> ClientEvent {
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), told.recv()).await;
        waited.unwrap().unwrap().1
    }

    /// A frame in, a frame out, then the client closes its output and we say goodbye.
    async fn talk(stream: Stream, mut say: File, mut hear: File) -> ConnHandle {
        let (events, mut told) = mpsc::channel(8);
        let mut handle = open(stream, 1, events, 1 << 20);
        assert!(matches!(next(&mut told).await, ClientEvent::Opened));
        say.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
        let event = next(&mut told).await;
        assert!(matches!(&event, ClientEvent::Frames(it) if it.len() == 1), "{event:?}");
        drop(say);
        assert!(matches!(next(&mut told).await, ClientEvent::Finished));
        let answer = Bytes::from(vec![b'x'; 300_000]);
        handle.send(answer.clone());
        handle.close_after_flush();
        let heard = tokio::task::spawn_blocking(move || {
            let mut heard = vec![0; 300_001];
            hear.read_exact(&mut heard).unwrap();
            heard
        });
        let mut wrote = 0;
        loop {
            match next(&mut told).await {
                ClientEvent::Wrote(bytes) => wrote += bytes,
                ClientEvent::Gone => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(wrote, 300_000);
        assert_eq!(heard.await.unwrap(), [&answer[..], b"\n"].concat());
        handle
    }

    #[tokio::test]
    async fn pipes_are_opened_a_second_time_and_keep_their_own_flags() {
        let ((input, say), (hear, output)) =
            (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        let stream = reopened(input.as_fd(), output.as_fd()).expect("pipes can be opened again");
        for fd in [&input, &output] {
            assert!(!rustix::fs::fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
        }
        talk(stream, say.into(), hear.into()).await;
    }

    #[tokio::test]
    async fn what_cannot_be_opened_twice_is_copied() {
        let ((input, say), (hear, output)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        assert!(reopened(input.as_fd(), output.as_fd()).is_none());
        let stream = relayed(input, output).unwrap();
        let [say, hear] = [say, hear].map(|it| File::from(OwnedFd::from(it)));
        talk(stream, say, hear).await;
    }
}
