//! Reading a whole journal to find records that are damaged.

use crate::{
    error::{Damage, ReadError},
    journal::Journal,
};
use std::{sync::Arc, time::Instant};

/// Read at once.
const EVENTS_MAX: usize = 4096;
const BYTES_MAX: usize = 1024 * 1024;

/// What was found in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// Streams that were read to their end.
    pub streams: usize,
    /// Events that are as they were written.
    pub events: u64,
    pub damaged: Vec<DamagedEvents>,
    /// Whether everything was read before the time was over.
    pub is_complete: bool,
}

/// Consecutive events of a stream that cannot be read for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedEvents {
    pub stream: Arc<str>,
    pub first: u64,
    pub last: u64,
    pub damage: Damage,
}

impl Journal {
    /// Reads every event and compares the checksums, until the deadline.
    pub fn inspect(&self, deadline: Instant) -> Result<Inspection, ReadError> {
        let mut found = Inspection { is_complete: true, ..Inspection::default() };
        let mut heads = Vec::new();
        self.each_stream(|it| heads.push((it.name, it.head)))?;
        for (stream, head) in heads {
            if !self.inspect_stream(&stream, head, deadline, &mut found)? {
                found.is_complete = false;
                break;
            }
            found.streams += 1;
        }
        Ok(found)
    }

    /// Whether the stream was read to its end.
    fn inspect_stream(
        &self,
        stream: &Arc<str>,
        head: u64,
        deadline: Instant,
        found: &mut Inspection,
    ) -> Result<bool, ReadError> {
        let mut after = 0;
        while after < head {
            if deadline < Instant::now() {
                return Ok(false);
            }
            match self.read(stream, after, EVENTS_MAX, BYTES_MAX) {
                Ok(events) => {
                    // Empty: the stream was deleted meanwhile.
                    let Some(last) = events.last() else { break };
                    found.events += events.len() as u64;
                    after = last.seq;
                }
                Err(ReadError::Damaged { first, damage, .. }) => {
                    after = first.max(after + 1);
                    found.add_damage(stream, after, damage);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl Inspection {
    fn add_damage(&mut self, stream: &Arc<str>, seq: u64, damage: Damage) {
        if let Some(it) = self.damaged.last_mut()
            && it.stream == *stream
            && it.last + 1 == seq
            && it.damage == damage
        {
            it.last = seq;
            return;
        }
        let damaged = DamagedEvents { stream: stream.clone(), first: seq, last: seq, damage };
        self.damaged.push(damaged);
    }
}
