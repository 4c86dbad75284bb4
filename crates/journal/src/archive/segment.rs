//! One segment: consecutive events, their lines joined by newlines, compressed with zstd and its checksum.
//!
//! A name has the *last* event in front: whoever wants an event looks for the first segment that does not
//! end before it, and that is where a listing with an offset begins.

use crate::error::Damage;
use bytes::{Bytes, BytesMut};
use std::io;

/// So many bytes before they are compressed, unless one message of a log has more: few objects for a long
/// session, and not much to fetch for somebody who wants one page.
const SEGMENT_BYTES_MAX: usize = 4 << 20;

/// Text shrinks little more beyond it, and takes much longer.
const LEVEL: i32 = 3;

/// Which events a segment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Span {
    pub(crate) fn holds(self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    pub(super) fn name(self) -> String {
        format!("{:020}-{:020}.zst", self.last, self.first)
    }

    /// Greater than the names of all segments that end before this event, less than those of the others.
    pub(super) fn before(seq: u64) -> String {
        format!("{seq:020}")
    }

    /// None if it is not a name of ours.
    pub(super) fn parse(name: &str) -> Option<Span> {
        let (last, first) = name.strip_suffix(".zst")?.split_once('-')?;
        let span = Span { first: first.parse().ok()?, last: last.parse().ok()? };
        (span.name() == name && 0 < span.first && span.first <= span.last).then_some(span)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) body: Bytes,
}

impl Segment {
    pub(crate) fn span(&self) -> Span {
        Span { first: self.first, last: self.last }
    }

    pub(super) fn pack(&self) -> io::Result<Vec<u8>> {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        compressor.compress(&self.body)
    }

    /// What was packed under this name, or what is wrong with it.
    pub(super) fn unpack(span: Span, packed: &[u8]) -> Result<Segment, Damage> {
        let body = zstd::stream::decode_all(packed).map_err(|_| Damage::Segment)?;
        let lines = memchr::memchr_iter(b'\n', &body).count() as u64 + 1;
        if lines != span.last - span.first + 1 {
            return Err(Damage::Segment);
        }
        Ok(Segment { first: span.first, last: span.last, body: body.into() })
    }
}

/// A segment that grows.
#[derive(Debug, Default)]
pub(crate) struct Sheaf {
    first: u64,
    /// 0 while there is nothing.
    last: u64,
    body: BytesMut,
}

impl Sheaf {
    /// Whether these lines would make it too large.
    pub(crate) fn is_full_with(&self, bytes: usize) -> bool {
        self.last != 0 && SEGMENT_BYTES_MAX < self.body.len() + 1 + bytes
    }

    /// Adds the events that follow; false, and nothing is added, if they do not.
    #[must_use]
    pub(crate) fn push(&mut self, first: u64, last: u64, lines: &[u8]) -> bool {
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

    /// What it has by now; it is empty afterwards.
    pub(crate) fn take(&mut self) -> Option<Segment> {
        let Sheaf { first, last, body } = std::mem::take(self);
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
    fn names_sort_by_the_last_event_and_come_back() {
        let (early, late) = (Span { first: 1, last: 9 }, Span { first: 2, last: 10 });
        assert!(early.name() < late.name());
        assert_eq!(Span::parse(&late.name()), Some(late));
        assert!(early.name() < Span::before(10) && Span::before(10) < late.name());
        assert!(Span::before(9) < early.name());
        for other in ["", "1-2.zst", "x.zst", &Span { first: 3, last: 2 }.name()] {
            assert_eq!(Span::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_segment_is_unpacked_as_it_was_packed() {
        for lines in [&["a", "", "b"][..], &[""], &[&*"x".repeat(10_000)]] {
            let it = segment(7, lines);
            let packed = it.pack().unwrap();
            assert_eq!(Segment::unpack(it.span(), &packed), Ok(it));
        }
    }

    #[test]
    fn what_was_altered_or_has_another_name_is_damaged() {
        let it = segment(1, &["one", "two", "three"]);
        let packed = it.pack().unwrap();
        for place in 0..packed.len() {
            let mut altered = packed.clone();
            altered[place] ^= 1;
            let found = Segment::unpack(it.span(), &altered);
            assert!(found == Err(Damage::Segment) || found == Ok(it.clone()), "{place}");
        }
        assert_eq!(Segment::unpack(it.span(), &packed[..packed.len() - 1]), Err(Damage::Segment));
        let other = Span { first: 1, last: 4 };
        assert_eq!(Segment::unpack(other, &packed), Err(Damage::Segment));
    }

    #[test]
    fn a_sheaf_takes_what_follows_and_nothing_else() {
        let mut sheaf = Sheaf::default();
        assert!(sheaf.take().is_none());
        assert!(!sheaf.is_full_with(usize::MAX / 2), "the first lines are always let in");
        assert!(sheaf.push(5, 6, b"a\nb"));
        assert!(!sheaf.push(8, 8, b"d"));
        assert!(sheaf.push(7, 7, b""));
        assert!(sheaf.is_full_with(SEGMENT_BYTES_MAX) && !sheaf.is_full_with(10));
        assert_eq!(sheaf.take(), Some(segment(5, &["a", "b", ""])));
        assert!(sheaf.take().is_none());
    }
}
