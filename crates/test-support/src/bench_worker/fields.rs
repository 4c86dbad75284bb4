//! Finds and writes the few fields that the worker and its clients exchange, without parsing whole lines.

use std::fmt::Write as _;

/// The start of a notification, up to its number.
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

/// The raw value of the first member with this name, a number or a string.
///
/// Only for messages of the worker and its clients, whose texts contain no member names.
pub fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // On the stack, because this runs for every line.
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

/// The text of a string member, without its quotes.
pub fn string<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    field(line, name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

pub fn number(line: &[u8], name: &str) -> Option<u64> {
    str::from_utf8(field(line, name)?).ok()?.parse().ok()
}

/// Texts that differ in length and content; the same seed gives the same texts.
pub fn varied_texts(seed: u64) -> impl Iterator<Item = String> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // Mostly short, like chunks of a model; sometimes long, like the output of a tool.
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
    fn fields_are_found_at_any_position() {
        let line = br#"{"jsonrpc":"2.0","id":"7-a","sessionId":"s","params":{"n":12,"text":"x"}}"#;
        assert_eq!(field(line, "id"), Some(&b"\"7-a\""[..]));
        assert_eq!(string(line, "sessionId"), Some(&b"s"[..]));
        assert_eq!(number(line, "n"), Some(12));
        assert_eq!(string(line, "text"), Some(&b"x"[..]));
        assert_eq!(field(line, "count"), None);
        assert_eq!(field(br#"{"id":7}"#, "id"), Some(&b"7"[..]));
    }

    #[test]
    fn same_seed_gives_the_same_texts() {
        let once: Vec<_> = varied_texts(7).take(100).collect();
        assert_eq!(once, varied_texts(7).take(100).collect::<Vec<_>>());
        assert_ne!(once, varied_texts(8).take(100).collect::<Vec<_>>());
        assert!(once.iter().any(|it| 400 < it.len()), "long ones occur");
    }
}
