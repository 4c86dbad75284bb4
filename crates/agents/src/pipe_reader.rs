//! Reads pipes in chunks, with one buffer for all agents of a thread.

use crate::os::pipe_capacity;
use bytes::Bytes;
use jackfield_protocol::READ_BYTES;
use std::cell::RefCell;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

thread_local! {
    /// Shared, so that idle agents need no buffers. Borrowed only during a read.
    static BUFFER: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// The next chunk; `None` at the end. Safe to cancel: nothing is read before the future is ready.
pub(crate) async fn read_chunk(pipe: &mut Receiver) -> io::Result<Option<Bytes>> {
    std::future::poll_fn(|cx| poll_read(pipe, cx)).await
}

pub(crate) fn poll_read(
    pipe: &mut Receiver,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    BUFFER.with_borrow_mut(|buffer| {
        // tokio's `read` skips the next system call after a short read, which has emptied the pipe.
        let read = pin!(pipe.read(buffer)).poll(cx);
        read.map_ok(|count| (0 < count).then(|| Bytes::copy_from_slice(&buffer[..count])))
    })
}

/// Reads what is in the pipe now, but not more than its capacity: this includes everything that the
/// agent wrote before it exited, and a process that keeps writing cannot delay us.
pub(crate) fn drain_pipe(pipe: &Receiver, mut on_chunk: impl FnMut(Bytes)) {
    let mut left = pipe_capacity(pipe).unwrap_or(READ_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    while 0 < left {
        // Not tokio's `read`, which relies on its last readiness event; a newer one may be pending.
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                on_chunk(Bytes::copy_from_slice(&buffer[..count]));
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
    async fn drain_ends_while_another_process_keeps_writing() {
        let (read, mut write) = io::pipe().unwrap();
        let pipe = Receiver::from_owned_fd(OwnedFd::from(read)).unwrap();
        let capacity = pipe_capacity(&pipe).unwrap();
        write.write_all(&vec![b'x'; capacity]).unwrap();
        let mut drained = 0;
        drain_pipe(&pipe, |chunk| {
            drained += chunk.len();
            assert!(drained <= 2 * capacity, "the drain does not end");
            write.write_all(&chunk).unwrap();
        });
        assert!(capacity <= drained);
    }

    #[tokio::test]
    async fn chunk_has_the_available_bytes_and_none_means_the_end() {
        let (read, mut write) = io::pipe().unwrap();
        let mut pipe = Receiver::from_owned_fd(OwnedFd::from(read)).unwrap();
        for size in [1, READ_BYTES] {
            write.write_all(&vec![b'x'; size]).unwrap();
            assert_eq!(read_chunk(&mut pipe).await.unwrap().unwrap().len(), size);
        }
        drop(write);
        assert!(read_chunk(&mut pipe).await.unwrap().is_none());
    }
}
