//! The shape of what is stored: events packed into records, cut and unpacked, with a checksum.
//!
//! The body of a record is its lines joined by `\n`, without a last one.

use crate::error::Invalid;
use bytes::Bytes;
use std::sync::Arc;

/// A record's body is at most this long; a longer single event is kept beside the log as a blob.
/// Large enough for any chunk worth packing, small enough to check and copy in one go.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;

/// Far above any frame that is let in, far below what SQLite takes as one value.
pub const APPEND_BYTES_MAX: usize = 512 * 1024 * 1024;

pub const NAME_BYTES_MAX: usize = 512;

/// A place in the journal is a stream's number and a seq in one 63-bit integer.
pub(crate) const SEQ_BITS: u32 = 36;
pub const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
pub const STREAMS_MAX: u64 = (1 << (63 - SEQ_BITS)) - 1;

/// Consecutive events to put at the end of one stream. There may be none where there is a summary:
/// then that is put beside the events that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub stream: Arc<str>,
    /// The epoch that [`Journal::claim`](crate::Journal::claim) gave.
    pub epoch: u64,
    /// The number of the first event; with none, the one that comes next.
    pub first: u64,
    pub count: u32,
    /// The lines, joined by `\n`.
    pub body: Bytes,
    /// Opaque bytes to keep beside the stream; the latest wins.
    pub summary: Option<Bytes>,
}

impl Append {
    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count)).saturating_sub(1)
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        check_name(&self.stream)?;
        if self.first == 0 {
            return Err(Invalid::FirstIsZero);
        }
        if self.count == 0 && self.body.is_empty() && self.summary.is_some() {
            return Ok(());
        }
        if self.count == 0 {
            return Err(Invalid::Empty);
        }
        if SEQ_MAX < self.last() {
            return Err(Invalid::SeqTooLarge);
        }
        if APPEND_BYTES_MAX < self.body.len() {
            return Err(Invalid::TooLarge);
        }
        let lines = memchr::memchr_iter(b'\n', &self.body).count() + 1;
        if lines != self.count as usize {
            return Err(Invalid::Count { count: self.count, lines });
        }
        Ok(())
    }

    /// What of this append a stream with this head lacks: the number of the first such event and
    /// the lines from there on. Nothing, if all of it is there.
    pub(crate) fn missing_after(&self, head: u64) -> Option<(u64, Bytes)> {
        if self.last() <= head {
            return None;
        }
        let first = self.first.max(head + 1);
        let mut body = self.body.clone();
        for _ in self.first..first {
            let end = memchr::memchr(b'\n', &body).expect("`check` counted the lines");
            body = body.slice(end + 1..);
        }
        Some((first, body))
    }
}

pub(crate) fn check_name(stream: &str) -> Result<(), Invalid> {
    if stream.is_empty() || NAME_BYTES_MAX < stream.len() {
        return Err(Invalid::Name);
    }
    Ok(())
}

/// One event as read: its number and its line, a slice of the record it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: u64,
    pub line: Bytes,
}

/// Part of an append that becomes one record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) body: Bytes,
}

impl Piece {
    /// Whether this is one event too long for a record.
    pub(crate) fn is_large(&self) -> bool {
        RECORD_BYTES_MAX < self.body.len()
    }
}

/// Cuts the lines `first` to `last` into records of at most [`RECORD_BYTES_MAX`]; a longer line is a
/// piece of its own.
pub(crate) fn pieces(mut first: u64, last: u64, body: Bytes) -> impl Iterator<Item = Piece> {
    let mut rest = Some(body);
    std::iter::from_fn(move || {
        let body = rest.take()?;
        let (count, body) = match cut(&body) {
            Some(cut) => {
                rest = Some(body.slice(cut + 1..));
                let body = body.slice(..cut);
                (memchr::memchr_iter(b'\n', &body).count() as u64 + 1, body)
            }
            None => (last + 1 - first, body),
        };
        let count = u32::try_from(count).expect("an append counts its lines in a u32");
        let piece = Piece { first, count, body };
        first += u64::from(count);
        Some(piece)
    })
}

