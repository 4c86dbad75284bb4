//! The end of the log that is not placed yet, remembered so that no reader has to search it.
//!
//! The writer adds to it after each commit, and a reader looks at it before it takes its snapshot:
//! so everything a reader finds here is in its snapshot, and nothing that was acknowledged before
//! is missing. What others may have written since is beyond `upto`, and searched for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// The tail as readers see it, and what is to be added to it with the next commit.
#[derive(Default)]
pub(super) struct SharedTail {
    tail: Arc<Mutex<Tail>>,
    pending: Vec<(Arc<str>, i64, Unplaced)>,
}

impl SharedTail {
    pub(super) fn new(tail: Arc<Mutex<Tail>>) -> SharedTail {
        SharedTail { tail, pending: Vec::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().expect("nothing panics while it holds the tail")
    }

    pub(super) fn add(&mut self, stream: &Arc<str>, number: i64, record: Unplaced) {
        self.pending.push((Arc::clone(stream), number, record));
    }

    /// The log is committed up to this record.
    pub(super) fn commit(&mut self, upto: i64) {
        let mut tail = self.tail.lock().expect("nothing panics while it holds the tail");
        for (stream, number, record) in self.pending.drain(..) {
            tail.add(&stream, number, record);
        }
        tail.reached(upto);
    }

    pub(super) fn roll_back(&mut self) {
        self.pending.clear();
    }
}

#[derive(Default)]
pub(super) struct Tail {
    /// The last record of the log that is accounted for.
    upto: i64,
    streams: HashMap<Arc<str>, Glimpse>,
}

/// What the tail knows of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// The last record of the log that is accounted for.
    pub(super) upto: i64,
    /// The stream's number; 0 if it has no record here.
    pub(super) number: i64,
    pub(super) records: Vec<Unplaced>,
}

/// A record with events that is not placed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unplaced {
    pub(super) id: i64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Tail {
    /// Forgets everything and starts over from this record.
    pub(super) fn restart(&mut self, upto: i64) {
        self.streams.clear();
        self.upto = upto;
    }

    /// Adds the next record of a stream. Those of the log must come in order.
    pub(super) fn add(&mut self, stream: &Arc<str>, number: i64, record: Unplaced) {
        match self.streams.get_mut(stream) {
            Some(glimpse) if glimpse.number == number => glimpse.records.push(record),
            _ => {
                let glimpse = Glimpse { upto: 0, number, records: vec![record] };
                self.streams.insert(Arc::clone(stream), glimpse);
            }
        }
    }

    /// Everything up to this record is accounted for, whether it was added or has no events.
    pub(super) fn reached(&mut self, upto: i64) {
        self.upto = upto;
    }

    /// Records up to this one need not be remembered any more.
    pub(super) fn was_placed(&mut self, upto: i64) {
        self.streams.retain(|_, glimpse| {
            glimpse.records.retain(|it| upto < it.id);
            !glimpse.records.is_empty()
        });
    }

    pub(super) fn forget(&mut self, stream: &str) {
        self.streams.remove(stream);
    }

    /// The head of a stream, if it has records here.
    pub(super) fn head(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).and_then(|it| it.records.last()).map(|it| it.last)
    }

    /// The records of a stream from the one that contains this event.
    pub(super) fn glimpse(&self, stream: &str, seq: u64) -> Glimpse {
        let Some(all) = self.streams.get(stream) else {
            return Glimpse { upto: self.upto, ..Glimpse::default() };
        };
        let start = all.records.partition_point(|it| it.last < seq);
        let records = all.records[start..].to_vec();
        Glimpse { upto: self.upto, number: all.number, records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unplaced(id: i64, first: u64, last: u64) -> Unplaced {
        Unplaced { id, first, last }
    }

    #[test]
    fn a_glimpse_starts_at_the_record_that_contains_the_event() {
        let mut tail = Tail::default();
        tail.restart(10);
        tail.add(&"s".into(), 3, unplaced(11, 5, 7));
        tail.add(&"t".into(), 4, unplaced(12, 1, 1));
        tail.add(&"s".into(), 3, unplaced(13, 8, 8));
        tail.reached(14);
        assert_eq!(tail.head("s"), Some(8));
        assert_eq!(tail.glimpse("s", 1).records.len(), 2);
        assert_eq!(tail.glimpse("s", 7).records[0], unplaced(11, 5, 7));
        assert_eq!(tail.glimpse("s", 8).records, [unplaced(13, 8, 8)]);
        assert_eq!(tail.glimpse("s", 9), Glimpse { upto: 14, number: 3, records: vec![] });
        assert_eq!(tail.glimpse("u", 1), Glimpse { upto: 14, number: 0, records: vec![] });
    }

    #[test]
    fn what_is_placed_or_deleted_is_forgotten() {
        let mut tail = Tail::default();
        tail.add(&"s".into(), 3, unplaced(1, 1, 1));
        tail.add(&"s".into(), 3, unplaced(3, 2, 2));
        tail.add(&"t".into(), 4, unplaced(2, 1, 1));
        tail.was_placed(2);
        assert_eq!(tail.glimpse("s", 1).records, [unplaced(3, 2, 2)]);
        assert_eq!(tail.head("t"), None);
        tail.forget("s");
        assert_eq!(tail.head("s"), None);
        tail.add(&"t".into(), 5, unplaced(4, 1, 3));
        tail.add(&"t".into(), 6, unplaced(5, 1, 1));
        assert_eq!(tail.glimpse("t", 1).records, [unplaced(5, 1, 1)], "a stream made anew");
    }
}
