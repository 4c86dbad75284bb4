//! A client that says everything a client can say, and knows what must come back.

use super::Bus;
use jackfield_test_support::{
    bench_worker::{Checksum, field, number, string, varied_texts},
    line_client::{LineClient, MessageTarget},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Add,
    thread,
    time::{Duration, Instant},
};

/// What was said and heard; printed at the end.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) visits: u64,
    pub(crate) sessions: u64,
    pub(crate) answered: u64,
    /// Answered with an error, because the worker was killed.
    pub(crate) failed: u64,
    pub(crate) notes_heard: u64,
    pub(crate) notes_sent: u64,
    pub(crate) asked_by_workers: u64,
    /// Of these, by the bus, because the worker was killed.
    pub(crate) withdrawn: u64,
}

impl Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally {
            visits: self.visits + other.visits,
            sessions: self.sessions + other.sessions,
            answered: self.answered + other.answered,
            failed: self.failed + other.failed,
            notes_heard: self.notes_heard + other.notes_heard,
            notes_sent: self.notes_sent + other.notes_sent,
            asked_by_workers: self.asked_by_workers + other.asked_by_workers,
            withdrawn: self.withdrawn + other.withdrawn,
        }
    }
}

/// What the answer to a request must say.
enum Due {
    /// This number.
    Number(u64),
    /// The count and the checksum of the notes that were sent.
    Sent(Checksum),
    /// Those of the notes that were heard.
    Heard,
}

pub(crate) struct Talker {
    client: LineClient,
    pool: &'static str,
    to: MessageTarget,
    seed: u64,
    next_id: u64,
    due: BTreeMap<u64, Due>,
    /// Ids of what workers asked on this connection.
    asked: BTreeSet<u64>,
    /// Of the tale that is being told.
    heard: Checksum,
    /// How long it takes to read some lines.
    pause: Duration,
    tally: Tally,
}

const SESSIONS: u64 = 10;

impl Talker {
    pub(crate) fn new(bus: &Bus, pool: &'static str, seed: u64) -> Talker {
        Talker {
            client: bus.dial(),
            pool,
            to: MessageTarget::default(),
            seed,
            next_id: 0,
            due: BTreeMap::new(),
            asked: BTreeSet::new(),
            heard: Checksum::default(),
            pause: Duration::ZERO,
            tally: Tally { visits: 1, ..Tally::default() },
        }
    }

    /// Some sessions, one after another, with everything in each.
    pub(crate) fn talk(mut self, end: Instant) -> Tally {
        for session in 0..SESSIONS {
            if end <= Instant::now() {
                break;
            }
            self.open(session);
            self.ping(1 + self.seed % 400);
            self.tell_notes(1 + self.seed % 300);
            self.hear_tale(1 + self.seed % 500);
            self.be_asked(1 + self.seed % 20);
            self.hold(1 + self.seed % 50);
        }
        self.tally
    }

    /// One long tale after another, read more slowly than it is told.
    pub(crate) fn read_slowly(mut self, end: Instant) -> Tally {
        self.pause = Duration::from_millis(2);
        let mut session = 0;
        while Instant::now() < end {
            session += 1;
            self.open(session);
            self.hear_tale(10_000);
        }
        self.tally
    }

    fn open(&mut self, session: u64) {
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(session) >> 1;
        self.to =
            MessageTarget::in_pool(self.pool, format!("{}-{:x}-{session}", self.pool, self.seed));
        self.tally.sessions += 1;
    }

    fn is_mortal(&self) -> bool {
        self.pool == "mortal"
    }

    fn request(&mut self, method: &str, rest: &str, due: Due) -> String {
        self.next_id += 1;
        self.due.insert(self.next_id, due);
        self.to.request(self.next_id, method, rest)
    }

    /// Many at once: each answer has the number of its own request.
    fn ping(&mut self, count: u64) {
        let lines: String = (0..count)
            .map(|n| self.request("bench/ping", &format!(",\"n\":{n}"), Due::Number(n)))
            .collect();
        self.client.send(lines.as_bytes()).unwrap();
        self.settle();
    }

    /// Notes to the worker; then it says how many it has heard, and which.
    fn tell_notes(&mut self, count: u64) {
        let mut sent = Checksum::default();
        let mut lines = String::new();
        for (n, text) in (1..=count).zip(varied_texts(self.seed)) {
            sent.add(n, text.as_bytes());
            let rest = format!(",\"n\":{n},\"text\":\"{text}\"");
            lines.push_str(&self.to.notification("bench/note", &rest));
        }
        lines.push_str(&self.request("bench/told", "", Due::Sent(sent)));
        self.client.send(lines.as_bytes()).unwrap();
        self.tally.notes_sent += count;
        self.settle();
    }

