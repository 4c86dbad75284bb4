//! The end of what a terminal printed, as text.

use std::collections::VecDeque;

/// Keeps the last bytes, whatever they are; makes text of them when somebody looks.
#[derive(Debug)]
pub struct Screen {
    bytes: VecDeque<u8>,
    limit: usize,
    truncated: bool,
}

impl Screen {
    pub fn new(limit: usize) -> Screen {
        Screen { bytes: VecDeque::new(), limit, truncated: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.truncated |= 0 < excess || kept.len() < bytes.len();
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    /// The text, and whether its beginning is missing. `ended`: nothing more will come, so half a
    /// character at the end is no character.
    pub fn text(&self, ended: bool) -> (String, bool) {
        let mut bytes: Vec<u8> = self.bytes.iter().copied().collect();
        if self.truncated {
            // The first character may have lost its beginning.
            let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            bytes.drain(..rest);
        }
        if !ended {
            bytes.truncate(bytes.len() - unfinished(&bytes));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // What is no text takes more room once it is replaced.
        let from = text.ceil_char_boundary(text.len().saturating_sub(self.limit));
        (text[from..].to_owned(), self.truncated || 0 < from)
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(4)..];
    let invalid = last.utf8_chunks().last().map_or(&[][..], |it| it.invalid());
    let cut = std::str::from_utf8(invalid).err().is_some_and(|it| it.error_len().is_none());
    if cut { invalid.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(limit: usize, pieces: &[&[u8]]) -> Screen {
        let mut screen = Screen::new(limit);
        for piece in pieces {
            screen.push(piece);
        }
        screen
    }

    #[test]
    fn the_end_is_kept_and_begins_with_a_whole_character() {
        assert_eq!(screen(9, &[b"abc", b"def"]).text(true), ("abcdef".to_owned(), false));
        assert_eq!(screen(4, &[b"abc", b"def"]).text(true), ("cdef".to_owned(), true));
        assert_eq!(screen(4, &[b"abcdefgh"]).text(true), ("efgh".to_owned(), true));
        assert_eq!(screen(4, &["a\u{20ac}bc".as_bytes()]).text(true), ("bc".to_owned(), true));
        assert_eq!(screen(0, &[b"abc"]).text(true), (String::new(), true));
    }

    #[test]
    fn half_a_character_at_the_end_is_shown_when_its_other_half_has_come() {
        let euro = "\u{20ac}".as_bytes();
        let mut screen = screen(9, &[b"a", &euro[..2]]);
        assert_eq!(screen.text(false).0, "a");
        assert_eq!(screen.text(true).0, "a\u{fffd}");
        screen.push(&euro[2..]);
        assert_eq!(screen.text(false).0, "a\u{20ac}");
    }

    #[test]
    fn what_is_no_text_is_replaced_and_still_bounded() {
        let (text, truncated) = screen(8, &[&[0xff; 8]]).text(false);
        assert!(text.len() <= 8 && truncated && text.chars().all(|it| it == '\u{fffd}'), "{text}");
    }
}
