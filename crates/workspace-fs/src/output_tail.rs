//! The tail of a terminal's output, as text.

use std::collections::VecDeque;

/// Keeps the last `limit` bytes of an output and decodes them on request.
#[derive(Debug)]
pub struct OutputTail {
    bytes: VecDeque<u8>,
    limit: usize,
    is_truncated: bool,
}

impl OutputTail {
    pub fn new(limit: usize) -> OutputTail {
        OutputTail { bytes: VecDeque::new(), limit, is_truncated: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let tail = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + tail.len()).saturating_sub(self.limit);
        self.is_truncated |= 0 < excess || tail.len() < bytes.len();
        self.bytes.drain(..excess);
        self.bytes.extend(tail);
    }

    /// The text of an output that may continue, and whether its beginning is missing. An incomplete
    /// character at the end is left out, because its remaining bytes may follow.
    pub fn partial_text(&self) -> (String, bool) {
        let bytes = self.complete_bytes();
        let end = bytes.len() - incomplete_char_len(&bytes);
        self.decode(&bytes[..end])
    }

    /// The text of an output that has ended, and whether its beginning is missing.
    pub fn final_text(&self) -> (String, bool) {
        self.decode(&self.complete_bytes())
    }

    /// The bytes from the first character that is complete.
    fn complete_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.bytes.iter().copied().collect();
        if self.is_truncated {
            let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            bytes.drain(..rest);
        }
        bytes
    }

    fn decode(&self, bytes: &[u8]) -> (String, bool) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        // A replacement character is longer than the invalid byte that it replaces.
        let start = text.ceil_char_boundary(text.len().saturating_sub(self.limit));
        (text[start..].to_owned(), self.is_truncated || 0 < start)
    }
}

/// The number of bytes at the end that are the beginning of a character.
fn incomplete_char_len(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(4)..];
    let invalid = last.utf8_chunks().last().map_or(&[][..], |it| it.invalid());
    let is_cut = std::str::from_utf8(invalid).err().is_some_and(|it| it.error_len().is_none());
    if is_cut { invalid.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(limit: usize, chunks: &[&[u8]]) -> OutputTail {
        let mut tail = OutputTail::new(limit);
        for chunk in chunks {
            tail.push(chunk);
        }
        tail
    }

    #[test]
    fn tail_starts_with_a_complete_character() {
        assert_eq!(tail(9, &[b"abc", b"def"]).final_text(), ("abcdef".to_owned(), false));
        assert_eq!(tail(4, &[b"abc", b"def"]).final_text(), ("cdef".to_owned(), true));
        assert_eq!(tail(4, &[b"abcdefgh"]).final_text(), ("efgh".to_owned(), true));
        assert_eq!(tail(4, &["a\u{20ac}bc".as_bytes()]).final_text(), ("bc".to_owned(), true));
        assert_eq!(tail(0, &[b"abc"]).final_text(), (String::new(), true));
    }

    #[test]
    fn incomplete_last_character_is_held_back_until_it_is_complete() {
        let euro = "\u{20ac}".as_bytes();
        let mut tail = tail(9, &[b"a", &euro[..2]]);
        assert_eq!(tail.partial_text().0, "a");
        assert_eq!(tail.final_text().0, "a\u{fffd}");
        tail.push(&euro[2..]);
        assert_eq!(tail.partial_text().0, "a\u{20ac}");
    }

    #[test]
    fn invalid_bytes_are_replaced_within_the_limit() {
        let (text, truncated) = tail(8, &[&[0xff; 8]]).partial_text();
        assert!(text.len() <= 8 && truncated && text.chars().all(|it| it == '\u{fffd}'), "{text}");
    }
}
