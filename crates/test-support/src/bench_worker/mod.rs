//! `bench-worker`: an NDJSON worker that is faster than the program under test.
//!
//! It searches for the few fields that it needs, flushes a single response at once, and writes many lines in large pieces.
//! Messages name their session beside the params and inside, so that a router can use either.
//!
//! | method | what it does |
//! |---|---|
//! | `bench/ping` | the response has the `n` of the request |
//! | `bench/prompt` | one notification, then the response |
//! | `bench/burst` | `count` notifications of `bytes` bytes, then the response |
//! | `bench/tale` | `count` notifications that differ; the response has their checksum |
//! | `bench/hold` | no response until `bench/release`, which is answered last |
//! | `bench/ask` | asks the client for `n`; the response has the client's answer |
//! | `bench/note` | a notification: counted and added to the checksum of its session |
//! | `bench/told` | the response has count and checksum of the notifications |

mod checksum;
mod fields;

pub use checksum::Checksum;
pub use fields::{field, number, string, varied_texts};

use crate::fake_agent::output::StdoutWriter;
use rustix::io::Errno;
use std::{collections::BTreeMap, io, io::Write as _, os::fd::AsFd as _, process::ExitCode};

/// The capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// Runs the program.
pub fn run() -> ExitCode {
    let mut worker = BenchWorker::default();
    let mut input = Vec::with_capacity(2 * READ_BYTES);
    while !worker.output.is_broken() && read(&mut input) {
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &input[start..]) {
            worker.handle_line(&input[start..start + length]);
            start += length + 1;
        }
        input.drain(..start);
        // One write for the responses to all lines of one read.
        worker.output.flush();
    }
    ExitCode::SUCCESS
}

/// Appends available bytes to `input`; returns false at the end.
fn read(input: &mut Vec<u8>) -> bool {
    let length = input.len();
    input.resize(length + READ_BYTES, 0);
    let count = loop {
        match rustix::io::read(io::stdin().as_fd(), &mut input[length..]) {
            Err(Errno::INTR) => {}
            other => break other.unwrap_or(0),
        }
    };
    input.truncate(length + count);
    0 < count
}

struct BenchWorker {
    output: StdoutWriter,
    /// Ids of requests that wait for `bench/release`, with their sessions.
    held: Vec<(Vec<u8>, Vec<u8>)>,
    /// Requests to clients, and the request of the client that each belongs to.
    client_requests: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    next_ask: u64,
    notes: BTreeMap<Vec<u8>, Checksum>,
    line: Vec<u8>,
}

impl Default for BenchWorker {
    fn default() -> BenchWorker {
        BenchWorker {
            output: StdoutWriter::new(false),
            held: Vec::new(),
            client_requests: BTreeMap::new(),
            next_ask: 0,
            notes: BTreeMap::new(),
            line: Vec::new(),
        }
    }
}

impl BenchWorker {
    fn handle_line(&mut self, line: &[u8]) {
        let session = string(line, "sessionId").unwrap_or_default();
        let Some(method) = string(line, "method") else {
            return self.handle_response(line);
        };
        let count = number(line, "count").unwrap_or(1);
        let Some(id) = field(line, "id") else {
            return self.handle_note(session, line);
        };
        let n = number(line, "n").unwrap_or(0);
        match method {
            b"bench/prompt" => {
                self.send_burst(session, 1, 16);
                self.send_result(id, session, 1, None);
            }
            b"bench/burst" => {
                let bytes = number(line, "bytes").unwrap_or(0);
                self.send_burst(session, count, usize::try_from(bytes).unwrap_or(0));
                self.send_result(id, session, count, None);
            }
            b"bench/tale" => {
                let sum = self.send_varied_texts(session, n, count);
                self.send_result(id, session, count, Some(sum));
            }
            b"bench/hold" => self.held.push((id.to_vec(), session.to_vec())),
            b"bench/release" => {
                for (held, session) in std::mem::take(&mut self.held) {
                    self.send_result(&held, &session, 0, None);
                }
                self.send_result(id, session, n, None);
            }
            b"bench/ask" => self.send_request(id, session, n),
            b"bench/told" => {
                let notes = self.notes.get(session).copied().unwrap_or_default();
                self.send_result(id, session, notes.count, Some(notes));
            }
            // `bench/ping` and unknown methods: every request is answered.
            _ => self.send_result(id, session, n, None),
        }
    }

    fn handle_note(&mut self, session: &[u8], line: &[u8]) {
        if let Some(text) = string(line, "text") {
            let seen = self.notes.entry(session.to_vec()).or_default();
            seen.add(number(line, "n").unwrap_or(0), text);
        }
    }

    fn handle_response(&mut self, line: &[u8]) {
        let asked = number(line, "id").and_then(|it| self.client_requests.remove(&it));
        if let Some((id, session)) = asked {
            self.send_result(&id, &session, number(line, "n").unwrap_or(0), None);
        }
    }

    fn send_result(&mut self, id: &[u8], session: &[u8], n: u64, sum: Option<Checksum>) {
        self.line.clear();
        self.line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        self.line.extend_from_slice(id);
        self.append_session(session);
        self.append_text(format_args!(",\"result\":{{\"n\":{n}"));
        if let Some(sum) = sum {
            self.append_text(format_args!(",\"sum\":{}", sum.sum));
        }
        self.line.extend_from_slice(b"}}");
        self.output.write_line(&self.line);
    }

    fn send_request(&mut self, id: &[u8], session: &[u8], n: u64) {
        self.next_ask += 1;
        let ask = self.next_ask;
        self.client_requests.insert(ask, (id.to_vec(), session.to_vec()));
        self.line.clear();
        self.append_text(format_args!("{{\"jsonrpc\":\"2.0\",\"id\":{ask}"));
        self.append_session(session);
        let session = String::from_utf8_lossy(session);
        let params = format_args!("{{\"sessionId\":\"{session}\",\"n\":{n}}}");
        self.append_text(format_args!(",\"method\":\"bench/asked\",\"params\":{params}}}"));
        self.output.write_line(&self.line);
    }

    fn send_burst(&mut self, session: &[u8], count: u64, bytes: usize) {
        let head = fields::note_head(session);
        let tail = [b",\"text\":\"", &vec![b'x'; bytes][..], fields::NOTE_TAIL].concat();
        for number in 1..=count {
            self.output.write_bytes(&head);
            self.line.clear();
            self.append_text(format_args!("{number}"));
            self.output.write_bytes(&self.line);
            self.output.write_line(&tail);
            // The reader is gone.
            if self.output.is_broken() {
                return;
            }
        }
    }

    fn send_varied_texts(&mut self, session: &[u8], seed: u64, count: u64) -> Checksum {
        let head = fields::note_head(session);
        let mut sum = Checksum::default();
        for (n, text) in (1..=count).zip(varied_texts(seed)) {
            sum.add(n, text.as_bytes());
            self.line.clear();
            self.line.extend_from_slice(&head);
            self.append_text(format_args!("{n},\"text\":\"{text}"));
            self.line.extend_from_slice(fields::NOTE_TAIL);
            self.output.write_line(&self.line);
        }
        sum
    }

    fn append_text(&mut self, words: std::fmt::Arguments<'_>) {
        self.line.write_fmt(words).expect("memory takes everything");
    }

    fn append_session(&mut self, session: &[u8]) {
        if !session.is_empty() {
            self.line.extend_from_slice(b",\"sessionId\":\"");
            self.line.extend_from_slice(session);
            self.line.push(b'"');
        }
    }
}
