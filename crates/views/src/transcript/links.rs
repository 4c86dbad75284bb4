//! Decides whether a link in foreign Markdown leads to a page or to something that a viewer would run.

/// Schemes whose addresses are run or rendered as a page, and schemes that wrap another address.
const REFUSED_SCHEMES: [&str; 10] = [
    "javascript",
    "vbscript",
    "data",
    "livescript",
    "jscript",
    "mocha",
    "blob",
    "filesystem",
    "view-source",
    "jar",
];
/// Longer than any refused scheme.
const SCHEME_CHARS_MAX: usize = 16;
/// The number of characters searched for the end of a scheme. An address that needs more is refused.
const SEARCHED_CHARS_MAX: usize = 1_024;

/// Whether the address at the start of `text` has a refused scheme, as a browser reads it: entities and
/// backslashes are resolved, control characters and spaces are ignored.
pub(super) fn is_refused(text: &str) -> bool {
    let mut scheme = String::new();
    let mut rest = text.trim_start_matches([' ', '\n', '>']);
    rest = rest.strip_prefix('<').unwrap_or(rest);
    for _ in 0..SEARCHED_CHARS_MAX {
        let Some((it, length)) = first_char(rest) else { return false };
        rest = &rest[length..];
        match it {
            ':' => return REFUSED_SCHEMES.contains(&scheme.as_str()),
            '+' | '-' | '.' => scheme.push(it),
            it if it.is_ascii_alphanumeric() => scheme.push(it.to_ascii_lowercase()),
            it if is_ignored(it) => {}
            _ => return false,
        }
        if SCHEME_CHARS_MAX < scheme.len() {
            return false;
        }
    }
    true
}

/// Whether a browser ignores this character in an address, or a reader cannot see it.
fn is_ignored(it: char) -> bool {
    let is_format =
        matches!(it, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    it.is_control() || it.is_whitespace() || it == '\u{fffd}' || is_format
}

/// The first character as a Markdown reader decodes it, and its length in bytes.
fn first_char(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let escaped = |it: char| (it, 1 + it.len_utf8());
    Some(match first {
        '\\' => match text[1..].chars().next().filter(char::is_ascii_punctuation) {
            Some(it) => escaped(it),
            None => (first, 1),
        },
        '&' => decode_entity(text).unwrap_or((first, 1)),
        _ => (first, first.len_utf8()),
    })
}

/// Decodes an entity: a number, or one of the names that matter in a scheme.
fn decode_entity(text: &str) -> Option<(char, usize)> {
    for (name, it) in [("&colon;", ':'), ("&Tab;", '\t'), ("&NewLine;", '\n'), ("&nbsp;", ' ')] {
        if text.starts_with(name) {
            return Some((it, name.len()));
        }
    }
    let number = text.strip_prefix("&#")?;
    let hex = number.strip_prefix(['x', 'X']);
    let (digits, radix) = hex.map_or((number, 10), |it| (it, 16));
    let length = digits.find(|it: char| !it.is_digit(radix)).unwrap_or(digits.len());
    let digit = |it: char| it.to_digit(radix).unwrap_or(0);
    let add = |sum: u32, it: u32| sum.saturating_mul(radix).saturating_add(it);
    let code = digits[..length].chars().map(digit).fold(0, add);
    let end = text.len() - digits.len() + length;
    // Browsers accept an entity without its semicolon.
    let end = end + usize::from(text[end..].starts_with(';'));
    Some((char::from_u32(code).unwrap_or('\u{fffd}'), end)).filter(|_| 0 < length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_scheme_is_recognized_in_every_spelling() {
        for refused in [
            "javascript:x",
            "JavaScript:x",
            "  \n> javascript:x",
            "<javascript:x>",
            "java\tscript:x",
            "java\u{fffd}script:x",
            "\u{1}javascript:x",
            "java\u{200b}script:x",
            "javascript\\:x",
            "javascript&colon;x",
            "java&Tab;script:x",
            "java&NewLine;script:x",
            "&#106;avascript:x",
            "&#x6A;avascript:x",
            "&#0000106avascript&#58x",
            "vbscript:x",
            "data:text/html,x",
            "DATA&#x3a;x",
            "view-source:javascript:x",
        ] {
            assert!(is_refused(refused), "{refused}");
        }
        for accepted in [
            "",
            "https://a.b/javascript:x",
            "mailto:me@a.b",
            "#data:x",
            "/data:x",
            "database:x",
            "src/main.rs:12",
            "main.rs:12",
            "?q=data:x",
            "javascript",
            "javascript%3Ax",
            "a&amp;b:c",
        ] {
            assert!(!is_refused(accepted), "{accepted}");
        }
        assert!(is_refused(&format!("java{}script:x", "&Tab;".repeat(5_000))));
    }
}
