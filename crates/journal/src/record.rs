//! The storage format: events are packed into records with a checksum, and unpacked again.
//!
//! The body of a record is its lines joined by `\n`, without a trailing newline.

use crate::{
    error::InvalidAppend,
    limits::{APPEND_BYTES_MAX, NAME_BYTES_MAX, RECORD_BYTES_MAX, SEQ_MAX},
};
use bytes::Bytes;
use std::sync::Arc;

/// Consecutive events to append to one stream. A request without events only stores its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRequest {
    pub stream: Arc<str>,
    /// The epoch that [`Journal::claim_stream`](crate::Journal::claim_stream) returned.
    pub epoch: u64,
    /// The sequence number of the first event; without events, that of the next event.
    pub first: u64,
    pub count: u32,
    /// The lines, joined by `\n`.
    pub body: Bytes,
    /// Opaque bytes to store beside the stream. They replace an older summary.
    pub summary: Option<Bytes>,
}

impl AppendRequest {
    /// The sequence number of the last event.
    pub fn last_seq(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count)).saturating_sub(1)
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidAppend> {
        validate_name(&self.stream)?;
        if self.first == 0 {
            return Err(InvalidAppend::FirstIsZero);
        }
        if self.count == 0 && self.body.is_empty() && self.summary.is_some() {
            return Ok(());
        }
        if self.count == 0 {
            return Err(InvalidAppend::Empty);
        }
        if SEQ_MAX < self.last_seq() {
            return Err(InvalidAppend::SeqTooLarge);
        }
        if APPEND_BYTES_MAX < self.body.len() {
            return Err(InvalidAppend::TooLarge);
        }
        let lines = memchr::memchr_iter(b'\n', &self.body).count() + 1;
        if lines != self.count as usize {
            return Err(InvalidAppend::Count { count: self.count, lines });
        }
        Ok(())
    }

    /// The part of this append that a stream with this head does not have yet: the sequence number
    /// of the first missing event and the lines from there on. `None` if nothing is missing.
    pub(crate) fn missing_after(&self, head: u64) -> Option<(u64, Bytes)> {
        if self.last_seq() <= head {
            return None;
        }
        let first = self.first.max(head + 1);
        let mut body = self.body.clone();
        for _ in self.first..first {
            let end = memchr::memchr(b'\n', &body).expect("`validate` counted the lines");
            body = body.slice(end + 1..);
        }
        Some((first, body))
    }
}

pub(crate) fn validate_name(stream: &str) -> Result<(), InvalidAppend> {
    if stream.is_empty() || NAME_BYTES_MAX < stream.len() {
        return Err(InvalidAppend::Name);
    }
    Ok(())
}

/// One event as read: its sequence number and its line, which is a slice of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub seq: u64,
    pub line: Bytes,
}

/// The events of one record, without stream, epoch and checksum.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordContent {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) body: Bytes,
}

impl RecordContent {
    /// Whether this is a single event that is too long for a record.
    pub(crate) fn is_large(&self) -> bool {
        RECORD_BYTES_MAX < self.body.len()
    }
}

/// Splits the lines `first` to `last` into records of at most [`RECORD_BYTES_MAX`]. A longer line
/// gets a record of its own.
pub(crate) fn split_into_records(
    mut first: u64,
    last: u64,
    body: Bytes,
) -> impl Iterator<Item = RecordContent> {
    let mut rest = Some(body);
    std::iter::from_fn(move || {
        let body = rest.take()?;
        let (count, body) = match find_cut(&body) {
            Some(newline) => {
                rest = Some(body.slice(newline + 1..));
                let body = body.slice(..newline);
                (memchr::memchr_iter(b'\n', &body).count() as u64 + 1, body)
            }
            None => (last + 1 - first, body),
        };
        let count = u32::try_from(count).expect("an append counts its lines in a u32");
        let content = RecordContent { first, count, body };
        first += u64::from(count);
        Some(content)
    })
}

/// The newline at which the first record ends; `None` if the whole body fits into one record.
fn find_cut(body: &[u8]) -> Option<usize> {
    if body.len() <= RECORD_BYTES_MAX {
        return None;
    }
    // The newline may be one past the limit, because it belongs to neither record.
    memchr::memrchr(b'\n', &body[..=RECORD_BYTES_MAX]).or_else(|| memchr::memchr(b'\n', body))
}

