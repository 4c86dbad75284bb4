//! Reading pipes in pieces, with one buffer for all agents of a thread.

use bytes::Bytes;
use jackfield_wire::READ_BYTES;
use std::cell::RefCell;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

thread_local! {
    /// Shared, so that a thousand idle agents cost no buffers. Borrowed only while a read runs.
    static BUFFER: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// The next piece; `None` at the end. Safe to cancel: nothing is read before it is ready.
pub(crate) async fn read(pipe: &mut Receiver) -> io::Result<Option<Bytes>> {
    std::future::poll_fn(|cx| poll_read(pipe, cx)).await
}

pub(crate) fn poll_read(
    pipe: &mut Receiver,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    BUFFER.with_borrow_mut(|buffer| {
        // tokio's own read knows that a short read has emptied the pipe and saves the next call.
        let read = pin!(pipe.read(buffer)).poll(cx);
        read.map_ok(|count| (0 < count).then(|| Bytes::copy_from_slice(&buffer[..count])))
    })
}

/// Hands over what is in the pipe now, but no more than a pipe holds: what the agent wrote before
/// it ended is among it, and a process that writes on for ever does not keep us.
pub(crate) fn drain(pipe: &Receiver, mut on_piece: impl FnMut(Bytes)) {
    let mut left = rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(READ_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    while 0 < left {
        // Not tokio's read: that one trusts its last news, and the news may still be on its way.
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                on_piece(Bytes::copy_from_slice(&buffer[..count]));
                left = left.saturating_sub(count);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    #[tokio::test]
    async fn a_drain_ends_even_if_somebody_keeps_writing() {
        let (read, mut write) = io::pipe().unwrap();
        let pipe = Receiver::from_owned_fd(OwnedFd::from(read)).unwrap();
        let holds = rustix::pipe::fcntl_getpipe_size(&pipe).unwrap();
        write.write_all(&vec![b'x'; holds]).unwrap();
        let mut drained = 0;
        drain(&pipe, |piece| {
            drained += piece.len();
            assert!(drained <= 2 * holds, "it does not end");
            write.write_all(&piece).unwrap();
        });
        assert!(holds <= drained);
    }

    #[tokio::test]
    async fn a_piece_is_what_there_is_and_nothing_is_the_end() {
        let (read, mut write) = io::pipe().unwrap();
        let mut pipe = Receiver::from_owned_fd(OwnedFd::from(read)).unwrap();
        for size in [1, READ_BYTES] {
            write.write_all(&vec![b'x'; size]).unwrap();
            assert_eq!(super::read(&mut pipe).await.unwrap().unwrap().len(), size);
        }
        drop(write);
        assert!(super::read(&mut pipe).await.unwrap().is_none());
    }
}
