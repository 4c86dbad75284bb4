//! Stdout: frames are buffered and written in large pieces, so that the agent is never the bottleneck of a burst. The loop
//! flushes before it blocks.

use std::{io, io::Write as _, os::fd::AsFd, thread, time::Duration};

use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
};
use serde_json::Value;

/// The capacity of a pipe; the kernel would split larger writes.
const PIECE: usize = 64 * 1024;

pub(crate) struct StdoutWriter {
    buffer: Vec<u8>,
    end_of_line: &'static [u8],
    broken: bool,
}

impl StdoutWriter {
    pub(crate) fn new(crlf: bool) -> StdoutWriter {
        let end_of_line: &[u8] = if crlf { b"\r\n" } else { b"\n" };
        StdoutWriter { buffer: Vec::with_capacity(2 * PIECE), end_of_line, broken: false }
    }

    /// Whether stdout is closed.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn write_frame(&mut self, frame: &Value) {
        serde_json::to_writer(&mut self.buffer, frame).expect("a value goes into memory");
        self.end_line();
    }

    /// Writes one line with exactly these bytes.
    pub(crate) fn write_line(&mut self, line: &[u8]) {
        self.buffer.extend_from_slice(line);
        self.end_line();
    }

    /// Writes bytes without an end of line.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes the updates `from..=to` of a burst: the text is the number, padded to `size` bytes.
    pub(crate) fn write_burst(&mut self, session: &str, from: u64, to: u64, size: usize) {
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

    /// Writes one update with a text of `size` bytes, in constant memory.
    pub(crate) fn write_huge(&mut self, session: &str, size: usize) {
        self.write_bytes(chunk_head(session).as_bytes());
        let piece = vec![b'x'; PIECE];
        let mut left = size;
        while 0 < left {
            let now = left.min(PIECE);
            self.write_bytes(&piece[..now]);
            self.flush_if_full();
            left -= now;
        }
        self.write_line(CHUNK_TAIL);
    }

    /// Writes one frame byte by byte.
    pub(crate) fn write_slowly(&mut self, frame: &Value, pause: Duration) {
        self.flush();
        self.write_frame(frame);
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

    /// Writes to the file descriptor, because the line buffer of `std::io::Stdout` would keep incomplete lines.
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

/// The start of an `agent_message_chunk`, up to its text.
fn chunk_head(session: &str) -> String {
    let start = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#;
    let chunk = r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#;
    format!(r#"{start}{},"update":{{{chunk}"#, Value::from(session))
}
