//! Uses stdin and stdout of this process as a connection.
//!
//! `O_NONBLOCK` belongs to the open file, not to the descriptor: setting it on our stdin also sets
//! it for the shell and every other process that shares the pipe or terminal, and their reads would
//! fail. It is therefore never set on inherited files. A pipe is opened a second time through
//! `/proc`, which creates a separate open file. Files that cannot be opened twice (a socket, a
//! terminal, a regular file, a pipe of another user) are copied by two blocking threads, which adds
//! one hop.

use crate::relay::relay_bytes;
use crate::stream::{ClientStream, StreamCarrier, stream_pair};
use rustix::fs::FileType;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::thread;
use tokio::net::unix::pipe;

/// Opens the connection over stdin and stdout. Call it once.
pub fn open_stdio() -> io::Result<ClientStream> {
    let (input, output) = (io::stdin(), io::stdout());
    match reopen_pipes(input.as_fd(), output.as_fd()) {
        Some(stream) => Ok(stream),
        None => relay_files(input, output),
    }
}

fn reopen_pipes(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Option<ClientStream> {
    let receiver = pipe::OpenOptions::new().open_receiver(proc_path(input)?).ok()?;
    let sender = pipe::OpenOptions::new().open_sender(proc_path(output)?).ok()?;
    Some(StreamCarrier::Pipes(receiver, sender).into())
}

/// A path under which a pipe can be opened again; `None` for other files.
fn proc_path(fd: BorrowedFd<'_>) -> Option<String> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let is_pipe = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    is_pipe.then(|| format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The threads end with the connection; the reading one ends with its input.
fn relay_files<I, O>(input: I, output: O) -> io::Result<ClientStream>
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + Sync + 'static,
{
    let (stream, relay_end) = stream_pair()?;
    thread::Builder::new()
        .name("stdio".to_owned())
        .spawn(move || relay_bytes(input, output, relay_end.into()))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ClientEvent, ClientHandle, open_connection};
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

    /// Exchanges a frame in each direction; then the client closes its output and we close.
    async fn exchange_frames(stream: ClientStream, mut say: File, mut hear: File) -> ClientHandle {
        let (events, mut told) = mpsc::channel(8);
        let mut handle = open_connection(stream, 1, events, 1 << 20);
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
    async fn pipes_are_reopened_and_the_originals_stay_blocking() {
        let ((input, say), (hear, output)) =
            (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        let stream =
            reopen_pipes(input.as_fd(), output.as_fd()).expect("pipes can be opened again");
        for fd in [&input, &output] {
            assert!(!rustix::fs::fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
        }
        exchange_frames(stream, say.into(), hear.into()).await;
    }

    #[tokio::test]
    async fn files_that_cannot_be_reopened_are_copied() {
        let ((input, say), (hear, output)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        assert!(reopen_pipes(input.as_fd(), output.as_fd()).is_none());
        let stream = relay_files(input, output).unwrap();
        let [say, hear] = [say, hear].map(|it| File::from(OwnedFd::from(it)));
        exchange_frames(stream, say, hear).await;
    }
}
