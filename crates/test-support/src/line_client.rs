//! A client of the bus at the cost of a system call: lines out of a big buffer, and no wait for ever.

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

/// Whom a message is for: a session, and a pool where there are several.
#[derive(Debug, Clone, Default)]
pub struct To {
    pub session: String,
    pub pool: Option<String>,
}

impl To {
    pub fn session(session: impl Into<String>) -> To {
        To { session: session.into(), pool: None }
    }

    pub fn in_pool(pool: &str, session: impl Into<String>) -> To {
        To { session: session.into(), pool: Some(pool.to_owned()) }
    }

    /// A request, with its line feed. `rest` follows the session in the params.
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
    /// What is read and not handed out.
    start: usize,
    end: usize,
    /// How long nothing may come before waiting is given up.
    patience: Duration,
}

impl LineClient {
    pub fn new(reader: OwnedFd, writer: OwnedFd, patience: Duration) -> LineClient {
        // A pipe takes no such option; a peer that stalls is met on sockets.
        let _only_sockets = set_socket_timeout(&writer, Timeout::Send, Some(patience));
        LineClient { reader, writer, buffer: vec![0; BUFFER], start: 0, end: 0, patience }
    }

    pub fn unix(path: &Path, patience: Duration) -> io::Result<LineClient> {
        let stream = UnixStream::connect(path)?;
        Ok(LineClient::new(stream.try_clone()?.into(), stream.into(), patience))
    }

    pub fn tcp(address: SocketAddr, patience: Duration) -> io::Result<LineClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(LineClient::new(stream.try_clone()?.into(), stream.into(), patience))
    }

    /// A second handle that only writes, for a thread of its own.
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

    /// How many whole lines have come, at least one; what they say is not looked at.
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

    /// The line that answers the only request there is, and how many came before it.
    pub fn answer(&mut self) -> io::Result<(&[u8], u64)> {
        let mut others = 0;
        loop {
            let line = self.line()?;
            // Here and in the worker ids stand near the start; notifications have none.
            if memchr::memmem::find(&line[..line.len().min(48)], b"\"id\":").is_some() {
                break;
            }
            others += 1;
        }
        // Found once more, because a borrow from inside the loop would outlive it.
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
        wait(&[self.reader.as_fd()], PollFlags::IN, self.patience)?;
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

/// Waits until one of them can be read or has ended; gives their places.
pub fn readable(clients: &[BorrowedFd<'_>], patience: Duration) -> io::Result<Vec<usize>> {
    wait(clients, PollFlags::IN, patience)
}

/// Writes all of it, also where the other side is slow to take it.
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

fn wait(fds: &[BorrowedFd<'_>], flags: PollFlags, bound: Duration) -> io::Result<Vec<usize>> {
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
