//! Plain text to JSON string and back.

use memchr::memchr;
use std::borrow::Cow;

/// What a JSON string says; borrowed unless it holds escapes. `None` if it is no string, or one
/// that is no Unicode text (half of a surrogate pair, which JSON's grammar lets pass).
pub(crate) fn unquote(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Appends `text` as a JSON string; says whether that took escapes.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| 0x20 <= byte && byte != b'"' && byte != b'\\');
    if is_plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("writing to memory cannot fail");
    }
    !is_plain
}

#[cfg(test)]
mod tests {
    use super::{quote, unquote};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_quoted_is_unquoted_to_itself(text in any::<String>()) {
            let mut json = Vec::new();
            let escaped = quote(&mut json, &text);
            let json = String::from_utf8(json).unwrap();
            prop_assert_eq!(escaped, json.contains('\\'));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), &*text);
            prop_assert_eq!(unquote(&json).unwrap(), text);
        }
    }

    #[test]
    fn every_ascii_character_is_quoted_as_serde_quotes_it() {
        for byte in 0..0x80_u8 {
            let text = char::from(byte).to_string();
            let mut json = Vec::new();
            quote(&mut json, &text);
            assert_eq!(json, serde_json::to_vec(&text).unwrap());
        }
    }

    #[test]
    fn what_is_no_text_is_not_unquoted() {
        for json in ["7", "null", "\"", r#""\ud800""#, r#""\ud800x""#, ""] {
            assert_eq!(unquote(json), None, "{json}");
        }
    }
}
