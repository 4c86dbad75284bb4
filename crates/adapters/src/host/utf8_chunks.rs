//! Decodes a stream of bytes in which a chunk may end within a character.

#[derive(Debug, Default)]
pub(super) struct Utf8Chunks {
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl Utf8Chunks {
    /// The text up to the last complete character. Invalid bytes are replaced.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::new();
        let mut from = 0;
        while let Err(error) = std::str::from_utf8(&self.rest[from..]) {
            let valid_to = from + error.valid_up_to();
            text.push_str(&String::from_utf8_lossy(&self.rest[from..valid_to]));
            let Some(invalid) = error.error_len() else {
                self.rest.drain(..valid_to);
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            from = valid_to + invalid;
        }
        text.push_str(&String::from_utf8_lossy(&self.rest[from..]));
        self.rest.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_is_complete_wherever_a_chunk_ends() {
        let text = "a\u{e4}\u{20ac}\u{1f600}z";
        for at in 0..=text.len() {
            let mut chunks = Utf8Chunks::default();
            let (one, other) = text.as_bytes().split_at(at);
            assert_eq!(chunks.push(one) + &chunks.push(other), text, "{at}");
        }
        let mut chunks = Utf8Chunks::default();
        assert_eq!(chunks.push(b"a\xffb\xe2\x82"), "a\u{fffd}b");
        assert_eq!(chunks.push(b"x"), "\u{fffd}x");
    }
}
