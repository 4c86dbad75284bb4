//! Stdout: frames are collected and written in big pieces, because a burst must never wait for
//! the fake agent. The loop flushes before it blocks.

use std::{io, io::Write as _, os::fd::AsFd, thread, time::Duration};

use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
};
use serde_json::Value;

/// What a pipe holds: a bigger piece would be cut by the kernel anyway.
const PIECE: usize = 64 * 1024;

pub(crate) struct Output {
    buffer: Vec<u8>,
    end_of_line: &'static [u8],
    broken: bool,
}

impl Output {
    pub(crate) fn new(crlf: bool) -> Output {
        let end_of_line: &[u8] = if crlf { b"\r\n" } else { b"\n" };
        Output { buffer: Vec::with_capacity(2 * PIECE), end_of_line, broken: false }
    }

    /// Nobody reads stdout any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn frame(&mut self, frame: &Value) {
        serde_json::to_writer(&mut self.buffer, frame).expect("a value goes into memory");
        self.end_line();
    }

    /// One line, exactly these bytes.
    pub(crate) fn line(&mut self, line: &[u8]) {
        self.buffer.extend_from_slice(line);
        self.end_line();
    }

    /// Bytes that are no line of their own.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Updates `from..=to` of a burst: the text is the number, padded to `size` bytes.
    pub(crate) fn burst(&mut self, session: &str, from: u64, to: u64, size: usize) {
        let head = chunk_head(session);
        let padding = vec![b'x'; size];
        for number in from..=to {
            self.buffer.extend_from_slice(head.as_bytes());
            let start = self.buffer.len();
            write!(self.buffer, "{number}").expect("memory takes everything");
            let written = self.buffer.len() - start;
            if written + 1 < size {
                self.buffer.push(b' ');
                self.buffer.extend_from_slice(&padding[written + 1..]);
            }
            self.buffer.extend_from_slice(CHUNK_TAIL);
            self.end_line();
        }
    }

    /// One update with a text of `size` bytes, in constant memory.
    pub(crate) fn huge(&mut self, session: &str, size: usize) {
        self.bytes(chunk_head(session).as_bytes());
        let piece = vec![b'x'; PIECE];
        let mut left = size;
        while 0 < left {
            let now = left.min(PIECE);
            self.bytes(&piece[..now]);
            self.flush_if_full();
            left -= now;
        }
        self.line(CHUNK_TAIL);
    }

    /// One frame, a byte per write.
    pub(crate) fn trickle(&mut self, frame: &Value, pause: Duration) {
        self.flush();
        self.frame(frame);
        for byte in std::mem::take(&mut self.buffer) {
            self.write(&[byte]);
            thread::sleep(pause);
        }
    }

    pub(crate) fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn end_line(&mut self) {
        self.buffer.extend_from_slice(self.end_of_line);
        self.flush_if_full();
    }

    fn flush_if_full(&mut self) {
        if PIECE <= self.buffer.len() {
            self.flush();
        }
    }

    /// Straight to the file descriptor: the line buffer of `std::io::Stdout` would hold half lines.
    fn write(&mut self, mut bytes: &[u8]) {
        let stdout = io::stdout();
        while !bytes.is_empty() && !self.broken {
            match rustix::io::write(stdout.as_fd(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut wait = [PollFd::new(&stdout, PollFlags::OUT)];
                    self.broken = rustix::event::poll(&mut wait, None).is_err();
                }
                Err(_) => self.broken = true,
            }
        }
    }
}

const CHUNK_TAIL: &[u8] = b"\"}}}}";

/// An `agent_message_chunk` up to its text.
fn chunk_head(session: &str) -> String {
    let start = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#;
    let chunk = r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#;
    format!(r#"{start}{},"update":{{{chunk}"#, Value::from(session))
}
