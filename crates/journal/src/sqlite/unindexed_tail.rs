//! Remembers the records at the end of the log that `place` does not index yet, so that readers
//! need not scan for them.
//!
//! The writer adds records after each commit, and a reader copies them before it opens its
//! snapshot. So all records that a reader finds here are in its snapshot, and no record that was
//! acknowledged before is missing. Records that other processes have written since are beyond
//! `upto`; readers scan for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// The tail that readers see, and the records that the next commit adds to it.
#[derive(Default)]
pub(super) struct TailUpdates {
    tail: Arc<Mutex<UnindexedTail>>,
    pending: Vec<(Arc<str>, i64, UnindexedRecord)>,
}

impl TailUpdates {
    pub(super) fn new(tail: Arc<Mutex<UnindexedTail>>) -> TailUpdates {
        TailUpdates { tail, pending: Vec::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, UnindexedTail> {
        self.tail.lock().expect("nothing panics while it holds the tail")
    }

    pub(super) fn add_record(&mut self, stream: &Arc<str>, number: i64, record: UnindexedRecord) {
        self.pending.push((Arc::clone(stream), number, record));
    }

    /// Publishes the pending records. The log is committed up to this record.
    pub(super) fn commit(&mut self, upto: i64) {
        let mut tail = self.tail.lock().expect("nothing panics while it holds the tail");
        for (stream, number, record) in self.pending.drain(..) {
            tail.add_record(&stream, number, record);
        }
        tail.advance_to(upto);
    }

    pub(super) fn roll_back(&mut self) {
        self.pending.clear();
    }
}

#[derive(Default)]
pub(super) struct UnindexedTail {
    /// The id of the last record that the tail accounts for.
    upto: i64,
    streams: HashMap<Arc<str>, StreamTail>,
}

/// The unindexed records of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StreamTail {
    /// The id of the last record that the tail accounts for.
    pub(super) upto: i64,
    /// The number of the stream; 0 if it has no record here.
    pub(super) number: i64,
    pub(super) records: Vec<UnindexedRecord>,
}

/// A record with events that `place` does not contain yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnindexedRecord {
    pub(super) id: i64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl UnindexedTail {
    /// Forgets all records and starts again after this one.
    pub(super) fn reset(&mut self, upto: i64) {
        self.streams.clear();
        self.upto = upto;
    }

    /// Adds the next record of a stream. Records must be added in log order.
    pub(super) fn add_record(&mut self, stream: &Arc<str>, number: i64, record: UnindexedRecord) {
        match self.streams.get_mut(stream) {
            Some(stream_tail) if stream_tail.number == number => stream_tail.records.push(record),
            _ => {
                let stream_tail = StreamTail { upto: 0, number, records: vec![record] };
                self.streams.insert(Arc::clone(stream), stream_tail);
            }
        }
    }

    /// Marks the log as accounted for up to this record, including records without events.
    pub(super) fn advance_to(&mut self, upto: i64) {
        self.upto = upto;
    }

    /// Removes the records up to this one, because `place` contains them now.
    pub(super) fn mark_indexed(&mut self, upto: i64) {
        self.streams.retain(|_, stream_tail| {
            stream_tail.records.retain(|it| upto < it.id);
            !stream_tail.records.is_empty()
        });
    }

    pub(super) fn forget_stream(&mut self, stream: &str) {
        self.streams.remove(stream);
    }

    /// The head of a stream, if it has records here.
    pub(super) fn head(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).and_then(|it| it.records.last()).map(|it| it.last)
    }

    /// The records of a stream, starting with the one that contains this event.
    pub(super) fn stream_tail(&self, stream: &str, seq: u64) -> StreamTail {
        let Some(all) = self.streams.get(stream) else {
            return StreamTail { upto: self.upto, ..StreamTail::default() };
        };
        let start = all.records.partition_point(|it| it.last < seq);
        let records = all.records[start..].to_vec();
        StreamTail { upto: self.upto, number: all.number, records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_record(id: i64, first: u64, last: u64) -> UnindexedRecord {
        UnindexedRecord { id, first, last }
    }

    #[test]
    fn stream_tail_starts_at_the_record_that_contains_the_event() {
        let mut tail = UnindexedTail::default();
        tail.reset(10);
        tail.add_record(&"s".into(), 3, new_record(11, 5, 7));
        tail.add_record(&"t".into(), 4, new_record(12, 1, 1));
        tail.add_record(&"s".into(), 3, new_record(13, 8, 8));
        tail.advance_to(14);
        assert_eq!(tail.head("s"), Some(8));
        assert_eq!(tail.stream_tail("s", 1).records.len(), 2);
        assert_eq!(tail.stream_tail("s", 7).records[0], new_record(11, 5, 7));
        assert_eq!(tail.stream_tail("s", 8).records, [new_record(13, 8, 8)]);
        assert_eq!(tail.stream_tail("s", 9), StreamTail { upto: 14, number: 3, records: vec![] });
        assert_eq!(tail.stream_tail("u", 1), StreamTail { upto: 14, number: 0, records: vec![] });
    }

    #[test]
    fn indexed_and_deleted_records_are_forgotten() {
        let mut tail = UnindexedTail::default();
        tail.add_record(&"s".into(), 3, new_record(1, 1, 1));
        tail.add_record(&"s".into(), 3, new_record(3, 2, 2));
        tail.add_record(&"t".into(), 4, new_record(2, 1, 1));
        tail.mark_indexed(2);
        assert_eq!(tail.stream_tail("s", 1).records, [new_record(3, 2, 2)]);
        assert_eq!(tail.head("t"), None);
        tail.forget_stream("s");
        assert_eq!(tail.head("s"), None);
        tail.add_record(&"t".into(), 5, new_record(4, 1, 3));
        tail.add_record(&"t".into(), 6, new_record(5, 1, 1));
        assert_eq!(
            tail.stream_tail("t", 1).records,
            [new_record(5, 1, 1)],
            "a stream that was created again"
        );
    }
}
