//! Stdin: lines, and a wait that ends when input arrives or a timer is due.

use std::{
    io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec};

/// The life time of an agent that ignores the end of its input, so that tests leave no process behind.
const EOF_LIFETIME: Duration = Duration::from_mins(10);

#[derive(Default)]
pub(crate) struct StdinReader {
    buffer: Vec<u8>,
    /// Bytes before this index were returned already.
    start: usize,
    /// There is no line feed before this index.
    searched: usize,
    ended: Option<Instant>,
}

impl StdinReader {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) fn has_expired(&self) -> bool {
        self.ended.is_some_and(|it| EOF_LIFETIME < it.elapsed())
    }

    /// The next complete line, without its end. After the end of input, an incomplete last line counts.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer[self.searched..].iter().position(|it| *it == b'\n');
        let Some(end) = end.map(|it| self.searched + it) else {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.searched = self.buffer.len();
            let rest = self.ended.is_some() && !self.buffer.is_empty();
            return rest.then(|| {
                self.searched = 0;
                std::mem::take(&mut self.buffer)
            });
        };
        let line = self.buffer[self.start..end].trim_ascii_end().to_vec();
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// Waits for input up to the timeout, then reads what is available.
    pub(crate) fn wait_and_read(&mut self, timeout: Option<Duration>) {
        let stdin = io::stdin();
        let mut wait = vec![];
        if self.ended.is_none() {
            wait.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let timeout = if self.has_ended() { timeout.or(Some(EOF_LIFETIME)) } else { timeout };
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        let ready = rustix::event::poll(&mut wait, timeout.as_ref()).unwrap_or(0);
        if 0 < ready {
            self.read();
        }
    }

    fn read(&mut self) {
        let mut chunk = [0; 16 * 1024];
        match rustix::io::read(io::stdin().as_fd(), &mut chunk) {
            Ok(0) => self.ended = Some(Instant::now()),
            Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.ended = Some(Instant::now()),
        }
    }
}
