//! How far a reader has heard a stream, as the `id:` of an event says it and `Last-Event-ID` brings it
//! back.

use std::fmt;

/// In a session's stream: the last seq told so far, and how many frames came behind it. In the
/// stream of the connection itself, where nothing has a seq: a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cursor {
    pub(super) seq: u64,
    pub(super) nth: u64,
}

impl Cursor {
    pub(super) fn new(seq: u64, nth: u64) -> Cursor {
        Cursor { seq, nth }
    }

    /// The cursor of the next frame, which has this seq of its own or none.
    #[must_use]
    pub(super) fn next(self, seq: Option<u64>) -> Cursor {
        match seq {
            Some(seq) if self.seq != seq => Cursor { seq, nth: 0 },
            _ => Cursor { seq: self.seq, nth: self.nth + 1 },
        }
    }

    /// Reads what a client sent back; `None` if we cannot have written it.
    pub(super) fn read(text: &str) -> Option<Cursor> {
        let (seq, nth) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let number = |it: &str| {
            // Not `+7`, and nothing that overflows further on.
            let plain = it.bytes().all(|byte| byte.is_ascii_digit());
            it.parse::<u64>().ok().filter(|it| plain && *it < 1 << 53)
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
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [Cursor::new(0, 0), Cursor::new(17, 3)] {
            assert_eq!(Cursor::read(&cursor.to_string()), Some(cursor));
        }
        assert_eq!(Cursor::read("7"), Some(Cursor::new(7, 0)));
        for text in ["", "x", "1.", ".1", "1.2.3", "-1.0", "+1.0", "1.x", "18446744073709551615"] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }

    #[test]
    fn frames_without_a_seq_are_counted_behind_the_last_one() {
        let first = Cursor::default().next(Some(3));
        assert_eq!(first, Cursor::new(3, 0));
        assert_eq!(first.next(None), Cursor::new(3, 1));
        assert_eq!(first.next(Some(3)), Cursor::new(3, 1));
        assert_eq!(first.next(None).next(Some(5)), Cursor::new(5, 0));
        assert_eq!(first.next(Some(1)), Cursor::new(1, 0), "told again from an earlier one");
    }
}
