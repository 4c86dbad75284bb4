//! Where an event stands in its stream, as its `id:` says it and `Last-Event-ID` brings it back.

use std::fmt;

/// In a session's stream: the last seq told so far, and how many frames came behind it. In the
/// stream of the connection itself, where nothing has a seq: a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub(super) seq: u64,
    pub(super) nth: u64,
}

impl Place {
    pub(super) fn new(seq: u64, nth: u64) -> Place {
        Place { seq, nth }
    }

    /// The place of the next frame, which has this seq of its own or none.
    #[must_use]
    pub(super) fn next(self, seq: Option<u64>) -> Place {
        match seq {
            Some(seq) if self.seq != seq => Place { seq, nth: 0 },
            _ => Place { seq: self.seq, nth: self.nth + 1 },
        }
    }

    /// Reads what a client sent back; `None` if we cannot have written it.
    pub(super) fn read(text: &str) -> Option<Place> {
        let (seq, nth) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let number = |it: &str| {
            // Not `+7`, and nothing that overflows further on.
            let plain = it.bytes().all(|byte| byte.is_ascii_digit());
            it.parse::<u64>().ok().filter(|it| plain && *it < 1 << 53)
        };
        Some(Place { seq: number(seq)?, nth: number(nth)? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.nth)
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for place in [Place::new(0, 0), Place::new(17, 3)] {
            assert_eq!(Place::read(&place.to_string()), Some(place));
        }
        assert_eq!(Place::read("7"), Some(Place::new(7, 0)));
        for text in ["", "x", "1.", ".1", "1.2.3", "-1.0", "+1.0", "1.x", "18446744073709551615"] {
            assert_eq!(Place::read(text), None, "{text}");
        }
    }

    #[test]
    fn frames_without_a_seq_are_counted_behind_the_last_one() {
        let first = Place::default().next(Some(3));
        assert_eq!(first, Place::new(3, 0));
        assert_eq!(first.next(None), Place::new(3, 1));
        assert_eq!(first.next(Some(3)), Place::new(3, 1));
        assert_eq!(first.next(None).next(Some(5)), Place::new(5, 0));
        assert_eq!(first.next(Some(1)), Place::new(1, 0), "told again from an earlier one");
    }
}
