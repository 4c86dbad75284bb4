//! Events on their way to the journal: collected per session, one append of a session in flight.

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
}

#[derive(Debug, Default)]
struct Chunk {
    first: u64,
    count: u32,
    body: Vec<u8>,
    summary: Option<bytes::Bytes>,
}

impl Chunks {
    pub(crate) fn push(
        &mut self,
        session: &SessionId,
        event: &Event,
        summary: Option<bytes::Bytes>,
    ) {
        let stream = match self.streams.get_mut(session) {
            Some(stream) => stream,
            None => self.streams.entry(session.clone()).or_default(),
        };
        let chunk = &mut stream.chunk;
        if chunk.count == 0 {
            chunk.first = event.seq.0;
            if !stream.in_flight {
                self.ready.push(session.clone());
            }
        } else {
            chunk.body.push(b'\n');
        }
        event.encode(&mut chunk.body);
        chunk.count += 1;
        if summary.is_some() {
            chunk.summary = summary;
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Everything that can be appended now; `epoch` claims a stream, or says why not.
    pub(crate) fn take<E>(
        &mut self,
        mut epoch: impl FnMut(&SessionId, u64) -> Result<u64, E>,
    ) -> (Vec<Append>, Vec<(SessionId, E)>) {
        let (mut batch, mut refused) = (Vec::new(), Vec::new());
        for session in std::mem::take(&mut self.ready) {
            let Some(stream) = self.streams.get_mut(&session) else { continue };
            if stream.chunk.count == 0 || stream.in_flight {
                continue;
            }
            let chunk = std::mem::take(&mut stream.chunk);
            match epoch(&session, chunk.first) {
                Ok(epoch) => {
                    stream.in_flight = true;
                    batch.push(Append {
                        stream: session,
                        epoch,
                        first: chunk.first,
                        count: chunk.count,
                        body: chunk.body.into(),
                        summary: chunk.summary,
                    });
                }
                Err(error) => refused.push((session, error)),
            }
        }
        (batch, refused)
    }

    /// The append in flight is done; what collected meanwhile may go.
    pub(crate) fn done(&mut self, session: &SessionId) {
        let Some(stream) = self.streams.get_mut(session) else { return };
        stream.in_flight = false;
        if stream.chunk.count == 0 {
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

/// The seq an append of a stream must start at.
pub(crate) fn follows(head: u64, first: u64) -> bool {
    Seq(head).next() == Seq(first)
}
