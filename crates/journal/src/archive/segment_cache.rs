//! Caches the segments that were read last, so that a reader that pages through a segment does not
//! fetch it for each page.

use super::segment::Segment;
use std::collections::VecDeque;

/// The number of concurrent readers that profit from the cache.
const SEGMENTS_MAX: usize = 8;
const BYTES_MAX: usize = 32 << 20;

/// Segments with the folders of their streams, most recently used first.
#[derive(Debug, Default)]
pub(super) struct SegmentCache(VecDeque<(String, Segment)>);

impl SegmentCache {
    /// The cached segment of a stream that contains this event.
    pub(super) fn find_segment(&mut self, folder: &str, seq: u64) -> Option<Segment> {
        let is_wanted =
            |(it, segment): &(String, Segment)| it == folder && segment.range().contains(seq);
        let position = self.0.iter().position(is_wanted)?;
        let entry = self.0.remove(position).expect("it was just found");
        self.0.push_front(entry);
        Some(self.0[0].1.clone())
    }

    pub(super) fn insert(&mut self, folder: &str, segment: Segment) {
        if BYTES_MAX < segment.body.len() {
            return;
        }
        self.0.push_front((folder.to_owned(), segment));
        while SEGMENTS_MAX < self.0.len() || BYTES_MAX < self.total_bytes() {
            self.0.pop_back();
        }
    }

    pub(super) fn remove_stream(&mut self, folder: &str) {
        self.0.retain(|(it, _)| it != folder);
    }

    fn total_bytes(&self) -> usize {
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
    fn cache_keeps_recently_read_segments_within_its_limits() {
        let mut cache = SegmentCache::default();
        cache.insert("a", segment(1, 10));
        assert_eq!(cache.find_segment("a", 10), Some(segment(1, 10)));
        assert_eq!(cache.find_segment("a", 11), None);
        assert_eq!(cache.find_segment("b", 1), None);
        for first in 0..SEGMENTS_MAX as u64 - 1 {
            cache.insert("b", segment(first * 10 + 1, 10));
        }
        assert!(cache.find_segment("a", 1).is_some(), "it was the oldest and is now the latest");
        cache.insert("c", segment(1, 10));
        assert!(cache.find_segment("a", 1).is_some() && cache.find_segment("b", 1).is_none());
        cache.remove_stream("a");
        assert_eq!(cache.find_segment("a", 1), None);
        cache.insert("d", segment(1, BYTES_MAX + 1));
        assert!(cache.find_segment("d", 1).is_none() && cache.find_segment("c", 1).is_some());
        cache.insert("e", segment(1, BYTES_MAX));
        assert_eq!(cache.total_bytes(), BYTES_MAX);
    }
}
