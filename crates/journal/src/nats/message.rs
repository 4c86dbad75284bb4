//! One message of a log: consecutive events, or a control message such as a claim. The headers
//! describe the message; the body contains only lines.

use crate::record::{RecordContent, compute_checksum};
use async_nats::{HeaderMap, header::NATS_MESSAGE_TTL};
use std::str::FromStr;

/// The sequence number of the first event; without events, that of the next event.
const FIRST_HEADER: &str = "S";
/// The number of events.
const COUNT_HEADER: &str = "N";
/// The epoch of the writer.
const EPOCH_HEADER: &str = "E";
const CHECKSUM_HEADER: &str = "C";
/// The kind of message, unless it contains events.
const KIND_HEADER: &str = "K";
/// The name of the writer, if it has one.
const OWNER_HEADER: &str = "O";
/// Of a claim: the owner from which the log was adopted.
const PREVIOUS_OWNER_HEADER: &str = "F";
/// How long the servers keep the tombstone of a deleted stream: longer than a writer may be
/// disconnected. After that, its last writer is fenced by the position that it expects.
const TOMBSTONE_TTL: &str = "720h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Events,
    /// A reference to one event that is stored as a blob.
    Reference,
    /// A new writer owns the stream.
    Claim,
    /// The writer has released the stream, and any host may claim it.
    Release,
    /// The stream was deleted. Only this tombstone is left, so that its last writer stays fenced.
    Gone,
}

/// The parsed headers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) kind: MessageKind,
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) count: u32,
    checksum: u32,
}

impl RecordHeader {
    pub(super) fn new(
        stream: &str,
        epoch: u64,
        content: &RecordContent,
        kind: MessageKind,
    ) -> RecordHeader {
        let checksum = compute_checksum(stream, epoch, content, kind == MessageKind::Reference);
        RecordHeader { kind, epoch, first: content.first, count: content.count, checksum }
    }

    /// The header of a control message without events. The next event will be `first`.
    pub(super) fn without_events(
        stream: &str,
        epoch: u64,
        first: u64,
        kind: MessageKind,
    ) -> RecordHeader {
        let nothing = RecordContent { first, count: 0, body: bytes::Bytes::new() };
        RecordHeader::new(stream, epoch, &nothing, kind)
    }

    /// The head of the stream after this message.
    pub(super) fn head(&self) -> u64 {
        (self.first - 1) + u64::from(self.count)
    }

    /// Whether the header and this content were written to this stream together.
    pub(super) fn matches(&self, stream: &str, content: &RecordContent) -> bool {
        *self == RecordHeader::new(stream, self.epoch, content, self.kind)
    }

    pub(super) fn to_headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(FIRST_HEADER, self.first.to_string());
        headers.insert(COUNT_HEADER, self.count.to_string());
        headers.insert(EPOCH_HEADER, self.epoch.to_string());
        headers.insert(CHECKSUM_HEADER, self.checksum.to_string());
        let kind = match self.kind {
            MessageKind::Events => return headers,
            MessageKind::Reference => "reference",
            MessageKind::Claim => "claim",
            MessageKind::Release => "release",
            MessageKind::Gone => "gone",
        };
        headers.insert(KIND_HEADER, kind);
        if self.kind == MessageKind::Gone {
            headers.insert(NATS_MESSAGE_TTL, TOMBSTONE_TTL);
        }
        headers
    }

    /// `None` if these are not the headers of a journal message.
    pub(super) fn parse(headers: &HeaderMap) -> Option<RecordHeader> {
        let kind = match headers.get(KIND_HEADER).map(async_nats::HeaderValue::as_str) {
            None => MessageKind::Events,
            Some("reference") => MessageKind::Reference,
            Some("claim") => MessageKind::Claim,
            Some("release") => MessageKind::Release,
            Some("gone") => MessageKind::Gone,
            Some(_) => return None,
        };
        let first = parse_number(headers, FIRST_HEADER)?;
        if first == 0 {
            return None;
        }
        let count = parse_number(headers, COUNT_HEADER)?;
        let (epoch, checksum) =
            (parse_number(headers, EPOCH_HEADER)?, parse_number(headers, CHECKSUM_HEADER)?);
        Some(RecordHeader { kind, epoch, first, count, checksum })
    }
}

/// The owner of the log, if these are the headers of its last message.
pub(super) fn read_owner(headers: &HeaderMap) -> Option<&str> {
    headers.get(OWNER_HEADER).map(async_nats::HeaderValue::as_str)
}

/// The previous owner, if these are the headers of the last message and the new owner has not
/// appended yet.
pub(super) fn read_previous_owner(headers: &HeaderMap) -> Option<&str> {
    headers.get(PREVIOUS_OWNER_HEADER).map(async_nats::HeaderValue::as_str)
}

pub(super) fn set_previous_owner(headers: &mut HeaderMap, owner: &str) {
    headers.insert(PREVIOUS_OWNER_HEADER, owner);
}

pub(super) fn set_owner(headers: &mut HeaderMap, owner: &str) {
    headers.insert(OWNER_HEADER, owner);
}

/// Parses a numeric header.
pub(super) fn parse_number<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn record_header_parses_back_and_matches_only_its_own_content() {
        let content = RecordContent { first: 7, count: 2, body: Bytes::from_static(b"a\nb") };
        for kind in [
            MessageKind::Events,
            MessageKind::Reference,
            MessageKind::Claim,
            MessageKind::Release,
            MessageKind::Gone,
        ] {
            let header = RecordHeader::new("s", 3, &content, kind);
            let headers = header.to_headers();
            assert_eq!(RecordHeader::parse(&headers), Some(header));
            assert_eq!(headers.get(NATS_MESSAGE_TTL).is_some(), kind == MessageKind::Gone);
            assert!(header.matches("s", &content));
            assert!(!header.matches("t", &content));
            let other = RecordContent { body: Bytes::from_static(b"a\nc"), ..content };
            assert!(!header.matches("s", &other));
            assert_eq!(header.head(), 8);
        }
        assert_eq!(RecordHeader::without_events("s", 1, 1, MessageKind::Claim).head(), 0);
    }

    #[test]
    fn foreign_headers_are_refused() {
        assert_eq!(RecordHeader::parse(&HeaderMap::new()), None);
        let mut headers = RecordHeader::without_events("s", 1, 1, MessageKind::Claim).to_headers();
        headers.insert(KIND_HEADER, "other");
        assert_eq!(RecordHeader::parse(&headers), None);
        headers.insert(KIND_HEADER, "claim");
        headers.insert(FIRST_HEADER, "0");
        assert_eq!(RecordHeader::parse(&headers), None);
    }
}