/// The newline at which the first piece ends; none if everything is one piece.
fn cut(body: &[u8]) -> Option<usize> {
    if body.len() <= RECORD_BYTES_MAX {
        return None;
    }
    // The newline may stand one past the limit: it belongs to neither piece.
    memchr::memrchr(b'\n', &body[..=RECORD_BYTES_MAX]).or_else(|| memchr::memchr(b'\n', body))
}

/// Covers everything a record says, so that a record cannot pass for another one either.
pub(crate) fn checksum(stream: &str, epoch: u64, piece: &Piece, is_reference: bool) -> u32 {
    let mut head = [0; 29];
    head[..8].copy_from_slice(&epoch.to_le_bytes());
    head[8..16].copy_from_slice(&piece.first.to_le_bytes());
    head[16..20].copy_from_slice(&piece.count.to_le_bytes());
    head[20] = u8::from(is_reference);
    head[21..].copy_from_slice(&(stream.len() as u64).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(stream.as_bytes());
    hasher.update(&piece.body);
    hasher.finalize()
}

/// What stands in a record in place of a large event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) bytes: usize,
    pub(crate) crc32: u32,
}

impl Reference {
    pub(crate) fn to(body: &[u8]) -> Reference {
        Reference { bytes: body.len(), crc32: crc32fast::hash(body) }
    }

