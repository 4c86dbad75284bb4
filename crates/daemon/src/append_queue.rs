//! Batches of events for the journal: collected per session, with one append of a session in flight.
//!
//! Where an append is expensive, as over a network, a session waits a moment between two appends, so that
//! the message chunks of an agent are written several at once. The first chunk after a silence does not
//! wait, and neither do other events.

use bytes::Bytes;
use jackfield_events::{EventBody, SessionEvent};
use jackfield_hub::{Seq, SessionId};
use jackfield_journal::AppendRequest;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// All events that are not yet handed to the journal, or not yet acknowledged.
#[derive(Debug, Default)]
pub(crate) struct AppendQueue {
    streams: BTreeMap<SessionId, QueuedStream>,
    /// Streams with events and no append in flight, in the order they became ready.
    ready: Vec<SessionId>,
    /// The minimum time between two appends of a stream.
    append_interval: Duration,
    /// Streams that wait, and until when.
    waiting: BTreeSet<(Instant, SessionId)>,
}

#[derive(Debug, Default)]
struct QueuedStream {
    batch: QueuedBatch,
    in_flight: bool,
    /// When the last append was handed over.
    sent_at: Option<Instant>,
    waits_until: Option<Instant>,
    /// The length of the batch in flight, as an estimate for the next one.
    bytes: usize,
}

/// Events, or a summary, or both.
#[derive(Debug, Default)]
struct QueuedBatch {
    first: u64,
    count: u32,
    body: Vec<u8>,
    summary: Option<Bytes>,
    /// It contains an event other than a message chunk.
    is_urgent: bool,
}

impl QueuedBatch {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.summary.is_none()
    }
}

impl AppendQueue {
    pub(crate) fn new(append_interval: Duration) -> AppendQueue {
        AppendQueue { append_interval, ..AppendQueue::default() }
    }

    pub(crate) fn push(
        &mut self,
        session: &SessionId,
        event: &SessionEvent,
        summary: Option<Bytes>,
    ) {
        let batch = self.batch(session, event.seq);
        if batch.count != 0 {
            batch.body.push(b'\n');
        }
        event.encode(&mut batch.body);
        batch.count += 1;
        if summary.is_some() {
            batch.summary = summary;
        }
        if !matches!(event.body, EventBody::Said(_)) {
            batch.is_urgent = true;
            self.end_wait(session);
        }
    }

    /// Adds the summary of the pushed events.
    pub(crate) fn summarize(&mut self, session: &SessionId, upto: Seq, summary: Bytes) {
        self.batch(session, upto.next()).summary = Some(summary);
    }

    /// The batch that gets the next event.
    fn batch(&mut self, session: &SessionId, next: Seq) -> &mut QueuedBatch {
        let stream = self.streams.entry(session.clone()).or_default();
        let batch = &mut stream.batch;
        if batch.is_empty() {
            batch.first = next.0;
            batch.body.reserve(stream.bytes);
            if !stream.in_flight && stream.waits_until.is_none() {
                self.ready.push(session.clone());
            }
        }
        batch
    }

