//! One buffer for reading many streams: what is read in bulk is shared, what is small is copied.

use bytes::{Bytes, BytesMut};

/// A pipe holds 64 KiB unless someone made it larger: one read may empty it.
pub const READ_BYTES: usize = 64 << 10;

/// Several reads share one allocation.
const BUFFER_BYTES: usize = 256 << 10;

/// Kept once a thread, so that a thousand idle streams cost no buffers.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: BytesMut,
    copied_max: usize,
}

impl ReadBuffer {
    /// A piece of up to `copied_max` bytes is copied: as a slice it would hold on to the whole
    /// buffer for as long as one frame of it lives.
    pub fn new(copied_max: usize) -> ReadBuffer {
        ReadBuffer { bytes: BytesMut::new(), copied_max }
    }

    /// Where the next read goes, with room for [`READ_BYTES`] at least.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.bytes.capacity() - self.bytes.len() < READ_BYTES {
            // Takes the old memory back if no frame holds it any more.
            self.bytes.reserve(BUFFER_BYTES);
        }
        &mut self.bytes
    }

    /// What the read brought; `None` if that was nothing, the end of the stream.
    pub fn take(&mut self, count: usize) -> Option<Bytes> {
        if count == 0 {
            return None;
        }
        if self.copied_max < count {
            return Some(self.bytes.split().freeze());
        }
        let piece = Bytes::copy_from_slice(&self.bytes);
        self.bytes.clear();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &mut ReadBuffer, size: usize) -> Option<Bytes> {
        let room = buffer.room();
        assert!(READ_BYTES <= room.capacity() - room.len());
        room.extend_from_slice(&vec![b'x'; size]);
        buffer.take(size)
    }

    #[test]
    fn small_pieces_are_copied_and_large_ones_share_the_buffer() {
        let mut buffer = ReadBuffer::new(16);
        let small = read(&mut buffer, 16).unwrap();
        let start = buffer.room().as_ptr();
        let large = read(&mut buffer, 17).unwrap();
        assert_ne!(small.as_ptr(), start);
        assert_eq!(large.as_ptr(), start);
        assert_eq!((small.len(), large.len()), (16, 17));
    }

    #[test]
    fn nothing_is_the_end() {
        assert_eq!(read(&mut ReadBuffer::new(16), 0), None);
    }
}
