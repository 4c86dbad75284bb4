//! The few words that the worker and its clients exchange, found without reading the rest of a line.

use std::fmt::Write as _;

/// A notification of a session up to its number.
pub(super) fn note_head(session: &[u8]) -> Vec<u8> {
    let session = String::from_utf8_lossy(session);
    let mut head = String::from("{\"jsonrpc\":\"2.0\",\"method\":\"bench/note\"");
    if !session.is_empty() {
        let _ = write!(head, ",\"sessionId\":\"{session}\"");
    }
    let _ = write!(head, ",\"params\":{{\"sessionId\":\"{session}\",\"n\":");
    head.into_bytes()
}

pub(super) const NOTE_TAIL: &[u8] = b"\"}}";

/// The value of the first member of this name, a number or a string, as it stands there.
///
/// Good for what the worker and its clients say, which have no such name in a text of theirs.
pub fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // On the stack: this is done for every line.
    let mut key = [0; 16];
    key[0] = b'"';
    key[1..=name.len()].copy_from_slice(name.as_bytes());
    key[name.len() + 1..name.len() + 3].copy_from_slice(b"\":");
    let key = &key[..name.len() + 3];
    let value = &line[memchr::memmem::find(line, key)? + key.len()..];
    let end = match value.first()? {
        b'"' => memchr::memchr(b'"', &value[1..])? + 2,
        _ => value.iter().position(|it| matches!(it, b',' | b'}' | b']'))?,
    };
    Some(&value[..end])
}

/// The text of such a string, without its quotes.
pub fn string<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    field(line, name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

pub fn number(line: &[u8], name: &str) -> Option<u64> {
    str::from_utf8(field(line, name)?).ok()?.parse().ok()
}

/// Texts that differ in length and content, the same ones for the same seed.
pub fn tale(seed: u64) -> impl Iterator<Item = String> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // Mostly short, as words of a model are; sometimes what a tool prints.
        let times = match state >> 58 {
            0 => 400,
            1..4 => 40,
            _ => 1 + (state >> 40) % 4,
        };
        format!("{state:016x} \u{2014} ").repeat(usize::try_from(times).expect("it is small"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_wherever_they_stand() {
        let line = br#"{"jsonrpc":"2.0","id":"7-a","sessionId":"s","params":{"n":12,"text":"x"}}"#;
        assert_eq!(field(line, "id"), Some(&b"\"7-a\""[..]));
        assert_eq!(string(line, "sessionId"), Some(&b"s"[..]));
        assert_eq!(number(line, "n"), Some(12));
        assert_eq!(string(line, "text"), Some(&b"x"[..]));
        assert_eq!(field(line, "count"), None);
        assert_eq!(field(br#"{"id":7}"#, "id"), Some(&b"7"[..]));
    }

    #[test]
    fn a_tale_is_told_twice_in_the_same_words() {
        let once: Vec<_> = tale(7).take(100).collect();
        assert_eq!(once, tale(7).take(100).collect::<Vec<_>>());
        assert_ne!(once, tale(8).take(100).collect::<Vec<_>>());
        assert!(once.iter().any(|it| 400 < it.len()), "long ones occur");
    }
}