    /// Notes of the worker, and their count and checksum as it has them.
    fn hear_tale(&mut self, count: u64) {
        self.heard = Checksum::default();
        let rest = format!(",\"n\":{},\"count\":{count}", self.seed);
        let line = self.request("bench/tale", &rest, Due::Heard);
        self.client.send(line.as_bytes()).unwrap();
        self.settle();
    }

    /// The worker asks back, and answers with what it was told.
    fn be_asked(&mut self, count: u64) {
        let lines: String = (0..count)
            .map(|n| self.request("bench/ask", &format!(",\"n\":{n}"), Due::Number(n + 1)))
            .collect();
        self.client.send(lines.as_bytes()).unwrap();
        self.settle();
    }

    /// Requests that are answered late; a worker that is killed meanwhile never answers them.
    fn hold(&mut self, count: u64) {
        let lines: String =
            (0..count).map(|_| self.request("bench/hold", "", Due::Number(0))).collect();
        self.client.send(lines.as_bytes()).unwrap();
        if self.is_mortal() {
            thread::sleep(Duration::from_millis(100));
        }
        let line = self.request("bench/release", ",\"n\":7", Due::Number(7));
        self.client.send(line.as_bytes()).unwrap();
        self.settle();
    }

    /// Reads until nothing is due any more.
    fn settle(&mut self) {
        let mut lines = 0_u64;
        while !self.due.is_empty() {
            let line = match self.client.line() {
                Ok(line) => line.to_vec(),
                Err(error) => panic!("{error}: {} answers are missing", self.due.len()),
            };
            self.hear(&line);
            lines += 1;
            if !self.pause.is_zero() && lines.is_multiple_of(32) {
                thread::sleep(self.pause);
            }
        }
    }

    fn hear(&mut self, line: &[u8]) {
        let said = || String::from_utf8_lossy(line);
        match string(line, "method") {
            Some(b"bench/note") => {
                self.heard.add(number(line, "n").unwrap(), string(line, "text").unwrap());
                self.tally.notes_heard += 1;
            }
            Some(b"bench/asked") => self.tell(line),
            Some(b"$/cancel_request") => {
                assert!(self.is_mortal(), "nobody was killed: {}", said());
                let withdrawn = number(line, "requestId").unwrap();
                assert!(self.asked.contains(&withdrawn), "this was not asked: {}", said());
                self.tally.withdrawn += 1;
            }
            Some(_) => panic!("nobody says this: {}", said()),
            None => {
                let due = number(line, "id").and_then(|it| self.due.remove(&it));
                let due = due.unwrap_or_else(|| panic!("nothing like this is due: {}", said()));
                self.check(&due, line);
            }
        }
    }

    /// Answers what a worker asks.
    fn tell(&mut self, line: &[u8]) {
        let is_new = self.asked.insert(number(line, "id").unwrap());
        assert!(is_new, "asked twice: {}", String::from_utf8_lossy(line));
        self.tally.asked_by_workers += 1;
        let text = |it| str::from_utf8(it).unwrap();
        let (id, session) = (field(line, "id").unwrap(), string(line, "sessionId").unwrap());
        let (id, session, pool) = (text(id), text(session), self.pool);
        let n = number(line, "n").unwrap() + 1;
        let who = format!("\"sessionId\":\"{session}\",\"pool\":\"{pool}\"");
        let answer =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{who},\"result\":{{\"n\":{n}}}}}\n");
        self.client.send(answer.as_bytes()).unwrap();
    }

    fn check(&mut self, due: &Due, line: &[u8]) {
        let said = String::from_utf8_lossy(line);
        if memchr::memmem::find(line, b"\"error\":").is_some() {
            assert!(self.is_mortal(), "nobody was killed: {said}");
            assert!(said.contains("worker_gone") || said.contains("no_worker"), "{said}");
            self.tally.failed += 1;
            return;
        }
        self.tally.answered += 1;
        let n = number(line, "n").unwrap();
        match due {
            Due::Number(expected) => assert_eq!(n, *expected, "{said}"),
            // A new worker in the place of a killed one has not heard the notes.
            Due::Sent(_) if self.is_mortal() => {}
            Due::Sent(sent) => {
                let told = Checksum { count: n, sum: number(line, "sum").unwrap() };
                assert_eq!(told, *sent, "the worker has not heard what was said to it");
            }
            Due::Heard => {
                let told = Checksum { count: n, sum: number(line, "sum").unwrap() };
                assert_eq!(told, self.heard, "what was heard is not what was said");
            }
        }
    }
}
