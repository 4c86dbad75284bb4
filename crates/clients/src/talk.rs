//! A dialled connection as two halves that wait: for those who carry frames between the daemon and
//! somebody else. Who does not read on is not sent more: the daemon keeps its place in the journal.

use crate::chunk;
use crate::stream::{ReadHalf, Stream, WriteHalf};
use bytes::Bytes;
use jackfield_wire::LineSplitter;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};

impl Stream {
    /// Both directions of a dialled connection. A frame of the daemon longer than `frame_bytes_max`
    /// ends it.
    pub fn talk(self, frame_bytes_max: usize) -> (Hearing, Speaking) {
        let (read, write, _) = self.split();
        let splitter = LineSplitter::new(frame_bytes_max);
        let hearing = Hearing { half: read, splitter, ready: VecDeque::new() };
        (hearing, Speaking { half: write, finished: false })
    }
}

/// What the daemon says.
#[derive(Debug)]
pub struct Hearing {
    half: ReadHalf,
    splitter: LineSplitter,
    ready: VecDeque<Bytes>,
}

impl Hearing {
    /// The next frame as text, `None` when the daemon has closed. Safe to cancel.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
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

    /// Whether [`Hearing::next`] has a frame without waiting.
    pub fn has_more(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// What is said to the daemon. Dropped, it ends the connection in both directions: the daemon would
/// take one who has only stopped talking for one who still listens.
#[derive(Debug)]
pub struct Speaking {
    half: WriteHalf,
    finished: bool,
}

impl Speaking {
    /// One frame; the newline is added. Cut short, it leaves half a line: give up the connection
    /// then.
    pub async fn say(&mut self, text: &[u8]) -> io::Result<()> {
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

    /// Nothing more will be said; what is owed is still heard.
    pub fn finish(&mut self) {
        self.finished = true;
        self.half.finish();
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        if !self.finished {
            self.half.cut();
        }
    }
}
