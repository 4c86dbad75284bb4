//! Events on their way to the journal: collected per session, one append of a session in flight.

use bytes::Bytes;
use jackfield_core::{Seq, SessionId, log::Event};
use jackfield_journal::Append;
use std::collections::BTreeMap;

/// Everything appended and not yet handed to the journal, or handed over and not yet answered.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    streams: BTreeMap<SessionId, Stream>,
    /// Streams with events and nothing in flight, in the order they became so.
    ready: Vec<SessionId>,
}

#[derive(Debug, Default)]
struct Stream {
    chunk: Chunk,
    in_flight: bool,
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
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.summary.is_none()
    }
}

impl Chunks {
    pub(crate) fn push(&mut self, session: &SessionId, event: &Event, summary: Option<Bytes>) {
        let chunk = self.chunk(session, event.seq);
        if chunk.count != 0 {
            chunk.body.push(b'\n');
        }
        event.encode(&mut chunk.body);
        chunk.count += 1;
        if summary.is_some() {
            chunk.summary = summary;
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
            if !stream.in_flight {
                self.ready.push(session.clone());
            }
        }
        chunk
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Everything that can be appended now, under whatever epoch the port has claimed.
    pub(crate) fn take(&mut self) -> Vec<Append> {
        let mut batch = Vec::new();
        for session in std::mem::take(&mut self.ready) {
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            if stream.chunk.is_empty() || stream.in_flight {
                continue;
            }
            let chunk = std::mem::take(&mut stream.chunk);
            stream.in_flight = true;
            stream.bytes = chunk.body.len();
            batch.push(Append {
                stream: session,
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
    pub(crate) fn done(&mut self, session: &SessionId) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        stream.in_flight = false;
        if stream.chunk.is_empty() {
            self.streams.remove(session);
        } else {
            self.ready.push(session.clone());
        }
    }

    /// The append in flight failed: the hub keeps the events and will send them all again.
    pub(crate) fn failed(&mut self, session: &SessionId) {
        self.streams.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_core::{Time, log::Body};

    fn event(seq: u64) -> Event {
        Event { seq: Seq(seq), at: Time(seq), body: Body::Closed }
    }

    #[test]
    fn a_summary_goes_alone_or_with_what_comes_after_it() {
        let session: SessionId = "s-1".into();
        let mut chunks = Chunks::default();
        chunks.summarize(&session, Seq(7), "of 7".into());
        assert!(chunks.has_ready());
        let bare = chunks.take().remove(0);
        assert_eq!((bare.first, bare.count, &*bare.body), (8, 0, &b""[..]));
        assert_eq!(bare.summary.as_deref(), Some(&b"of 7"[..]));
        chunks.summarize(&session, Seq(7), "of 7 again".into());
        chunks.push(&session, &event(8), None);
        chunks.push(&session, &event(9), None);
        assert_eq!(chunks.take(), [], "one is in flight");
        chunks.done(&session);
        let more = chunks.take().remove(0);
        assert_eq!((more.first, more.count), (8, 2));
        assert_eq!(more.body.split(|it| *it == b'\n').count(), 2);
        assert_eq!(more.summary.as_deref(), Some(&b"of 7 again"[..]));
        chunks.done(&session);
        assert!(!chunks.has_ready());
    }
}
