//! Reading in pieces, with one buffer for all connections of a thread.

use crate::stream::ReadHalf;
use bytes::Bytes;
use jackfield_wire::READ_BYTES;
use rustix::io::Errno;
use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

/// What is read at most from a peer that can no longer hear us: more than a socket holds.
const DRAIN_BYTES_MAX: usize = 8 << 20;

thread_local! {
    /// Shared, so that a thousand idle connections cost no buffers. Borrowed only while a read runs.
    static BUFFER: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// The next piece; `None` at the end.
pub(crate) fn poll_read(
    half: &mut ReadHalf,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    BUFFER.with_borrow_mut(|buffer| {
        let read = half.poll_read(cx, buffer);
        read.map_ok(|count| (0 < count).then(|| Bytes::copy_from_slice(&buffer[..count])))
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
