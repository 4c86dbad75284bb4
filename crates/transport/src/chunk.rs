//! Reads in chunks, with one buffer for all connections of a thread.

use crate::stream::ReadHalf;
use bytes::Bytes;
use jackfield_protocol::READ_BYTES;
use rustix::io::Errno;
use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

/// The maximum that is read from a peer that no longer reads: more than a socket buffer holds.
const DRAIN_BYTES_MAX: usize = 8 << 20;

thread_local! {
    /// Shared, so that idle connections need no buffers. Borrowed only during a read.
    static BUFFER: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// The next chunk; `None` at the end.
pub(crate) fn poll_read(
    half: &mut ReadHalf,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    BUFFER.with_borrow_mut(|buffer| {
        let read = half.poll_read(cx, buffer);
        read.map_ok(|count| (0 < count).then(|| Bytes::copy_from_slice(&buffer[..count])))
    })
}

/// Reads the chunks that a disconnected peer has sent before, without waiting.
pub(crate) struct SocketDrain {
    left: usize,
}

impl SocketDrain {
    pub(crate) fn new() -> SocketDrain {
        SocketDrain { left: DRAIN_BYTES_MAX }
    }

    /// The next chunk; `None` if nothing more is available.
    pub(crate) fn next_chunk(&mut self, half: &ReadHalf) -> Option<Bytes> {
        let mut buffer = vec![0; READ_BYTES.min(self.left)];
        loop {
            match rustix::io::read(half.fd(), &mut buffer) {
                Ok(count) if 0 < count => {
                    self.left -= count;
                    buffer.truncate(count);
                    return Some(buffer.into());
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}
