//! Whether what stands behind a telling name is a secret, and where it ends.

use super::{VALUE_BYTES_MIN, names::Kind};
use std::ops::Range;

/// What of a word is a secret, and whether it goes on behind the word, up to this quote.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Secret {
    pub(super) hidden: Range<usize>,
    pub(super) until: Option<char>,
}

/// Of words of programs, so many without a digit are no word.
const LONG: usize = 20;
const TOKEN_BYTES_MIN: usize = 8;
const SCHEMES: [&str; 7] =
    ["bearer", "basic", "token", "digest", "negotiate", "apikey", "aws4-hmac-sha256"];

/// The value that begins at `from`; `spaced` if a space stood before it.
pub(super) fn secret_at(word: &str, from: usize, kind: Kind, spaced: bool) -> Option<Secret> {
    let rest = &word[from..];
    let opened = rest.trim_start_matches('\\');
    let quote = opened.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let start = from + (rest.len() - opened.len()) + usize::from(quote.is_some());
    let inner = &word[start..];
    let Some(quote) = quote else {
        let len = inner.find(|c| ends(c, kind)).unwrap_or(inner.len());
        let fits = accepts(&inner[..len], kind, Place { quoted: false, spaced });
        return fits.then(|| Secret { hidden: start..start + len, until: None });
    };
    if let Some(len) = inner.find(quote) {
        let value = inner[..len].trim_end_matches('\\');
        let fits = accepts(value, kind, Place { quoted: true, spaced });
        return fits.then(|| Secret { hidden: start..start + value.len(), until: None });
    }
    // Words behind a quote: a pass phrase may have several, what programs call a token has not.
    let phrase = matches!(kind, Kind::Variable | Kind::Password | Kind::Header | Kind::Cookie);
    if !phrase {
        let fits = accepts(inner, kind, Place { quoted: true, spaced });
        return fits.then_some(Secret { hidden: start..word.len(), until: None });
    }
    let fits = !is_placeholder(inner) && !is_scheme(inner);
    fits.then_some(Secret { hidden: start..word.len(), until: Some(quote) })
}

fn ends(c: char, kind: Kind) -> bool {
    match kind {
        Kind::Variable => matches!(c, '"' | '\'' | '`' | ';' | '&' | '|' | '\\'),
        Kind::Cookie => matches!(c, '"' | '\'' | '`' | '\\'),
        _ => matches!(c, '"' | '\'' | '`' | ',' | ';' | '&' | '|' | ')' | ']' | '}' | '>' | '\\'),
    }
}

#[derive(Clone, Copy)]
struct Place {
    quoted: bool,
    spaced: bool,
}

fn accepts(value: &str, kind: Kind, place: Place) -> bool {
    if kind == Kind::Header || kind == Kind::Cookie {
        return !value.is_empty() && !is_scheme(value) && !is_placeholder(value);
    }
    if value.len() < VALUE_BYTES_MIN || is_placeholder(value) {
        return false;
    }
    let digit = value.contains(|c: char| c.is_ascii_digit());
    let letter = value.contains(|c: char| c.is_ascii_alphabetic());
    match kind {
        Kind::Variable => place.quoted || !place.spaced || is_plain(value),
        Kind::Password => place.quoted || is_plain(value) && (!place.spaced || digit && letter),
        _ if !is_plain(value) => false,
        _ => digit && letter && TOKEN_BYTES_MIN <= value.len() || looks_random(value),
    }
}

/// Long, and not the path or the call that programs write.
fn looks_random(value: &str) -> bool {
    LONG <= value.len() && !value.contains(['.', '/', ':'])
}

fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "_-+/=.~!@#%^*:?".contains(c))
}

/// `$NAME`, `<your key>`, `{{key}}`, `***`, `xxxxxxxx`: where a secret would stand.
fn is_placeholder(value: &str) -> bool {
    let first = value.chars().next().unwrap_or('*');
    matches!(first, '$' | '<' | '{' | '*' | '%') || value.chars().all(|c| c == first)
}

pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|it| word.eq_ignore_ascii_case(it))
}

/// What stands behind `Bearer` without a header: prose has bearers too.
pub(super) fn is_credential(value: &str) -> bool {
    let telling = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | '+' | '/' | '=');
    let inner = value.trim_end_matches(['.', '!', '?', ':']);
    is_plain(inner) && (LONG <= inner.len() || 4 <= inner.len() && inner.contains(telling))
}