    /// Ends the wait of a stream.
    fn end_wait(&mut self, session: &SessionId) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        if let Some(until) = stream.waits_until.take() {
            self.waiting.remove(&(until, session.clone()));
            self.ready.push(session.clone());
        }
    }

    /// Makes streams ready whose wait is over.
    pub(crate) fn end_waits(&mut self, now: Instant) {
        while self.waiting.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, session)) = self.waiting.pop_first() else { return };
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            stream.waits_until = None;
            if stream.batch.is_empty() {
                self.streams.remove(&session);
            } else {
                self.ready.push(session);
            }
        }
    }

    /// When the next wait is over.
    pub(crate) fn next_wait_end(&self) -> Option<Instant> {
        self.waiting.first().map(|(until, _)| *until)
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes all batches that can be appended now. The journal port fills in the epoch.
    pub(crate) fn take_batches(&mut self, now: Instant) -> Vec<AppendRequest> {
        let mut requests = Vec::new();
        for session in std::mem::take(&mut self.ready) {
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            if stream.batch.is_empty() || stream.in_flight {
                continue;
            }
            let batch = std::mem::take(&mut stream.batch);
            stream.in_flight = true;
            stream.sent_at = Some(now);
            stream.bytes = batch.body.len();
            requests.push(AppendRequest {
                stream: session.into(),
                epoch: 0,
                first: batch.first,
                count: batch.count,
                body: batch.body.into(),
                summary: batch.summary,
            });
        }
        requests
    }

    /// The append in flight is complete; the next batch may follow.
    pub(crate) fn on_appended(&mut self, session: &SessionId, now: Instant) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        stream.in_flight = false;
        let until = stream.sent_at.map(|it| it + self.append_interval);
        if let Some(until) = until.filter(|it| now < *it && !stream.batch.is_urgent) {
            stream.waits_until = Some(until);
            self.waiting.insert((until, session.clone()));
        } else if stream.batch.is_empty() {
            self.streams.remove(session);
        } else {
            self.ready.push(session.clone());
        }
    }

    /// The append in flight failed: the hub keeps the events and will send them again.
    pub(crate) fn on_append_failed(&mut self, session: &SessionId) {
        let stream = self.streams.remove(session);
        if let Some(until) = stream.and_then(|it| it.waits_until) {
            self.waiting.remove(&(until, session.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_events::{AgentMessage, RawJson};
    use jackfield_hub::Time;

    fn event(seq: u64) -> SessionEvent {
        SessionEvent { seq: Seq(seq), at: Time(seq), body: EventBody::Closed }
    }

    #[test]
    fn summary_is_written_alone_or_with_later_events() {
        let session: SessionId = "s-1".into();
        let (mut queue, now) = (AppendQueue::default(), Instant::now());
        queue.summarize(&session, Seq(7), "of 7".into());
        assert!(queue.has_ready());
        let summary_only = queue.take_batches(now).remove(0);
        assert_eq!((summary_only.first, summary_only.count, &*summary_only.body), (8, 0, &b""[..]));
        assert_eq!(summary_only.summary.as_deref(), Some(&b"of 7"[..]));
        queue.summarize(&session, Seq(7), "of 7 again".into());
        queue.push(&session, &event(8), None);
        queue.push(&session, &event(9), None);
        assert_eq!(queue.take_batches(now), [], "one is in flight");
        queue.on_appended(&session, now);
        let more = queue.take_batches(now).remove(0);
        assert_eq!((more.first, more.count), (8, 2));
        assert_eq!(more.body.split(|it| *it == b'\n').count(), 2);
        assert_eq!(more.summary.as_deref(), Some(&b"of 7 again"[..]));
        queue.on_appended(&session, now);
        assert!(!queue.has_ready());
    }

    fn message_chunk(seq: u64) -> SessionEvent {
        let frame = RawJson::trusted("{}");
        let body = EventBody::Said(AgentMessage { turn: 1, late: false, frame });
        SessionEvent { seq: Seq(seq), at: Time(seq), body }
    }

    #[test]
    fn message_chunks_are_batched_and_other_events_do_not_wait() {
        let session: SessionId = "s-1".into();
        let append_interval = Duration::from_millis(50);
        let (mut queue, start) = (AppendQueue::new(append_interval), Instant::now());
        queue.push(&session, &message_chunk(1), None);
        assert_eq!(queue.take_batches(start).len(), 1, "the first chunk does not wait");
        queue.on_appended(&session, start + Duration::from_millis(2));
        queue.push(&session, &message_chunk(2), None);
        queue.push(&session, &message_chunk(3), None);
        assert_eq!(queue.take_batches(start), [], "the stream waits");
        assert_eq!(queue.next_wait_end(), Some(start + append_interval));
        queue.end_waits(start + append_interval);
        let chunk_batch = queue.take_batches(start + append_interval).remove(0);
        assert_eq!((chunk_batch.first, chunk_batch.count), (2, 2));
        queue.on_appended(&session, start + append_interval);
        queue.push(&session, &message_chunk(4), None);
        assert!(!queue.has_ready());
        queue.push(&session, &event(5), None);
        assert_eq!(
            queue.take_batches(start + append_interval).remove(0).count,
            2,
            "together with the urgent event"
        );
        queue.on_appended(&session, start + 3 * append_interval);
        assert_eq!((queue.next_wait_end(), queue.streams.len()), (None, 0), "nothing is left");
    }
}
