//! Stdin: lines, and a wait that ends when there is more to read or a timer is due.

use std::{
    io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec};

/// How long an agent that ignores the end of its input lives on: tests must leave nothing.
const AFTERLIFE: Duration = Duration::from_mins(10);

#[derive(Default)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    /// Bytes before this are handed out already.
    start: usize,
    /// No line feed before this.
    searched: usize,
    ended: Option<Instant>,
}

impl Input {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) fn is_forgotten(&self) -> bool {
        self.ended.is_some_and(|it| AFTERLIFE < it.elapsed())
    }

    /// The next whole line, without its end; a last line without one counts when input has ended.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
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

    /// Waits for more input, at most so long; then reads what is there.
    pub(crate) fn fill(&mut self, timeout: Option<Duration>) {
        let stdin = io::stdin();
        let mut wait = vec![];
        if self.ended.is_none() {
            wait.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let timeout = if self.has_ended() { timeout.or(Some(AFTERLIFE)) } else { timeout };
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
