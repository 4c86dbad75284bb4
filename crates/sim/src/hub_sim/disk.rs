//! A disk that is slow, fails, answers late and loses data: one stream per session, one append in flight per stream,
//! reads that may be stale.

use super::copy::SessionCopy;
use bytes::Bytes;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{AppendFailure, ConnId, Input, PageReadFailure, Seq, SessionId, StorageFault};
use jackfield_test_support::rng::Rng;
use std::collections::{BTreeMap, VecDeque};

/// The limit of one read, so small that catching up takes several.
pub(super) const READ_EVENTS: usize = 8;
pub(super) const READ_BYTES: usize = 2048;

/// What a read is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogReader {
    /// The hub itself.
    Hub,
    Subscriber(ConnId),
    Page {
        page: u64,
        events_max: usize,
    },
}

#[derive(Debug, Default)]
pub(super) struct SimulatedDisk {
    pub(super) streams: BTreeMap<SessionId, SessionStream>,
    pub(super) copies: Vec<SessionCopy>,
    /// Results of copies that the hub has not received yet.
    pub(super) copied: VecDeque<Input>,
}

/// The log of one session and everything in transit to and from it.
#[derive(Debug, Default)]
pub(super) struct SessionStream {
    /// The durable lines, which survive a crash.
    pub(super) lines: Vec<Bytes>,
    pub(super) events: Vec<SessionEvent>,
    pub(super) summary: Option<Bytes>,
    /// The last event that the hub knows to be durable.
    pub(super) acked: u64,
    /// The last event that the hub has appended.
    pub(super) head: u64,
    /// Appended by the hub, not yet handed to the disk.
    collected: Vec<(SessionEvent, Option<Bytes>)>,
    /// A summary of durable events, not yet handed to the disk.
    late_summary: Option<Bytes>,
    in_flight: Option<AppendBatch>,
    /// The result of the append in flight, not yet received by the hub.
    pub(super) done: VecDeque<Input>,
    reads: VecDeque<(LogReader, Seq)>,
    /// Results of reads that the hub has not received yet; they may be outdated.
    pub(super) answers: VecDeque<Input>,
}

#[derive(Debug)]
struct AppendBatch {
    events: Vec<(SessionEvent, Bytes)>,
    summary: Option<Bytes>,
    stage: AppendStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendStage {
    /// Handed to the disk.
    Handed,
    /// Written, but not synced: a crash may lose it.
    Accepted,
    /// Durable or failed; the result is on its way.
    Answered,
}

/// What happens to the remaining parts of a batch after its first events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchTail {
    Landed,
    Lost,
}

/// How an append ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendOutcome {
    Good,
    /// Reported as failed although it is durable.
    FailedButLanded,
    Failed,
    Fenced,
}

/// What a crash leaves of the append in flight.
#[derive(Debug)]
pub(super) struct CrashResult {
    pub(super) landed: Vec<SessionEvent>,
    /// Some of its events are lost.
    pub(super) torn: bool,
}

impl SessionStream {
    /// A stream whose whole log is durable.
    pub(super) fn whole(
        lines: Vec<Bytes>,
        events: Vec<SessionEvent>,
        summary: Bytes,
    ) -> SessionStream {
        let head = lines.len() as u64;
        let summary = Some(summary);
        SessionStream { lines, events, summary, acked: head, head, ..SessionStream::default() }
    }

    pub(super) fn collect(&mut self, event: SessionEvent, summary: Option<Bytes>) {
        self.head = self.head.max(event.seq.0);
        self.collected.push((event, summary));
    }

    pub(super) fn collect_summary(&mut self, summary: Bytes) {
        self.late_summary = Some(summary);
    }

    pub(super) fn ask_read(&mut self, reader: LogReader, after: Seq) {
        self.reads.push_back((reader, after));
    }

