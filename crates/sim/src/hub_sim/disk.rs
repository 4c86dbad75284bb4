//! A disk that is slow, fails, answers late and forgets: streams of lines, one append in flight per
//! session, reads that may be behind.

use super::copy::Copying;
use bytes::Bytes;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{AppendFailure, ConnId, Input, Seq, SessionId, StorageFault};
use jackfield_test_support::rng::Rng;
use std::collections::{BTreeMap, VecDeque};

/// What one read may return, small enough that catching up takes several.
pub(super) const READ_EVENTS: usize = 8;
pub(super) const READ_BYTES: usize = 2048;

/// The reader that is no client: conns are counted from 1.
pub(super) const FOR_THE_HUB: ConnId = ConnId(0);

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) streams: BTreeMap<SessionId, Stream>,
    pub(super) copies: Vec<Copying>,
    /// Copies made or failed, on their way to the hub.
    pub(super) copied: VecDeque<Input>,
}

/// One session's log and everything that is on its way to it or from it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Durable: what a crash leaves.
    pub(super) lines: Vec<Bytes>,
    pub(super) events: Vec<SessionEvent>,
    pub(super) summary: Option<Bytes>,
    /// How far the hub was told.
    pub(super) acked: u64,
    /// How far the hub has appended.
    pub(super) head: u64,
    /// Appended by the hub, not yet handed to the disk.
    collected: Vec<(SessionEvent, Option<Bytes>)>,
    /// A summary of what is durable, not yet handed to the disk.
    late_summary: Option<Bytes>,
    in_flight: Option<Batch>,
    /// The answer to the append in flight, on its way to the hub.
    pub(super) done: VecDeque<Input>,
    reads: VecDeque<(ConnId, Seq)>,
    /// Reads performed, on their way to the hub: what they saw may be old by now.
    pub(super) answers: VecDeque<Input>,
}

#[derive(Debug)]
struct Batch {
    events: Vec<(SessionEvent, Bytes)>,
    summary: Option<Bytes>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// With the writer.
    Handed,
    /// Written, not yet safe: a crash may take it.
    Accepted,
    /// Safe or failed; the answer is on its way.
    Answered,
}

/// What becomes of what an append carries behind its first events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Landed,
    Lost,
}

/// How an append ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Good,
    /// Reported as failed, although it landed.
    FailedButLanded,
    Failed,
    Fenced,
}

/// What a crash leaves of an append.
#[derive(Debug)]
pub(super) struct Crashed {
    pub(super) landed: Vec<SessionEvent>,
    /// Some of it is lost.
    pub(super) torn: bool,
}

impl Stream {
    /// A log that is there from its first event to its last.
    pub(super) fn whole(lines: Vec<Bytes>, events: Vec<SessionEvent>, summary: Bytes) -> Stream {
        let head = lines.len() as u64;
        let summary = Some(summary);
        Stream { lines, events, summary, acked: head, head, ..Stream::default() }
    }

    pub(super) fn collect(&mut self, event: SessionEvent, summary: Option<Bytes>) {
        self.head = self.head.max(event.seq.0);
        self.collected.push((event, summary));
    }

    pub(super) fn collect_summary(&mut self, summary: Bytes) {
        self.late_summary = Some(summary);
    }

    pub(super) fn ask_read(&mut self, conn: ConnId, after: Seq) {
        self.reads.push_back((conn, after));
    }

    pub(super) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// The answer of an append reaches the loop: what collected meanwhile may go, or is thrown away
    /// because the hub sends it again.
    pub(super) fn answered(&mut self, failed: bool) {
        self.in_flight = None;
        if failed {
            self.collected.clear();
            self.late_summary = None;
        }
    }

    pub(super) fn can_append(&self) -> bool {
        match &self.in_flight {
            None => !self.collected.is_empty() || self.late_summary.is_some(),
            Some(batch) => batch.stage != Stage::Answered,
        }
    }

