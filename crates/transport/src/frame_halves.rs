//! Splits a dialed connection into two asynchronous halves, for components that relay frames
//! between the daemon and a client. If the reader pauses, the daemon sends no more and keeps the
//! position in the journal.

use crate::chunk;
use crate::stream::{ClientStream, ReadHalf, WriteHalf};
use bytes::Bytes;
use jackfield_protocol::LineSplitter;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};

impl ClientStream {
    /// Splits a dialed connection. A frame of the daemon that exceeds `frame_bytes_max` is an
    /// error.
    pub fn into_frame_halves(self, frame_bytes_max: usize) -> (FrameReceiver, FrameSender) {
        let (read, write, _) = self.split();
        let splitter = LineSplitter::new(frame_bytes_max);
        let receiver = FrameReceiver { half: read, splitter, ready: VecDeque::new() };
        (receiver, FrameSender { half: write, is_finished: false })
    }
}

/// Receives frames from the daemon.
#[derive(Debug)]
pub struct FrameReceiver {
    half: ReadHalf,
    splitter: LineSplitter,
    ready: VecDeque<Bytes>,
}

impl FrameReceiver {
    /// The next frame as text, `None` when the daemon has closed. Safe to cancel.
    pub async fn next_frame(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            let half = &mut self.half;
            let Some(chunk) = poll_fn(|cx| chunk::poll_read(half, cx)).await? else {
                return Ok(None);
            };
            let mut failed = None;
            self.splitter.push(chunk, &mut |line| match line {
                Ok(line) => self.ready.push_back(line),
                Err(too_long) => failed = Some(too_long),
            });
            if let Some(too_long) = failed {
                return Err(io::Error::new(io::ErrorKind::InvalidData, too_long));
            }
        }
    }

    /// Whether [`FrameReceiver::next_frame`] has a frame without waiting.
    pub fn has_more(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// Sends frames to the daemon. Dropping it closes the connection in both directions; if only the
/// sending side were closed, the daemon would assume that the client still reads.
#[derive(Debug)]
pub struct FrameSender {
    half: WriteHalf,
    is_finished: bool,
}

impl FrameSender {
    /// Sends one frame and a newline. If the future is dropped, a partial line may have been sent;
    /// close the connection then.
    pub async fn send_frame(&mut self, text: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done <= text.len() {
            let rest = text.get(done..).unwrap_or_default();
            match self.half.try_write_vectored(&[IoSlice::new(rest), IoSlice::new(b"\n")]) {
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.half.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes the sending side; pending answers can still be received.
    pub fn finish(&mut self) {
        self.is_finished = true;
        self.half.finish();
    }
}

impl Drop for FrameSender {
    fn drop(&mut self) {
        if !self.is_finished {
            self.half.close_both();
        }
    }
}
