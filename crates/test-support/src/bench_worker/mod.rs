//! An NDJSON worker that is faster than whatever stands before it: `bench-worker`.
//!
//! It looks for the few fields it needs and does not read the rest, answers at once when it has one
//! line to say, and in big pieces when it has many. Sessions are named beside the params and in them,
//! so that a router may look at either.
//!
//! | method | what it does |
//! |---|---|
//! | `bench/ping` | the answer has the `n` of the request |
//! | `bench/prompt` | one notification, then the answer |
//! | `bench/burst` | `count` notifications of `bytes` bytes, then the answer |
//! | `bench/tale` | `count` notifications that differ; the answer has their checksum |
//! | `bench/hold` | no answer until `bench/release`, which is answered last |
//! | `bench/ask` | asks the client for `n`; the answer has what the client said |
//! | `bench/note` | a notification: counted and added to the checksum of its session |
//! | `bench/told` | the answer has both |

mod check;
mod words;

pub use check::Checksum;
pub use words::{field, number, string, tale};

use crate::fake_agent::output::Output;
use rustix::io::Errno;
use std::{collections::BTreeMap, io, io::Write as _, os::fd::AsFd as _, process::ExitCode};

/// As much as a pipe holds.
const READ: usize = 64 * 1024;

/// The whole program.
pub fn run() -> ExitCode {
    let mut worker = Worker::default();
    let mut input = Vec::with_capacity(2 * READ);
    while !worker.output.is_broken() && read(&mut input) {
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &input[start..]) {
            worker.hear(&input[start..start + length]);
            start += length + 1;
        }
        input.drain(..start);
        // One write for all the answers to what was read at once.
        worker.output.flush();
    }
    ExitCode::SUCCESS
}

/// Adds what there is to `input`; false at the end.
fn read(input: &mut Vec<u8>) -> bool {
    let length = input.len();
    input.resize(length + READ, 0);
    let count = loop {
        match rustix::io::read(io::stdin().as_fd(), &mut input[length..]) {
            Err(Errno::INTR) => {}
            other => break other.unwrap_or(0),
        }
    };
    input.truncate(length + count);
    0 < count
}

struct Worker {
    output: Output,
    /// Ids of requests that wait for `bench/release`, with their sessions.
    held: Vec<(Vec<u8>, Vec<u8>)>,
    /// What was asked of clients: the request it is for.
    asked: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    next_ask: u64,
    notes: BTreeMap<Vec<u8>, Checksum>,
    line: Vec<u8>,
}

impl Default for Worker {
    fn default() -> Worker {
        Worker {
            output: Output::new(false),
            held: Vec::new(),
            asked: BTreeMap::new(),
            next_ask: 0,
            notes: BTreeMap::new(),
            line: Vec::new(),
        }
    }
}

impl Worker {
    fn hear(&mut self, line: &[u8]) {
        let session = string(line, "sessionId").unwrap_or_default();
        let Some(method) = string(line, "method") else {
            return self.hear_answer(line);
        };
        let count = number(line, "count").unwrap_or(1);
        let Some(id) = field(line, "id") else {
            return self.hear_note(session, line);
        };
        let n = number(line, "n").unwrap_or(0);
        match method {
            b"bench/prompt" => {
                self.burst(session, 1, 16);
                self.answer(id, session, 1, None);
            }
            b"bench/burst" => {
                let bytes = number(line, "bytes").unwrap_or(0);
                self.burst(session, count, usize::try_from(bytes).unwrap_or(0));
                self.answer(id, session, count, None);
            }
            b"bench/tale" => {
                let sum = self.tale(session, n, count);
                self.answer(id, session, count, Some(sum));
            }
            b"bench/hold" => self.held.push((id.to_vec(), session.to_vec())),
            b"bench/release" => {
                for (held, session) in std::mem::take(&mut self.held) {
                    self.answer(&held, &session, 0, None);
                }
                self.answer(id, session, n, None);
            }
            b"bench/ask" => self.ask(id, session, n),
            b"bench/told" => {
                let told = self.notes.get(session).copied().unwrap_or_default();
                self.answer(id, session, told.count, Some(told));
            }
            // `bench/ping`, and whatever else somebody asks: nobody waits for ever.
            _ => self.answer(id, session, n, None),
        }
    }

    fn hear_note(&mut self, session: &[u8], line: &[u8]) {
        if let Some(text) = string(line, "text") {
            let seen = self.notes.entry(session.to_vec()).or_default();
            seen.add(number(line, "n").unwrap_or(0), text);
        }
    }

    fn hear_answer(&mut self, line: &[u8]) {
        let asked = number(line, "id").and_then(|it| self.asked.remove(&it));
        if let Some((id, session)) = asked {
            self.answer(&id, &session, number(line, "n").unwrap_or(0), None);
        }
    }

    fn answer(&mut self, id: &[u8], session: &[u8], n: u64, sum: Option<Checksum>) {
        self.line.clear();
        self.line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        self.line.extend_from_slice(id);
        self.say_session(session);
        self.say(format_args!(",\"result\":{{\"n\":{n}"));
        if let Some(sum) = sum {
            self.say(format_args!(",\"sum\":{}", sum.sum));
        }
        self.line.extend_from_slice(b"}}");
        self.output.line(&self.line);
    }

    fn ask(&mut self, id: &[u8], session: &[u8], n: u64) {
        self.next_ask += 1;
        let ask = self.next_ask;
        self.asked.insert(ask, (id.to_vec(), session.to_vec()));
        self.line.clear();
        self.say(format_args!("{{\"jsonrpc\":\"2.0\",\"id\":{ask}"));
        self.say_session(session);
        let session = String::from_utf8_lossy(session);
        let params = format_args!("{{\"sessionId\":\"{session}\",\"n\":{n}}}");
        self.say(format_args!(",\"method\":\"bench/asked\",\"params\":{params}}}"));
        self.output.line(&self.line);
    }

    fn burst(&mut self, session: &[u8], count: u64, bytes: usize) {
        let head = words::note_head(session);
        let tail = [b",\"text\":\"", &vec![b'x'; bytes][..], words::NOTE_TAIL].concat();
        for number in 1..=count {
            self.output.bytes(&head);
            self.line.clear();
            self.say(format_args!("{number}"));
            self.output.bytes(&self.line);
            self.output.line(&tail);
            // A reader that left, or a stop: nobody wants the rest.
            if self.output.is_broken() {
                return;
            }
        }
    }

    fn tale(&mut self, session: &[u8], seed: u64, count: u64) -> Checksum {
        let head = words::note_head(session);
        let mut sum = Checksum::default();
        for (n, text) in (1..=count).zip(tale(seed)) {
            sum.add(n, text.as_bytes());
            self.line.clear();
            self.line.extend_from_slice(&head);
            self.say(format_args!("{n},\"text\":\"{text}"));
            self.line.extend_from_slice(words::NOTE_TAIL);
            self.output.line(&self.line);
        }
        sum
    }

    fn say(&mut self, words: std::fmt::Arguments<'_>) {
        self.line.write_fmt(words).expect("memory takes everything");
    }

    fn say_session(&mut self, session: &[u8]) {
        if !session.is_empty() {
            self.line.extend_from_slice(b",\"sessionId\":\"");
            self.line.extend_from_slice(session);
            self.line.push(b'"');
        }
    }
}