    /// Whether the next step of the append decides how it ends.
    pub(super) fn is_deciding(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|it| it.stage == Stage::Accepted)
    }

    /// One step of the append: handed over, accepted, safe. Returns what landed.
    pub(super) fn append_on(&mut self, session: &SessionId, luck: Luck) -> Vec<SessionEvent> {
        match &mut self.in_flight {
            None => {
                let taken = std::mem::take(&mut self.collected);
                let summary = self.late_summary.take();
                let mut batch = Batch { events: Vec::new(), summary, stage: Stage::Handed };
                for (event, summary) in taken {
                    let mut line = Vec::new();
                    event.encode(&mut line);
                    batch.events.push((event, line.into()));
                    batch.summary = summary.or(batch.summary);
                }
                self.in_flight = Some(batch);
                Vec::new()
            }
            Some(batch) if batch.stage == Stage::Handed => {
                batch.stage = Stage::Accepted;
                Vec::new()
            }
            Some(_) => self.decide(session, luck),
        }
    }

    fn decide(&mut self, session: &SessionId, luck: Luck) -> Vec<SessionEvent> {
        let mut landed = Vec::new();
        if matches!(luck, Luck::Good | Luck::FailedButLanded) {
            landed = self.land(usize::MAX, Rest::Landed);
        }
        if let Some(batch) = &mut self.in_flight {
            batch.stage = Stage::Answered;
        }
        let session = session.clone();
        let upto = Seq(self.lines.len() as u64);
        let unavailable = || AppendFailure::Unavailable {
            fault: StorageFault::Other,
            why: "the disk is away".into(),
        };
        self.done.push_back(match luck {
            Luck::Good => Input::Durable { session, upto },
            Luck::Failed | Luck::FailedButLanded => {
                Input::AppendFailed { session, why: unavailable() }
            }
            Luck::Fenced => Input::AppendFailed { session, why: AppendFailure::Fenced },
        });
        landed
    }

    /// Makes the first `count` events of the append in flight durable. What is there is skipped.
    fn land(&mut self, count: usize, rest: Rest) -> Vec<SessionEvent> {
        let Some(batch) = &self.in_flight else { return Vec::new() };
        let mut landed = Vec::new();
        for (event, line) in batch.events.iter().take(count) {
            let head = self.lines.len() as u64;
            if event.seq.0 <= head {
                let there = &self.lines[place(event.seq)];
                super::check::a_retry_says_the_same(event.seq, there, line);
                continue;
            }
            super::check::appends_follow_the_log(event.seq, head);
            self.lines.push(line.clone());
            self.events.push(event.clone());
            landed.push(event.clone());
        }
        if rest == Rest::Landed && batch.summary.is_some() {
            self.summary.clone_from(&batch.summary);
        }
        landed
    }

    /// The process dies. What was accepted may be there, or a part of it, or nothing.
    pub(super) fn crash(&mut self, rng: &mut Rng) -> Crashed {
        let (count, rest) = match &self.in_flight {
            Some(batch) if batch.stage == Stage::Accepted => match rng.below(4) {
                0 => (batch.events.len(), Rest::Landed),
                1 if !batch.events.is_empty() => (rng.index(batch.events.len()), Rest::Lost),
                _ => (0, Rest::Lost),
            },
            _ => (0, Rest::Lost),
        };
        let landed = self.land(count, rest);
        let torn = self.in_flight.as_ref().is_some_and(|it| count < it.events.len());
        self.in_flight = None;
        self.collected.clear();
        self.late_summary = None;
        self.done.clear();
        self.reads.clear();
        self.answers.clear();
        Crashed { landed, torn }
    }

    /// Performs the oldest read: a prefix of what is durable, perhaps less than there is.
    pub(super) fn perform_read(&mut self, session: &SessionId, stale: Option<usize>, fails: bool) {
        let Some((conn, after)) = self.reads.pop_front() else { return };
        let session = session.clone();
        if fails {
            let why = "the disk is away".to_owned();
            return self.answers.push_back(if conn == FOR_THE_HUB {
                Input::RecallFailed { session, why }
            } else {
                Input::ReadFailed { conn, session, after, why, damaged: false }
            });
        }
        let first = usize::try_from(after.0).expect("logs are short here").min(self.lines.len());
        let (mut events, mut bytes) = (Vec::new(), 0);
        for (index, line) in self.lines.iter().enumerate().skip(first) {
            bytes += line.len();
            let full = events.len() == READ_EVENTS || (!events.is_empty() && READ_BYTES < bytes);
            if full || stale.is_some_and(|most| most <= events.len()) {
                break;
            }
            let event = SessionEvent::decode(Seq(index as u64 + 1), line);
            events.push(event.expect("what was written can be read"));
        }
        self.answers.push_back(if conn == FOR_THE_HUB {
            Input::Recalled { session, after, events }
        } else {
            Input::Read { conn, session, after, events }
        });
    }

    /// As the daemon does it: the summary, and what came after it.
    pub(super) fn recovered(&self) -> SessionSummary {
        let summary = self.summary.as_ref().map(|it| SessionSummary::from_summary(it));
        let mut state = summary.transpose().expect("a summary can be read").unwrap_or_default();
        while let Some(line) = self.lines.get(place(state.upto().next())) {
            let event = SessionEvent::decode(state.upto().next(), line);
            state.fold(&event.expect("what was written can be read"));
        }
        state
    }

    /// Another hub writes from here on; what the last one had not written is nowhere.
    pub(super) fn take_over(&mut self) {
        (self.head, self.acked) = (self.durable(), self.durable());
    }

    /// How far the summary reaches.
    pub(super) fn summed_up(&self) -> u64 {
        let summary = self.summary.as_ref().map(|it| SessionSummary::from_summary(it));
        summary.map_or(0, |it| it.expect("a summary can be read").seq)
    }

    pub(super) fn event(&self, seq: u64) -> Option<&SessionEvent> {
        self.events.get(place(Seq(seq)))
    }

    pub(super) fn line(&self, seq: u64) -> Option<&Bytes> {
        self.lines.get(place(Seq(seq)))
    }

    pub(super) fn durable(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.collected.is_empty()
            && self.late_summary.is_none()
            && self.in_flight.is_none()
            && self.done.is_empty()
            && self.reads.is_empty()
            && self.answers.is_empty()
    }

    /// Bytes the hub has appended and was not yet told about, as the hub weighs them.
    pub(super) fn held_bytes(&self) -> usize {
        let told = self.acked;
        let waiting = self.collected.iter().map(|(event, _)| event);
        let batch = self.in_flight.iter().flat_map(|it| it.events.iter().map(|(event, _)| event));
        let untold = batch.chain(waiting).filter(|event| told < event.seq.0);
        untold.map(|event| event.body.size_bytes()).sum()
    }
}

fn place(seq: Seq) -> usize {
    usize::try_from(seq.0 - 1).expect("logs are short here")
}
