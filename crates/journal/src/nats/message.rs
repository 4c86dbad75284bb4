//! One message of a log: consecutive events, or a fact about the log itself. What a message is stands in
//! its headers; the body has lines and nothing else.

use crate::record::{Piece, checksum};
use async_nats::{HeaderMap, header::NATS_MESSAGE_TTL};
use std::str::FromStr;

/// The number of the first event; without events, of the one that comes next.
const FIRST: &str = "S";
/// How many events there are.
const COUNT: &str = "N";
/// The epoch of whoever wrote it.
const EPOCH: &str = "E";
const CHECKSUM: &str = "C";
/// What it is, if not events.
const KIND: &str = "K";
/// Who wrote it, where writers have names.
const OWNER: &str = "O";
/// Of a claim: whom the log was taken from.
const FROM: &str = "F";
/// How long the servers keep what says that a stream was deleted: longer than anybody is away who might
/// still write to it. After that its writer is fenced by the place it expects to write behind.
const GONE_FOR: &str = "720h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Events,
    /// One event that is kept elsewhere; the line says how long it is.
    Reference,
    /// Somebody became the writer.
    Claim,
    /// The writer has let go of the stream: whoever wants may claim it.
    Release,
    /// The stream was deleted. This is all that is left, so that its last writer stays fenced.
    Gone,
}

/// What the headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) kind: Kind,
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) count: u32,
    checksum: u32,
}

impl Heading {
    pub(super) fn of(stream: &str, epoch: u64, piece: &Piece, kind: Kind) -> Heading {
        let checksum = checksum(stream, epoch, piece, kind == Kind::Reference);
        Heading { kind, epoch, first: piece.first, count: piece.count, checksum }
    }

    /// A fact about the log; the next event will be `first`.
    pub(super) fn fact(stream: &str, epoch: u64, first: u64, kind: Kind) -> Heading {
        let nothing = Piece { first, count: 0, body: bytes::Bytes::new() };
        Heading::of(stream, epoch, &nothing, kind)
    }

    /// The number of the last event once this is written.
    pub(super) fn head(&self) -> u64 {
        (self.first - 1) + u64::from(self.count)
    }

    /// Whether this and the body are what was written to this stream.
    pub(super) fn fits(&self, stream: &str, piece: &Piece) -> bool {
        *self == Heading::of(stream, self.epoch, piece, self.kind)
    }

    pub(super) fn to_headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(FIRST, self.first.to_string());
        headers.insert(COUNT, self.count.to_string());
        headers.insert(EPOCH, self.epoch.to_string());
        headers.insert(CHECKSUM, self.checksum.to_string());
        let kind = match self.kind {
            Kind::Events => return headers,
            Kind::Reference => "reference",
            Kind::Claim => "claim",
            Kind::Release => "release",
            Kind::Gone => "gone",
        };
        headers.insert(KIND, kind);
        if self.kind == Kind::Gone {
            headers.insert(NATS_MESSAGE_TTL, GONE_FOR);
        }
        headers
    }

    /// None if they are not ours.
    pub(super) fn parse(headers: &HeaderMap) -> Option<Heading> {
        let kind = match headers.get(KIND).map(async_nats::HeaderValue::as_str) {
            None => Kind::Events,
            Some("reference") => Kind::Reference,
            Some("claim") => Kind::Claim,
            Some("release") => Kind::Release,
            Some("gone") => Kind::Gone,
            Some(_) => return None,
        };
        let first = number(headers, FIRST)?;
        if first == 0 {
            return None;
        }
        let count = number(headers, COUNT)?;
        let (epoch, checksum) = (number(headers, EPOCH)?, number(headers, CHECKSUM)?);
        Some(Heading { kind, epoch, first, count, checksum })
    }
}

/// Who owns the log if this is its last message.
pub(super) fn owner(headers: &HeaderMap) -> Option<&str> {
    headers.get(OWNER).map(async_nats::HeaderValue::as_str)
}

/// Whom the log was taken from, if this is its last message: whoever took it has written nothing yet.
pub(super) fn taken_from(headers: &HeaderMap) -> Option<&str> {
    headers.get(FROM).map(async_nats::HeaderValue::as_str)
}

pub(super) fn take_from(headers: &mut HeaderMap, owner: &str) {
    headers.insert(FROM, owner);
}

pub(super) fn sign(headers: &mut HeaderMap, owner: &str) {
    headers.insert(OWNER, owner);
}

/// A header that is a number.
pub(super) fn number<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_heading_is_read_as_it_was_written_and_fits_its_own_body_alone() {
        let piece = Piece { first: 7, count: 2, body: Bytes::from_static(b"a\nb") };
        for kind in [Kind::Events, Kind::Reference, Kind::Claim, Kind::Release, Kind::Gone] {
            let heading = Heading::of("s", 3, &piece, kind);
            let headers = heading.to_headers();
            assert_eq!(Heading::parse(&headers), Some(heading));
            assert_eq!(headers.get(NATS_MESSAGE_TTL).is_some(), kind == Kind::Gone);
            assert!(heading.fits("s", &piece));
            assert!(!heading.fits("t", &piece));
            let other = Piece { body: Bytes::from_static(b"a\nc"), ..piece };
            assert!(!heading.fits("s", &other));
            assert_eq!(heading.head(), 8);
        }
        assert_eq!(Heading::fact("s", 1, 1, Kind::Claim).head(), 0);
    }

    #[test]
    fn headers_of_others_are_none() {
        assert_eq!(Heading::parse(&HeaderMap::new()), None);
        let mut headers = Heading::fact("s", 1, 1, Kind::Claim).to_headers();
        headers.insert(KIND, "other");
        assert_eq!(Heading::parse(&headers), None);
        headers.insert(KIND, "claim");
        headers.insert(FIRST, "0");
        assert_eq!(Heading::parse(&headers), None);
    }
}
