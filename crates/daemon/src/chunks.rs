//! Events on their way to the journal: collected per session, one append of a session in flight.
//!
//! Where an append costs much, as over a network, a session rests a moment after each, so that what an
//! agent says word by word is written several words at once. The first word after a silence never waits,
//! nor does anything but words.

use bytes::Bytes;
use jackfield_events::{EventBody, SessionEvent};
use jackfield_hub::{Seq, SessionId};
use jackfield_journal::AppendRequest;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Everything appended and not yet handed to the journal, or handed over and not yet answered.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    streams: BTreeMap<SessionId, Stream>,
    /// Streams with events and nothing in flight, in the order they became so.
    ready: Vec<SessionId>,
    /// From one append of a stream to the next.
    linger: Duration,
    /// Streams that rest, and until when.
    resting: BTreeSet<(Instant, SessionId)>,
}

#[derive(Debug, Default)]
struct Stream {
    chunk: Chunk,
    in_flight: bool,
    /// When the last append was handed over.
    sent: Option<Instant>,
    rests_until: Option<Instant>,
    /// The length of the chunk in flight: the next one will be about as long.
    bytes: usize,
}

/// Events, or a summary, or both.
#[derive(Debug, Default)]
struct Chunk {
    first: u64,
    count: u32,
    body: Vec<u8>,
    summary: Option<Bytes>,
    /// Somebody may be waiting for it.
    urgent: bool,
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.summary.is_none()
    }
}

impl Chunks {
    pub(crate) fn new(linger: Duration) -> Chunks {
        Chunks { linger, ..Chunks::default() }
    }

    pub(crate) fn push(
        &mut self,
        session: &SessionId,
        event: &SessionEvent,
        summary: Option<Bytes>,
    ) {
        let chunk = self.chunk(session, event.seq);
        if chunk.count != 0 {
            chunk.body.push(b'\n');
        }
        event.encode(&mut chunk.body);
        chunk.count += 1;
        if summary.is_some() {
            chunk.summary = summary;
        }
        if !matches!(event.body, EventBody::Said(_)) {
            chunk.urgent = true;
            self.rouse(session);
        }
    }

    /// The summary of what has been pushed.
    pub(crate) fn summarize(&mut self, session: &SessionId, upto: Seq, summary: Bytes) {
        self.chunk(session, upto.next()).summary = Some(summary);
    }

    /// The chunk to which comes what comes next.
    fn chunk(&mut self, session: &SessionId, next: Seq) -> &mut Chunk {
        let stream = self.streams.entry(session.clone()).or_default();
        let chunk = &mut stream.chunk;
        if chunk.is_empty() {
            chunk.first = next.0;
            chunk.body.reserve(stream.bytes);
            if !stream.in_flight && stream.rests_until.is_none() {
                self.ready.push(session.clone());
            }
        }
        chunk
    }

    /// A stream that rests does so no longer.
    fn rouse(&mut self, session: &SessionId) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        if let Some(until) = stream.rests_until.take() {
            self.resting.remove(&(until, session.clone()));
            self.ready.push(session.clone());
        }
    }

    /// Those that have rested long enough go on.
    pub(crate) fn wake(&mut self, now: Instant) {
        while self.resting.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, session)) = self.resting.pop_first() else { return };
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            stream.rests_until = None;
            if stream.chunk.is_empty() {
                self.streams.remove(&session);
            } else {
                self.ready.push(session);
            }
        }
    }

    /// When the next one has.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.resting.first().map(|(until, _)| *until)
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Everything that can be appended now, under whatever epoch the port has claimed.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<AppendRequest> {
        let mut batch = Vec::new();
        for session in std::mem::take(&mut self.ready) {
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            if stream.chunk.is_empty() || stream.in_flight {
                continue;
            }
            let chunk = std::mem::take(&mut stream.chunk);
            stream.in_flight = true;
            stream.sent = Some(now);
            stream.bytes = chunk.body.len();
            batch.push(AppendRequest {
                stream: session.into(),
                epoch: 0,
                first: chunk.first,
                count: chunk.count,
                body: chunk.body.into(),
                summary: chunk.summary,
            });
        }
        batch
    }

    /// The append in flight is done; what collected meanwhile may go.
    pub(crate) fn done(&mut self, session: &SessionId, now: Instant) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        stream.in_flight = false;
        let until = stream.sent.map(|it| it + self.linger);
        if let Some(until) = until.filter(|it| now < *it && !stream.chunk.urgent) {
            stream.rests_until = Some(until);
            self.resting.insert((until, session.clone()));
        } else if stream.chunk.is_empty() {
            self.streams.remove(session);
        } else {
            self.ready.push(session.clone());
        }
    }

    /// The append in flight failed: the hub keeps the events and will send them all again.
    pub(crate) fn failed(&mut self, session: &SessionId) {
        let stream = self.streams.remove(session);
        if let Some(until) = stream.and_then(|it| it.rests_until) {
            self.resting.remove(&(until, session.clone()));
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
    fn a_summary_goes_alone_or_with_what_comes_after_it() {
        let session: SessionId = "s-1".into();
        let (mut chunks, now) = (Chunks::default(), Instant::now());
        chunks.summarize(&session, Seq(7), "of 7".into());
        assert!(chunks.has_ready());
        let bare = chunks.take(now).remove(0);
        assert_eq!((bare.first, bare.count, &*bare.body), (8, 0, &b""[..]));
        assert_eq!(bare.summary.as_deref(), Some(&b"of 7"[..]));
        chunks.summarize(&session, Seq(7), "of 7 again".into());
        chunks.push(&session, &event(8), None);
        chunks.push(&session, &event(9), None);
        assert_eq!(chunks.take(now), [], "one is in flight");
        chunks.done(&session, now);
        let more = chunks.take(now).remove(0);
        assert_eq!((more.first, more.count), (8, 2));
        assert_eq!(more.body.split(|it| *it == b'\n').count(), 2);
        assert_eq!(more.summary.as_deref(), Some(&b"of 7 again"[..]));
        chunks.done(&session, now);
        assert!(!chunks.has_ready());
    }

    fn said(seq: u64) -> SessionEvent {
        let frame = RawJson::trusted("{}");
        let body = EventBody::Said(AgentMessage { turn: 1, late: false, frame });
        SessionEvent { seq: Seq(seq), at: Time(seq), body }
    }

    #[test]
    fn words_are_gathered_between_two_appends_and_nothing_else_waits() {
        let session: SessionId = "s-1".into();
        let linger = Duration::from_millis(50);
        let (mut chunks, start) = (Chunks::new(linger), Instant::now());
        chunks.push(&session, &said(1), None);
        assert_eq!(chunks.take(start).len(), 1, "the first word does not wait");
        chunks.done(&session, start + Duration::from_millis(2));
        chunks.push(&session, &said(2), None);
        chunks.push(&session, &said(3), None);
        assert_eq!(chunks.take(start), [], "it rests");
        assert_eq!(chunks.next_wake(), Some(start + linger));
        chunks.wake(start + linger);
        let words = chunks.take(start + linger).remove(0);
        assert_eq!((words.first, words.count), (2, 2));
        chunks.done(&session, start + linger);
        chunks.push(&session, &said(4), None);
        assert!(!chunks.has_ready());
        chunks.push(&session, &event(5), None);
        assert_eq!(chunks.take(start + linger).remove(0).count, 2, "with what cannot wait");
        chunks.done(&session, start + 3 * linger);
        assert_eq!((chunks.next_wake(), chunks.streams.len()), (None, 0), "nothing is kept");
    }
}