    /// A durable event as it is stored.
    pub(super) fn stored_line(&self, seq: u64) -> Option<String> {
        let line = self.lines.get(place(Seq(seq)))?;
        Some(String::from_utf8_lossy(line).into_owned())
    }

    pub(super) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// The hub receives the result of an append. If it failed, the collected events are discarded, because the hub
    /// sends them again.
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
            Some(batch) => batch.stage != AppendStage::Answered,
        }
    }

    /// Whether the next step of the append decides how it ends.
    pub(super) fn is_deciding(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|it| it.stage == AppendStage::Accepted)
    }

    /// Runs one step of the append: handed, accepted, answered. Returns the events that became durable.
    pub(super) fn continue_append(
        &mut self,
        session: &SessionId,
        outcome: AppendOutcome,
    ) -> Vec<SessionEvent> {
        match &mut self.in_flight {
            None => {
                let taken = std::mem::take(&mut self.collected);
                let summary = self.late_summary.take();
                let mut batch =
                    AppendBatch { events: Vec::new(), summary, stage: AppendStage::Handed };
                for (event, summary) in taken {
                    let mut line = Vec::new();
                    event.encode(&mut line);
                    batch.events.push((event, line.into()));
                    batch.summary = summary.or(batch.summary);
                }
                self.in_flight = Some(batch);
                Vec::new()
            }
            Some(batch) if batch.stage == AppendStage::Handed => {
                batch.stage = AppendStage::Accepted;
                Vec::new()
            }
            Some(_) => self.decide(session, outcome),
        }
    }

    fn decide(&mut self, session: &SessionId, outcome: AppendOutcome) -> Vec<SessionEvent> {
        let mut landed = Vec::new();
        if matches!(outcome, AppendOutcome::Good | AppendOutcome::FailedButLanded) {
            landed = self.land(usize::MAX, BatchTail::Landed);
        }
        if let Some(batch) = &mut self.in_flight {
            batch.stage = AppendStage::Answered;
        }
        let session = session.clone();
        let upto = Seq(self.lines.len() as u64);
        let unavailable = || AppendFailure::Unavailable {
            fault: StorageFault::Other,
            why: "the disk is away".into(),
        };
        self.done.push_back(match outcome {
            AppendOutcome::Good => Input::Durable { session, upto },
            AppendOutcome::Failed | AppendOutcome::FailedButLanded => {
                Input::AppendFailed { session, why: unavailable() }
            }
            AppendOutcome::Fenced => Input::AppendFailed { session, why: AppendFailure::Fenced },
        });
        landed
    }

    /// Makes the first `count` events of the append in flight durable. Events that are durable already are skipped.
    fn land(&mut self, count: usize, tail: BatchTail) -> Vec<SessionEvent> {
        let Some(batch) = &self.in_flight else { return Vec::new() };
        let mut landed = Vec::new();
        for (event, line) in batch.events.iter().take(count) {
            let head = self.lines.len() as u64;
            if event.seq.0 <= head {
                let stored = &self.lines[place(event.seq)];
                super::check::append_retry_is_identical(event.seq, stored, line);
                continue;
            }
            super::check::appends_are_contiguous(event.seq, head);
            self.lines.push(line.clone());
            self.events.push(event.clone());
            landed.push(event.clone());
        }
        if tail == BatchTail::Landed && batch.summary.is_some() {
            self.summary.clone_from(&batch.summary);
        }
        landed
    }

    /// The hub's process is killed. All, some or none of the accepted events survive.
    pub(super) fn crash(&mut self, rng: &mut Rng) -> CrashResult {
        let (count, tail) = match &self.in_flight {
            Some(batch) if batch.stage == AppendStage::Accepted => match rng.below(4) {
                0 => (batch.events.len(), BatchTail::Landed),
                1 if !batch.events.is_empty() => (rng.index(batch.events.len()), BatchTail::Lost),
                _ => (0, BatchTail::Lost),
            },
            _ => (0, BatchTail::Lost),
        };
        let landed = self.land(count, tail);
        let torn = self.in_flight.as_ref().is_some_and(|it| count < it.events.len());
        self.in_flight = None;
        self.collected.clear();
        self.late_summary = None;
        self.done.clear();
        self.reads.clear();
        self.answers.clear();
        CrashResult { landed, torn }
    }

    /// Performs the oldest read. It returns a prefix of the durable events, possibly a stale one.
    pub(super) fn perform_read(&mut self, session: &SessionId, stale: Option<usize>, fails: bool) {
        let Some((reader, after)) = self.reads.pop_front() else { return };
        let session = session.clone();
        if fails {
            let why = "the disk is away".to_owned();
            return self.answers.push_back(match reader {
                LogReader::Hub => Input::RecallFailed { session, why },
                LogReader::Subscriber(conn) => {
                    Input::ReadFailed { conn, session, after, why, damaged: false }
                }
                LogReader::Page { page, .. } => {
                    let events = Err(PageReadFailure { why, damaged: false });
                    Input::PageRead { page, events }
                }
            });
        }
        let first = usize::try_from(after.0).expect("logs are short").min(self.lines.len());
        let events_max = match reader {
            LogReader::Page { events_max, .. } => events_max.min(READ_EVENTS),
            LogReader::Hub | LogReader::Subscriber(_) => READ_EVENTS,
        };
        let (mut events, mut bytes) = (Vec::new(), 0);
        for (index, line) in self.lines.iter().enumerate().skip(first) {
            bytes += line.len();
            let full = events.len() == events_max || (!events.is_empty() && READ_BYTES < bytes);
            if full || stale.is_some_and(|most| most <= events.len()) {
                break;
            }
            let event = SessionEvent::decode(Seq(index as u64 + 1), line);
            events.push(event.expect("stored events can be decoded"));
        }
        self.answers.push_back(match reader {
            LogReader::Hub => Input::Recalled { session, after, events },
            LogReader::Subscriber(conn) => Input::Read { conn, session, after, events },
            LogReader::Page { page, .. } => Input::PageRead { page, events: Ok(events) },
        });
    }

    /// Recovers the state as the daemon does: the summary, and the events after it.
    pub(super) fn recovered(&self) -> SessionSummary {
        let summary = self.summary.as_ref().map(|it| SessionSummary::from_summary(it));
        let mut state =
            summary.transpose().expect("stored summaries can be decoded").unwrap_or_default();
        while let Some(line) = self.lines.get(place(state.upto().next())) {
            let event = SessionEvent::decode(state.upto().next(), line);
            state.fold(&event.expect("stored events can be decoded"));
        }
        state
    }

    /// Another hub starts to write; the unwritten events of the last one are lost.
    pub(super) fn take_over(&mut self) {
        (self.head, self.acked) = (self.durable(), self.durable());
    }

    /// The last event that the summary covers.
    pub(super) fn summary_upto(&self) -> u64 {
        let summary = self.summary.as_ref().map(|it| SessionSummary::from_summary(it));
        summary.map_or(0, |it| it.expect("stored summaries can be decoded").seq)
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

    pub(super) fn is_idle(&self) -> bool {
        self.collected.is_empty()
            && self.late_summary.is_none()
            && self.in_flight.is_none()
            && self.done.is_empty()
            && self.reads.is_empty()
            && self.answers.is_empty()
    }

    /// The size of the events that the hub does not know to be durable, as the hub computes it.
    pub(super) fn held_bytes(&self) -> usize {
        let acked = self.acked;
        let waiting = self.collected.iter().map(|(event, _)| event);
        let batch = self.in_flight.iter().flat_map(|it| it.events.iter().map(|(event, _)| event));
        let unacked = batch.chain(waiting).filter(|event| acked < event.seq.0);
        unacked.map(|event| event.body.size_bytes()).sum()
    }
}

fn place(seq: Seq) -> usize {
    usize::try_from(seq.0 - 1).expect("logs are short")
}
