//! The position of a reader in a stream, which is the `id:` of an event and returns in
//! `Last-Event-ID`.

use std::fmt;

/// In a session's stream: the last sequence number, and the number of frames after it. In the
/// stream of the connection itself, where frames have no sequence number: a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cursor {
    pub(super) seq: u64,
    pub(super) nth: u64,
}

impl Cursor {
    pub(super) fn new(seq: u64, nth: u64) -> Cursor {
        Cursor { seq, nth }
    }

    /// The cursor of the next frame, which has this sequence number or none.
    #[must_use]
    pub(super) fn next(self, seq: Option<u64>) -> Cursor {
        match seq {
            Some(seq) if self.seq != seq => Cursor { seq, nth: 0 },
            _ => Cursor { seq: self.seq, nth: self.nth + 1 },
        }
    }

    /// Parses the cursor that a client sent; `None` if it is invalid.
    pub(super) fn parse(text: &str) -> Option<Cursor> {
        let (seq, nth) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let number = |it: &str| {
            // Refuses `+7`, and numbers that overflow later.
            let is_plain = it.bytes().all(|byte| byte.is_ascii_digit());
            it.parse::<u64>().ok().filter(|it| is_plain && *it < 1 << 53)
        };
        Some(Cursor { seq: number(seq)?, nth: number(nth)? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.nth)
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn formatted_cursor_is_parsed_again() {
        for cursor in [Cursor::new(0, 0), Cursor::new(17, 3)] {
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        assert_eq!(Cursor::parse("7"), Some(Cursor::new(7, 0)));
        for text in ["", "x", "1.", ".1", "1.2.3", "-1.0", "+1.0", "1.x", "18446744073709551615"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn frames_without_a_sequence_number_are_counted() {
        let first = Cursor::default().next(Some(3));
        assert_eq!(first, Cursor::new(3, 0));
        assert_eq!(first.next(None), Cursor::new(3, 1));
        assert_eq!(first.next(Some(3)), Cursor::new(3, 1));
        assert_eq!(first.next(None).next(Some(5)), Cursor::new(5, 0));
        assert_eq!(first.next(Some(1)), Cursor::new(1, 0), "replayed from an earlier one");
    }
}