    pub(crate) fn to_line(self) -> String {
        format!(r#"{{"blob":{{"bytes":{},"crc32":{}}}}}"#, self.bytes, self.crc32)
    }

    pub(crate) fn parse(line: &[u8]) -> Option<Reference> {
        let line = std::str::from_utf8(line).ok()?;
        let inner = line.strip_prefix(r#"{"blob":{"bytes":"#)?.strip_suffix("}}")?;
        let (bytes, crc32) = inner.split_once(r#","crc32":"#)?;
        Some(Reference { bytes: bytes.parse().ok()?, crc32: crc32.parse().ok()? })
    }
}

/// The events of one answer, with its two limits. The first event is always let in.
pub(crate) struct Answer {
    events: Vec<Event>,
    events_max: usize,
    bytes: usize,
    bytes_max: usize,
    next: u64,
}

impl Answer {
    pub(crate) fn new(after: u64, events_max: usize, bytes_max: usize) -> Answer {
        Answer {
            events: Vec::new(),
            events_max: events_max.max(1),
            bytes: 0,
            bytes_max,
            next: after.saturating_add(1),
        }
    }

    /// The number of the event that comes next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether one more event of this size may be added.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= self.bytes_max;
        self.events.is_empty() || (self.events.len() < self.events_max && fits)
    }

    /// Adds the next event; false if it does not fit any more.
    pub(crate) fn push(&mut self, line: Bytes) -> bool {
        if !self.has_room_for(line.len()) {
            return false;
        }
        self.bytes += line.len();
        self.events.push(Event { seq: self.next, line });
        self.next += 1;
        true
    }

    /// Adds the events of a record that contains the next one; false if not all of them fit.
    pub(crate) fn unpack(&mut self, first: u64, body: &Bytes) -> bool {
        let skip = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', body).chain(std::iter::once(body.len()));
        for (index, end) in ends.enumerate() {
            if skip <= index && !self.push(body.slice(start..end)) {
                return false;
            }
            start = end + 1;
        }
        true
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn append(first: u64, lines: &[&str]) -> Append {
        let body = Bytes::from(lines.join("\n"));
        let count = u32::try_from(lines.len()).unwrap();
        Append { stream: "s".into(), epoch: 1, first, count, body, summary: None }
    }

    #[test]
    fn an_append_must_carry_what_it_says() {
        assert_eq!(append(1, &["a", "b"]).check(), Ok(()));
        assert_eq!(append(1, &[""]).check(), Ok(()), "an empty line is an event");
        let wrong = Append { count: 3, ..append(1, &["a", "b"]) };
        assert_eq!(wrong.check(), Err(Invalid::Count { count: 3, lines: 2 }));
        assert_eq!(append(0, &["a"]).check(), Err(Invalid::FirstIsZero));
        assert_eq!(Append { count: 0, ..append(1, &["a"]) }.check(), Err(Invalid::Empty));
        let summary = Some(Bytes::from_static(b"s"));
        let bare = Append { count: 0, summary, ..append(1, &[""]) };
        assert_eq!(bare.check(), Ok(()));
        assert_eq!(Append { body: "a".into(), ..bare.clone() }.check(), Err(Invalid::Empty));
        assert_eq!(Append { summary: None, ..bare }.check(), Err(Invalid::Empty));
        assert_eq!(append(SEQ_MAX, &["a"]).check(), Ok(()));
        assert_eq!(append(SEQ_MAX, &["a", "b"]).check(), Err(Invalid::SeqTooLarge));
        assert_eq!(append(u64::MAX, &["a"]).check(), Err(Invalid::SeqTooLarge));
        let nameless = Append { stream: "".into(), ..append(1, &["a"]) };
        assert_eq!(nameless.check(), Err(Invalid::Name));
    }

    #[test]
    fn a_retry_is_cut_to_what_is_missing() {
        let it = append(5, &["a", "b", "c"]);
        assert_eq!(it.missing_after(4), Some((5, "a\nb\nc".into())));
        assert_eq!(it.missing_after(6), Some((7, "c".into())));
        assert_eq!(it.missing_after(7), None);
        assert_eq!(it.missing_after(900), None);
    }

    #[test]
    fn a_line_of_the_very_limit_stays_in_the_record() {
        let limit = "x".repeat(RECORD_BYTES_MAX);
        let over = "y".repeat(RECORD_BYTES_MAX + 1);
        let body = Bytes::from(["a", &limit, "b", &over, "c", "d"].join("\n"));
        let found: Vec<_> =
            pieces(10, 15, body).map(|it| (it.first, it.count, it.is_large())).collect();
        assert_eq!(
            found,
            [(10, 1, false), (11, 1, false), (12, 1, false), (13, 1, true), (14, 2, false)]
        );
    }

    #[test]
    fn every_field_of_a_record_is_covered_by_its_checksum() {
        let piece = |first, count, body: &'static str| Piece { first, count, body: body.into() };
        let sums = [
            checksum("s", 1, &piece(1, 1, "a"), false),
            checksum("t", 1, &piece(1, 1, "a"), false),
            checksum("s", 2, &piece(1, 1, "a"), false),
            checksum("s", 1, &piece(2, 1, "a"), false),
            checksum("s", 1, &piece(1, 2, "a"), false),
            checksum("s", 1, &piece(1, 1, "b"), false),
            checksum("s", 1, &piece(1, 1, "a"), true),
            checksum("sa", 1, &piece(1, 1, ""), false),
        ];
        for (index, sum) in sums.iter().enumerate() {
            assert!(!sums[..index].contains(sum), "{index}");
        }
    }

    #[test]
    fn after_a_first_event_that_is_too_long_not_even_an_empty_one_fits() {
        let mut answer = Answer::new(0, 10, 3);
        assert!(!answer.unpack(1, &"long\n\n".into()));
        assert_eq!(answer.into_events(), [Event { seq: 1, line: "long".into() }]);
    }

    #[test]
    fn a_reference_is_read_back_and_nothing_else_is() {
        let it = Reference::to(b"hello");
        assert_eq!(Reference::parse(it.to_line().as_bytes()), Some(it));
        for line in ["", "{}", r#"{"blob":{"bytes":1,"crc32":-1}}"#, r#"{"blob":{"bytes":1}}"#] {
            assert_eq!(Reference::parse(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn pieces_joined_again_are_the_body(
            lines in proptest::collection::vec((0..400_000_usize, any::<u8>()), 1..8)
        ) {
            let lines: Vec<_> = lines
                .into_iter()
                .map(|(len, fill)| vec![if fill == b'\n' { b' ' } else { fill }; len])
                .collect();
            let body = Bytes::from(lines.join(&b'\n'));
            let all: Vec<_> = pieces(1, lines.len() as u64, body.clone()).collect();
            let joined: Vec<_> = all.iter().map(|it| it.body.to_vec()).collect();
            prop_assert_eq!(Bytes::from(joined.join(&b'\n')), body);
            let mut next = 1;
            for piece in &all {
                prop_assert_eq!(piece.first, next);
                prop_assert!(!piece.is_large() || piece.count == 1);
                next += u64::from(piece.count);
            }
            prop_assert_eq!(next, lines.len() as u64 + 1);
        }
    }
}
