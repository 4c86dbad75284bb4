//! Reads a whole journal to find damaged records.

use crate::{
    error::{ReadError, RecordDamage},
    journal::Journal,
};
use std::{sync::Arc, time::Instant};

/// The limits of one read.
const EVENTS_MAX: usize = 4096;
const BYTES_MAX: usize = 1024 * 1024;

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalInspection {
    /// The number of streams that were read to their end.
    pub streams: usize,
    /// The number of undamaged events.
    pub events: u64,
    pub damaged: Vec<DamagedEvents>,
    /// Whether all events were read before the deadline.
    pub is_complete: bool,
}

/// Consecutive events of a stream that are damaged in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedEvents {
    pub stream: Arc<str>,
    pub first: u64,
    pub last: u64,
    pub damage: RecordDamage,
}

impl Journal {
    /// Reads all events and compares the checksums, until the deadline.
    pub fn inspect_events(&self, deadline: Instant) -> Result<JournalInspection, ReadError> {
        let mut inspection =
            JournalInspection { is_complete: true, ..JournalInspection::default() };
        let mut heads = Vec::new();
        self.for_each_stream(|it| heads.push((it.name, it.head)))?;
        for (stream, head) in heads {
            if !self.inspect_stream(&stream, head, deadline, &mut inspection)? {
                inspection.is_complete = false;
                break;
            }
            inspection.streams += 1;
        }
        Ok(inspection)
    }

    /// Returns whether the stream was read to its end before the deadline.
    fn inspect_stream(
        &self,
        stream: &Arc<str>,
        head: u64,
        deadline: Instant,
        inspection: &mut JournalInspection,
    ) -> Result<bool, ReadError> {
        let mut after = 0;
        while after < head {
            if deadline < Instant::now() {
                return Ok(false);
            }
            match self.read_events(stream, after, EVENTS_MAX, BYTES_MAX) {
                Ok(events) => {
                    // Empty: the stream was deleted in the meantime.
                    let Some(last) = events.last() else { break };
                    inspection.events += events.len() as u64;
                    after = last.seq;
                }
                Err(ReadError::Damaged { first, damage, .. }) => {
                    after = first.max(after + 1);
                    inspection.add_damage(stream, after, damage);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl JournalInspection {
    fn add_damage(&mut self, stream: &Arc<str>, seq: u64, damage: RecordDamage) {
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
