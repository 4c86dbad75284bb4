//! Whether what stands behind a telling name is a secret, and where it ends.

use super::{VALUE_BYTES_MIN, names::NameKind};
use std::ops::Range;

/// The part of a word that is a secret, and the quote that ends it if it continues after the word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundSecret {
    pub(super) hidden: Range<usize>,
    pub(super) until: Option<char>,
}

/// Of words of programs, so many without a digit are no word.
const LONG: usize = 20;
const TOKEN_BYTES_MIN: usize = 8;
/// Whether a value is one is decided by so many of its first bytes, so that many names in one long
/// word do not make the search quadratic.
const LOOKED_AT_MAX: usize = 256;
const SCHEMES: [&str; 10] = [
    "bearer",
    "basic",
    "token",
    "digest",
    "negotiate",
    "apikey",
    "aws4-hmac-sha256",
    "ssws",
    "splunk",
    "geniekey",
];

/// The value that begins at `from`; `spaced` if a space stood before it.
pub(super) fn secret_at(
    word: &str,
    from: usize,
    kind: NameKind,
    spaced: bool,
) -> Option<FoundSecret> {
    let rest = &word[from..];
    let opened = rest.trim_start_matches('\\');
    let quote = opened.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let start = from + (rest.len() - opened.len()) + usize::from(quote.is_some());
    let inner = &word[start..];
    let Some(quote) = quote else {
        let looked_at = &inner[..inner.floor_char_boundary(LOOKED_AT_MAX)];
        let value = &looked_at[..looked_at.find(|c| ends(c, kind)).unwrap_or(looked_at.len())];
        let fits = accepts(value, kind, ValuePlace { quoted: false, spaced });
        let len = || inner.find(|c| ends(c, kind)).unwrap_or(inner.len());
        return fits.then(|| FoundSecret { hidden: start..start + len(), until: None });
    };
    if let Some(len) = inner.find(quote) {
        let value = inner[..len].trim_end_matches('\\');
        let fits = accepts(value, kind, ValuePlace { quoted: true, spaced });
        return fits.then(|| FoundSecret { hidden: start..start + value.len(), until: None });
    }
    // Words behind a quote: a pass phrase may have several, what programs call a token has not.
    let phrase = matches!(
        kind,
        NameKind::Variable | NameKind::Password | NameKind::Header | NameKind::Cookie
    );
    if !phrase {
        let fits = accepts(inner, kind, ValuePlace { quoted: true, spaced });
        return fits.then_some(FoundSecret { hidden: start..word.len(), until: None });
    }
    let fits = !is_placeholder(inner) && !is_scheme(inner);
    fits.then_some(FoundSecret { hidden: start..word.len(), until: Some(quote) })
}

fn ends(c: char, kind: NameKind) -> bool {
    match kind {
        NameKind::Variable => matches!(c, '"' | '\'' | '`' | ';' | '&' | '|' | '\\'),
        NameKind::Cookie => matches!(c, '"' | '\'' | '`' | '\\'),
        _ => matches!(c, '"' | '\'' | '`' | ',' | ';' | '&' | '|' | ')' | ']' | '}' | '>' | '\\'),
    }
}

#[derive(Clone, Copy)]
struct ValuePlace {
    quoted: bool,
    spaced: bool,
}

/// Whether the whole value of a quoted member is one.
pub(super) fn accepts_quoted(value: &str, kind: NameKind) -> bool {
    accepts(value, kind, ValuePlace { quoted: true, spaced: false })
}

fn accepts(value: &str, kind: NameKind, place: ValuePlace) -> bool {
    match kind {
        NameKind::Header | NameKind::Cookie => {
            return !value.is_empty() && !is_scheme(value) && !is_placeholder(value);
        }
        NameKind::Encoded => return is_encoded_login(value),
        NameKind::Variable | NameKind::Password | NameKind::Token => {}
    }
    if value.len() < VALUE_BYTES_MIN || is_placeholder(value) {
        return false;
    }
    let digit = value.contains(|c: char| c.is_ascii_digit());
    let letter = value.contains(|c: char| c.is_ascii_alphabetic());
    match kind {
        NameKind::Variable => place.quoted || !place.spaced || is_plain(value),
        NameKind::Password => {
            let strong = digit && letter || value.ends_with('=') || is_mixed(value);
            place.quoted || is_plain(value) && (!place.spaced || strong)
        }
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

/// Capitals, small letters and a sign among them.
fn is_mixed(value: &str) -> bool {
    let inner = value.trim_end_matches(['.', '!', '?', ':']);
    let has = |test: fn(char) -> bool| inner.contains(test);
    has(|c| c.is_ascii_uppercase())
        && has(|c| c.is_ascii_lowercase())
        && has(|c| "!@#%^*?".contains(c))
}

/// `$NAME`, `<your key>`, `{{key}}`, `%NAME%`, `***`, `xxxxxxxx`: where a secret would stand.
pub(super) fn is_placeholder(value: &str) -> bool {
    let first = value.chars().next().unwrap_or('*');
    let is_byte = || value[1..].bytes().take_while(u8::is_ascii_hexdigit).take(2).count() == 2;
    match first {
        '$' | '<' | '{' | '*' => true,
        '%' => !is_byte(),
        _ => value.chars().all(|c| c == first),
    }
}

/// A user and a password in base64, as in a Basic header: printable, with a colon between them.
pub(super) fn is_encoded_login(value: &str) -> bool {
    let value = &value[..value.floor_char_boundary(LOOKED_AT_MAX)];
    let digits = value.trim_end_matches('=').bytes();
    if value.len() < TOKEN_BYTES_MIN || 2 < value.len() - digits.len() {
        return false;
    }
    let (mut bits, mut count, mut colon) = (0u32, 0, false);
    for digit in digits {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if 8 <= count {
            count -= 8;
            let byte = bits >> count & 0xff;
            colon |= byte == u32::from(b':');
            if !(0x20..0x7f).contains(&byte) {
                return false;
            }
        }
    }
    colon
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
