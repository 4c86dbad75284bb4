//! A fast client of the bus: it reads lines from a large buffer, and every wait has a timeout.

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    net::sockopt::{Timeout, set_socket_timeout},
};
use std::{
    fmt::Write as _,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::Duration,
};

const BUFFER: usize = 256 * 1024;

/// The target of a message: a session, and a pool if there are several.
#[derive(Debug, Clone, Default)]
pub struct MessageTarget {
    pub session: String,
    pub pool: Option<String>,
}

impl MessageTarget {
    pub fn for_session(session: impl Into<String>) -> MessageTarget {
        MessageTarget { session: session.into(), pool: None }
    }

    pub fn in_pool(pool: &str, session: impl Into<String>) -> MessageTarget {
        MessageTarget { session: session.into(), pool: Some(pool.to_owned()) }
    }

    /// A request line. `rest` follows the session in the params.
    pub fn request(&self, id: u64, method: &str, rest: &str) -> String {
        self.message(&format!(",\"id\":{id}"), method, rest)
    }

    pub fn notification(&self, method: &str, rest: &str) -> String {
        self.message("", method, rest)
    }

    fn message(&self, id: &str, method: &str, rest: &str) -> String {
        let session = &self.session;
        let mut line = format!("{{\"jsonrpc\":\"2.0\"{id},\"sessionId\":\"{session}\"");
        if let Some(pool) = &self.pool {
            let _ = write!(line, ",\"pool\":\"{pool}\"");
        }
        let _ = write!(
            line,
            ",\"method\":\"{method}\",\"params\":{{\"sessionId\":\"{session}\"{rest}}}}}"
        );
        line.push('\n');
        line
    }
}

/// A socket, or the two pipes of a process.
pub struct LineClient {
    reader: OwnedFd,
    writer: OwnedFd,
    buffer: Vec<u8>,
    /// The range of bytes that are read and not returned yet.
    start: usize,
    end: usize,
    /// A read or write that makes no progress for this long fails.
    timeout: Duration,
}

impl LineClient {
    pub fn new(reader: OwnedFd, writer: OwnedFd, timeout: Duration) -> LineClient {
        // Pipes do not support this option; only tests with sockets have peers that stall.
        let _only_sockets = set_socket_timeout(&writer, Timeout::Send, Some(timeout));
        LineClient { reader, writer, buffer: vec![0; BUFFER], start: 0, end: 0, timeout }
    }

    pub fn unix(path: &Path, timeout: Duration) -> io::Result<LineClient> {
        let stream = UnixStream::connect(path)?;
        Ok(LineClient::new(stream.try_clone()?.into(), stream.into(), timeout))
    }

    pub fn tcp(address: SocketAddr, timeout: Duration) -> io::Result<LineClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(LineClient::new(stream.try_clone()?.into(), stream.into(), timeout))
    }

    /// A second handle for writing, for another thread.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        self.writer.try_clone()
    }

    pub fn send(&mut self, lines: &[u8]) -> io::Result<()> {
        write_all(&self.writer, lines)
    }

    /// The next line, without its line feed.
    pub fn line(&mut self) -> io::Result<&[u8]> {
        let mut searched = self.start;
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[searched..self.end]);
            if let Some(found) = found.map(|it| searched + it) {
                let line = self.start..found;
                self.start = found + 1;
                return Ok(&self.buffer[line]);
            }
            let known = self.end - self.start;
            self.fill()?;
            searched = self.start + known;
        }
    }

    /// Reads at least one line and returns how many complete lines were read; their content is ignored.
    pub fn lines(&mut self) -> io::Result<u64> {
        loop {
            let count = memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count();
            if 0 < count {
                let last = memchr::memrchr(b'\n', &self.buffer[self.start..self.end]);
                self.start += last.expect("there is one") + 1;
                return Ok(count as u64);
            }
            self.fill()?;
        }
    }

    /// The response to the only open request, and the number of lines before it.
    pub fn answer(&mut self) -> io::Result<(&[u8], u64)> {
        let mut others = 0;
        loop {
            let line = self.line()?;
            // In these messages, ids are near the start; notifications have none.
            if memchr::memmem::find(&line[..line.len().min(48)], b"\"id\":").is_some() {
                break;
            }
            others += 1;
        }
        // Computed again, because a borrow from inside the loop would outlive it.
        let end = self.start - 1;
        let before = memchr::memrchr(b'\n', &self.buffer[..end]);
        Ok((&self.buffer[before.map_or(0, |it| it + 1)..end], others))
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.buffer.len() {
                self.buffer.resize(2 * self.end, 0);
            }
        }
        poll_ready(&[self.reader.as_fd()], PollFlags::IN, self.timeout)?;
        let count = rustix::io::read(&self.reader, &mut self.buffer[self.end..])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.end += count;
        Ok(())
    }
}

impl AsFd for LineClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// Waits until one of them is readable or at its end; returns the indexes of those.
pub fn wait_until_readable(
    clients: &[BorrowedFd<'_>],
    timeout: Duration,
) -> io::Result<Vec<usize>> {
    poll_ready(clients, PollFlags::IN, timeout)
}

/// Writes all bytes, even if the other side reads slowly.
pub fn write_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn poll_ready(fds: &[BorrowedFd<'_>], flags: PollFlags, bound: Duration) -> io::Result<Vec<usize>> {
    let bound = Timespec::try_from(bound).expect("bounds are short");
    let mut wait: Vec<_> = fds.iter().map(|it| PollFd::from_borrowed_fd(*it, flags)).collect();
    loop {
        match rustix::event::poll(&mut wait, Some(&bound)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => break,
        }
    }
    let ready = wait.iter().enumerate().filter(|(_, it)| !it.revents().is_empty());
    Ok(ready.map(|(place, _)| place).collect())
}
