//! Removes from foreign text what could control the terminal or mislead the reader.

use super::{
    cells::normalize_clusters,
    escape_sequence::{is_sequence_start, parse_sequence},
};
use jackfield_protocol::visible;
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar as _;

/// Columns between the stops of tabs. Markdown counts the same for its indentation.
const TAB_COLUMNS: usize = 4;

/// Text without control characters, escape sequences, marks that change the direction of text, and characters without
/// a shape. Tabs become spaces. Every kind of line break becomes `\n`, so that no part of a line covers another.
/// Each cluster of the result has the same width in all terminals: joined emoji are separated.
pub(crate) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain_byte) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut column = 0;
    while let Some(it) = rest.chars().next() {
        let mut length = it.len_utf8();
        match it {
            ' '..='~' => {
                length =
                    rest.bytes().position(|it| !(0x20..0x7f).contains(&it)).unwrap_or(rest.len());
                shown.push_str(&rest[..length]);
                column += length;
            }
            '\t' => {
                let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
                shown.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\r' if rest[1..].starts_with('\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                shown.push('\n');
                column = 0;
            }
            _ if is_sequence_start(it) => length = parse_sequence(rest).1,
            // Pictures of Braille dots use it as a space.
            '\u{2800}' => {
                shown.push(' ');
                column += 1;
            }
            _ if is_hidden(it) => {}
            _ => {
                let it = to_even_char(it);
                shown.push(it);
                column += it.width().unwrap_or(0);
            }
        }
        rest = &rest[length..];
    }
    Cow::Owned(normalize_clusters(shown))
}

/// The same on one line: line breaks become spaces.
pub(crate) fn sanitize_line(text: &str) -> Cow<'_, str> {
    let text = sanitize_text(text);
    if text.contains('\n') { Cow::Owned(text.trim_end().replace('\n', " ")) } else { text }
}

/// Text in which each character matters, such as a command that waits for permission: what cannot be seen is written
/// as an escape instead of being removed. Line breaks are kept, and tabs become spaces.
pub(crate) fn escape_hidden(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain_byte) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for piece in text.split_inclusive(['\n', '\t']) {
        let end = piece.trim_end_matches(['\n', '\t']).len();
        shown.push_str(&visible::line(&piece[..end]));
        shown.push_str(&piece[end..]);
    }
    // Removes the few characters that `visible` leaves and a terminal does not draw.
    Cow::Owned(sanitize_text(&shown).into_owned())
}

/// Some characters have a different width in different terminals: sound marks of half the width are zero, one or two
/// cells wide, their full form is always two. U+FFFD is not drawn by all of them.
fn to_even_char(it: char) -> char {
    match it {
        '\u{ff9e}' => '\u{309b}',
        '\u{ff9f}' => '\u{309c}',
        char::REPLACEMENT_CHARACTER => '?',
        _ => it,
    }
}

fn is_plain_byte(it: u8) -> bool {
    it == b'\n' || (0x20..0x7f).contains(&it)
}

/// What a person cannot see anyway, and what terminals draw differently: variation selectors, marks of formats, and
/// numbers that are no characters.
fn is_hidden(it: char) -> bool {
    visible::is_hidden(it)
        || matches!(it,
            '\u{fe00}'..='\u{fe0f}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{fdd0}'..='\u{fdef}')
        || u32::from(it) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_hidden_characters_are_removed() {
        for (text, expected) in [
            ("plain\ntext", "plain\ntext"),
            ("a\u{0}b\u{8}\u{8}c\u{7f}d", "abcd"),
            ("\u{1b}[2J\u{1b}[Hcleared", "cleared"),
            ("\u{1b}]52;c;cm0=\u{7}x", "x"),
            ("\u{1b}]0;never closed", "0;never closed"),
            ("\u{9d}0;owned\u{9c}\u{9b}2Jx", "x"),
            ("safe\u{202e}txt.exe\u{202c}", "safetxt.exe"),
            ("pay\u{200b}pal\u{2060}\u{feff}", "paypal"),
            ("a\r\nb\rc\u{2028}d\u{85}e\u{b}f", "a\nb\nc\nd\ne\nf"),
            ("a\tb\n\tc\n漢\td", "a   b\n    c\n漢  d"),
            ("⠁\u{2800}⠁", "⠁ ⠁"),
            ("a\u{fffe}b\u{10ffff}c", "abc"),
        ] {
            assert_eq!(sanitize_text(text), expected, "{text:?}");
        }
        assert!(matches!(sanitize_text("plain\ntext"), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(sanitize_line("one\ntwo\r\nthree\n"), "one two three");
        assert_eq!(sanitize_line("one"), "one");
    }

    #[test]
    fn hidden_characters_of_a_command_are_shown_as_escapes() {
        assert_eq!(
            escape_hidden("rm\u{200b} -rf\r/\u{1b}[8m\nls"),
            r"rm\u{200b} -rf\r/\x1b[8m
ls"
        );
        assert_eq!(escape_hidden("a\tb\u{202e}c"), r"a   b\u{202e}c");
    }
}