/// Covers every field of a record, so that one record cannot be mistaken for another.
pub(crate) fn compute_checksum(
    stream: &str,
    epoch: u64,
    content: &RecordContent,
    is_reference: bool,
) -> u32 {
    let mut head = [0; 29];
    head[..8].copy_from_slice(&epoch.to_le_bytes());
    head[8..16].copy_from_slice(&content.first.to_le_bytes());
    head[16..20].copy_from_slice(&content.count.to_le_bytes());
    head[20] = u8::from(is_reference);
    head[21..].copy_from_slice(&(stream.len() as u64).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(stream.as_bytes());
    hasher.update(&content.body);
    hasher.finalize()
}

/// The line that a record contains instead of a large event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobReference {
    pub(crate) bytes: usize,
    pub(crate) crc32: u32,
}

impl BlobReference {
    pub(crate) fn for_body(body: &[u8]) -> BlobReference {
        BlobReference { bytes: body.len(), crc32: crc32fast::hash(body) }
    }

    pub(crate) fn to_line(self) -> String {
        format!(r#"{{"blob":{{"bytes":{},"crc32":{}}}}}"#, self.bytes, self.crc32)
    }

    pub(crate) fn parse(line: &[u8]) -> Option<BlobReference> {
        let line = std::str::from_utf8(line).ok()?;
        let inner = line.strip_prefix(r#"{"blob":{"bytes":"#)?.strip_suffix("}}")?;
        let (bytes, crc32) = inner.split_once(r#","crc32":"#)?;
        Some(BlobReference { bytes: bytes.parse().ok()?, crc32: crc32.parse().ok()? })
    }
}

/// The events of one read, within its two limits. The first event is always accepted.
pub(crate) struct EventBatch {
    events: Vec<StoredEvent>,
    events_max: usize,
    bytes: usize,
    bytes_max: usize,
    next_seq: u64,
}

impl EventBatch {
    pub(crate) fn new(after: u64, events_max: usize, bytes_max: usize) -> EventBatch {
        EventBatch {
            events: Vec::new(),
            events_max: events_max.max(1),
            bytes: 0,
            bytes_max,
            next_seq: after.saturating_add(1),
        }
    }

    /// The sequence number of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether one more event of this size may be added.
    pub(crate) fn has_space_for(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= self.bytes_max;
        self.events.is_empty() || (self.events.len() < self.events_max && fits)
    }

    /// Adds the next event. Returns `false` if it does not fit.
    pub(crate) fn push_line(&mut self, line: Bytes) -> bool {
        if !self.has_space_for(line.len()) {
            return false;
        }
        self.bytes += line.len();
        self.events.push(StoredEvent { seq: self.next_seq, line });
        self.next_seq += 1;
        true
    }

    /// Adds the events of a record that contains the next event. Returns `false` if not all of them
    /// fit.
    pub(crate) fn push_record(&mut self, first: u64, body: &Bytes) -> bool {
        let skip = usize::try_from(self.next_seq - first).unwrap_or(usize::MAX);
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', body).chain(std::iter::once(body.len()));
        for (index, end) in ends.enumerate() {
            if skip <= index && !self.push_line(body.slice(start..end)) {
                return false;
            }
            start = end + 1;
        }
        true
    }

    pub(crate) fn into_events(self) -> Vec<StoredEvent> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn new_append(first: u64, lines: &[&str]) -> AppendRequest {
        let body = Bytes::from(lines.join("\n"));
        let count = u32::try_from(lines.len()).unwrap();
        AppendRequest { stream: "s".into(), epoch: 1, first, count, body, summary: None }
    }

    #[test]
    fn append_must_carry_as_many_lines_as_it_counts() {
        assert_eq!(new_append(1, &["a", "b"]).validate(), Ok(()));
        assert_eq!(new_append(1, &[""]).validate(), Ok(()), "an empty line is an event");
        let wrong = AppendRequest { count: 3, ..new_append(1, &["a", "b"]) };
        assert_eq!(wrong.validate(), Err(InvalidAppend::Count { count: 3, lines: 2 }));
        assert_eq!(new_append(0, &["a"]).validate(), Err(InvalidAppend::FirstIsZero));
        assert_eq!(
            AppendRequest { count: 0, ..new_append(1, &["a"]) }.validate(),
            Err(InvalidAppend::Empty)
        );
        let summary = Some(Bytes::from_static(b"s"));
        let bare = AppendRequest { count: 0, summary, ..new_append(1, &[""]) };
        assert_eq!(bare.validate(), Ok(()));
        assert_eq!(
            AppendRequest { body: "a".into(), ..bare.clone() }.validate(),
            Err(InvalidAppend::Empty)
        );
        assert_eq!(AppendRequest { summary: None, ..bare }.validate(), Err(InvalidAppend::Empty));
        assert_eq!(new_append(SEQ_MAX, &["a"]).validate(), Ok(()));
        assert_eq!(new_append(SEQ_MAX, &["a", "b"]).validate(), Err(InvalidAppend::SeqTooLarge));
        assert_eq!(new_append(u64::MAX, &["a"]).validate(), Err(InvalidAppend::SeqTooLarge));
        let nameless = AppendRequest { stream: "".into(), ..new_append(1, &["a"]) };
        assert_eq!(nameless.validate(), Err(InvalidAppend::Name));
    }

    #[test]
    fn retry_is_reduced_to_the_missing_events() {
        let it = new_append(5, &["a", "b", "c"]);
        assert_eq!(it.missing_after(4), Some((5, "a\nb\nc".into())));
        assert_eq!(it.missing_after(6), Some((7, "c".into())));
        assert_eq!(it.missing_after(7), None);
        assert_eq!(it.missing_after(900), None);
    }

    #[test]
    fn line_of_exactly_the_limit_stays_in_the_record() {
        let limit = "x".repeat(RECORD_BYTES_MAX);
        let over = "y".repeat(RECORD_BYTES_MAX + 1);
        let body = Bytes::from(["a", &limit, "b", &over, "c", "d"].join("\n"));
        let found: Vec<_> = split_into_records(10, 15, body)
            .map(|it| (it.first, it.count, it.is_large()))
            .collect();
        assert_eq!(
            found,
            [(10, 1, false), (11, 1, false), (12, 1, false), (13, 1, true), (14, 2, false)]
        );
    }

    #[test]
    fn checksum_covers_every_field_of_a_record() {
        let content =
            |first, count, body: &'static str| RecordContent { first, count, body: body.into() };
        let sums = [
            compute_checksum("s", 1, &content(1, 1, "a"), false),
            compute_checksum("t", 1, &content(1, 1, "a"), false),
            compute_checksum("s", 2, &content(1, 1, "a"), false),
            compute_checksum("s", 1, &content(2, 1, "a"), false),
            compute_checksum("s", 1, &content(1, 2, "a"), false),
            compute_checksum("s", 1, &content(1, 1, "b"), false),
            compute_checksum("s", 1, &content(1, 1, "a"), true),
            compute_checksum("sa", 1, &content(1, 1, ""), false),
        ];
        for (index, sum) in sums.iter().enumerate() {
            assert!(!sums[..index].contains(sum), "{index}");
        }
    }

    #[test]
    fn nothing_fits_after_a_first_event_that_exceeds_the_limit() {
        let mut batch = EventBatch::new(0, 10, 3);
        assert!(!batch.push_record(1, &"long\n\n".into()));
        assert_eq!(batch.into_events(), [StoredEvent { seq: 1, line: "long".into() }]);
    }

    #[test]
    fn blob_reference_parses_only_its_own_format() {
        let it = BlobReference::for_body(b"hello");
        assert_eq!(BlobReference::parse(it.to_line().as_bytes()), Some(it));
        for line in ["", "{}", r#"{"blob":{"bytes":1,"crc32":-1}}"#, r#"{"blob":{"bytes":1}}"#] {
            assert_eq!(BlobReference::parse(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn joined_records_equal_the_body(
            lines in proptest::collection::vec((0..400_000_usize, any::<u8>()), 1..8)
        ) {
            let lines: Vec<_> = lines
                .into_iter()
                .map(|(len, fill)| vec![if fill == b'\n' { b' ' } else { fill }; len])
                .collect();
            let body = Bytes::from(lines.join(&b'\n'));
            let records: Vec<_> = split_into_records(1, lines.len() as u64, body.clone()).collect();
            let joined: Vec<_> = records.iter().map(|it| it.body.to_vec()).collect();
            prop_assert_eq!(Bytes::from(joined.join(&b'\n')), body);
            let mut next = 1;
            for content in &records {
                prop_assert_eq!(content.first, next);
                prop_assert!(!content.is_large() || content.count == 1);
                next += u64::from(content.count);
            }
            prop_assert_eq!(next, lines.len() as u64 + 1);
        }
    }
}
