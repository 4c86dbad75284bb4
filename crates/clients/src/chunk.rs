//! Reading in large pieces, with one buffer for all connections of a thread.

use crate::stream::ReadHalf;
use bytes::Bytes;
use jackfield_wire::ReadBuffer;
use jackfield_wire::buffer::READ_BYTES;
use rustix::io::Errno;
use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

/// A smaller piece is copied: it would hold on to the whole buffer as long as one frame lives.
const COPY_BYTES_MAX: usize = 16 << 10;
/// What is read at most from a peer that can no longer hear us: more than a socket holds.
const DRAIN_BYTES_MAX: usize = 8 << 20;

thread_local! {
    /// Shared, so that a thousand idle connections cost no buffers. Borrowed only while a read runs.
    static BUFFER: RefCell<ReadBuffer> = RefCell::new(ReadBuffer::new(COPY_BYTES_MAX));
}

/// The next piece; `None` at the end.
pub(crate) fn poll_read(
    half: &mut ReadHalf,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    BUFFER.with_borrow_mut(|buffer| {
        half.poll_read(cx, buffer.room()).map_ok(|count| buffer.take(count))
    })
}

/// The next piece, while the sender of it cannot wait for us any more: `None` when there is no
/// more of it now.
pub(crate) struct Drain {
    left: usize,
}

impl Drain {
    pub(crate) fn new() -> Drain {
        Drain { left: DRAIN_BYTES_MAX }
    }

    pub(crate) fn next(&mut self, half: &ReadHalf) -> Option<Bytes> {
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
