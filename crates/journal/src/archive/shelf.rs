//! The last few segments that somebody read, so that a reader who turns pages does not fetch the same one
//! for each of them.

use super::segment::Segment;
use std::collections::VecDeque;

/// Readers at the same time that are worth remembering.
const SEGMENTS_MAX: usize = 8;
const BYTES_MAX: usize = 32 << 20;

/// The latest in front.
#[derive(Debug, Default)]
pub(super) struct Shelf(VecDeque<(String, Segment)>);

impl Shelf {
    pub(super) fn with(&mut self, folder: &str, seq: u64) -> Option<Segment> {
        let has = |(of, it): &(String, Segment)| of == folder && it.span().holds(seq);
        let found = self.0.iter().position(has)?;
        let it = self.0.remove(found).expect("it was just found");
        self.0.push_front(it);
        Some(self.0[0].1.clone())
    }

    pub(super) fn put(&mut self, folder: &str, segment: Segment) {
        if BYTES_MAX < segment.body.len() {
            return;
        }
        self.0.push_front((folder.to_owned(), segment));
        while SEGMENTS_MAX < self.0.len() || BYTES_MAX < self.bytes() {
            self.0.pop_back();
        }
    }

    pub(super) fn forget(&mut self, folder: &str) {
        self.0.retain(|(of, _)| of != folder);
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, it)| it.body.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u64, bytes: usize) -> Segment {
        Segment { first, last: first + 9, body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn what_was_read_lately_is_there_and_what_is_too_much_is_not() {
        let mut shelf = Shelf::default();
        shelf.put("a", segment(1, 10));
        assert_eq!(shelf.with("a", 10), Some(segment(1, 10)));
        assert_eq!(shelf.with("a", 11), None);
        assert_eq!(shelf.with("b", 1), None);
        for first in 0..SEGMENTS_MAX as u64 - 1 {
            shelf.put("b", segment(first * 10 + 1, 10));
        }
        assert!(shelf.with("a", 1).is_some(), "it was the oldest, and is the latest now");
        shelf.put("c", segment(1, 10));
        assert!(shelf.with("a", 1).is_some() && shelf.with("b", 1).is_none());
        shelf.forget("a");
        assert_eq!(shelf.with("a", 1), None);
        shelf.put("d", segment(1, BYTES_MAX + 1));
        assert!(shelf.with("d", 1).is_none() && shelf.with("c", 1).is_some());
        shelf.put("e", segment(1, BYTES_MAX));
        assert_eq!(shelf.bytes(), BYTES_MAX);
    }
}
