//! One segment: the lines of consecutive events, joined by newlines and compressed with zstd,
//! including its checksum.
//!
//! The object name starts with the *last* sequence number. The segment that contains an event is
//! the first one that does not end before it, and a listing with an offset starts right there.

use crate::error::RecordDamage;
use bytes::{Bytes, BytesMut};
use std::io;

/// The maximum uncompressed size, unless one message of a log is larger. A long session has few
/// objects, and a reader of one page does not fetch much.
const SEGMENT_BYTES_MAX: usize = 4 << 20;

/// A higher level takes much longer and compresses text only a little better.
const COMPRESSION_LEVEL: i32 = 3;

/// The sequence numbers of the events in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl EventRange {
    pub(crate) fn contains(self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    pub(super) fn object_name(self) -> String {
        format!("{:020}-{:020}.zst", self.last, self.first)
    }

    /// Sorts after the names of all segments that end before this event, and before those of the
    /// others.
    pub(super) fn list_offset(seq: u64) -> String {
        format!("{seq:020}")
    }

    /// `None` if the name is not that of a segment.
    pub(super) fn parse_object_name(name: &str) -> Option<EventRange> {
        let (last, first) = name.strip_suffix(".zst")?.split_once('-')?;
        let range = EventRange { first: first.parse().ok()?, last: last.parse().ok()? };
        (range.object_name() == name && 0 < range.first && range.first <= range.last)
            .then_some(range)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) body: Bytes,
}

impl Segment {
    pub(crate) fn range(&self) -> EventRange {
        EventRange { first: self.first, last: self.last }
    }

    pub(super) fn compress(&self) -> io::Result<Vec<u8>> {
        let mut compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
        compressor.include_checksum(true)?;
        compressor.compress(&self.body)
    }

    /// Decompresses the object of this range, or reports its damage.
    pub(super) fn decompress(
        range: EventRange,
        compressed: &[u8],
    ) -> Result<Segment, RecordDamage> {
        let body = zstd::stream::decode_all(compressed).map_err(|_| RecordDamage::Segment)?;
        let lines = memchr::memchr_iter(b'\n', &body).count() as u64 + 1;
        if lines != range.last - range.first + 1 {
            return Err(RecordDamage::Segment);
        }
        Ok(Segment { first: range.first, last: range.last, body: body.into() })
    }
}

/// Collects lines for the next segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuilder {
    first: u64,
    /// 0 while the builder is empty.
    last: u64,
    body: BytesMut,
}

impl SegmentBuilder {
    /// Whether lines of this size would exceed the size limit. An empty builder accepts any size.
    pub(crate) fn would_exceed_limit(&self, bytes: usize) -> bool {
        self.last != 0 && SEGMENT_BYTES_MAX < self.body.len() + 1 + bytes
    }

    /// Adds the next events. Returns `false` without adding them if they do not follow the last
    /// event.
    #[must_use]
    pub(crate) fn push_lines(&mut self, first: u64, last: u64, lines: &[u8]) -> bool {
        if self.last == 0 {
            self.first = first;
        } else if self.last + 1 == first {
            self.body.extend_from_slice(b"\n");
        } else {
            return false;
        }
        self.last = last;
        self.body.extend_from_slice(lines);
        true
    }

    /// Returns the collected segment and empties the builder. `None` if it is empty.
    pub(crate) fn finish(&mut self) -> Option<Segment> {
        let SegmentBuilder { first, last, body } = std::mem::take(self);
        (last != 0).then(|| Segment { first, last, body: body.freeze() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u64, lines: &[&str]) -> Segment {
        let last = first + lines.len() as u64 - 1;
        Segment { first, last, body: lines.join("\n").into() }
    }

    #[test]
    fn object_names_sort_by_the_last_event_and_parse_back() {
        let (early, late) = (EventRange { first: 1, last: 9 }, EventRange { first: 2, last: 10 });
        assert!(early.object_name() < late.object_name());
        assert_eq!(EventRange::parse_object_name(&late.object_name()), Some(late));
        assert!(
            early.object_name() < EventRange::list_offset(10)
                && EventRange::list_offset(10) < late.object_name()
        );
        assert!(EventRange::list_offset(9) < early.object_name());
        for other in ["", "1-2.zst", "x.zst", &EventRange { first: 3, last: 2 }.object_name()] {
            assert_eq!(EventRange::parse_object_name(other), None, "{other}");
        }
    }

    #[test]
    fn decompression_restores_the_segment() {
        for lines in [&["a", "", "b"][..], &[""], &[&*"x".repeat(10_000)]] {
            let it = segment(7, lines);
            let compressed = it.compress().unwrap();
            assert_eq!(Segment::decompress(it.range(), &compressed), Ok(it));
        }
    }

    #[test]
    fn altered_or_misnamed_segment_is_reported_as_damaged() {
        let it = segment(1, &["one", "two", "three"]);
        let compressed = it.compress().unwrap();
        for position in 0..compressed.len() {
            let mut altered = compressed.clone();
            altered[position] ^= 1;
            let found = Segment::decompress(it.range(), &altered);
            assert!(found == Err(RecordDamage::Segment) || found == Ok(it.clone()), "{position}");
        }
        assert_eq!(
            Segment::decompress(it.range(), &compressed[..compressed.len() - 1]),
            Err(RecordDamage::Segment)
        );
        let other = EventRange { first: 1, last: 4 };
        assert_eq!(Segment::decompress(other, &compressed), Err(RecordDamage::Segment));
    }

    #[test]
    fn segment_builder_accepts_only_the_next_events() {
        let mut builder = SegmentBuilder::default();
        assert!(builder.finish().is_none());
        assert!(!builder.would_exceed_limit(usize::MAX / 2), "the first lines are always accepted");
        assert!(builder.push_lines(5, 6, b"a\nb"));
        assert!(!builder.push_lines(8, 8, b"d"));
        assert!(builder.push_lines(7, 7, b""));
        assert!(builder.would_exceed_limit(SEGMENT_BYTES_MAX) && !builder.would_exceed_limit(10));
        assert_eq!(builder.finish(), Some(segment(5, &["a", "b", ""])));
        assert!(builder.finish().is_none());
    }
}
