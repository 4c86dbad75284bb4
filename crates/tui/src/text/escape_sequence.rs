//! The extent of escape sequences of terminals (ECMA-48) in text.

/// A sequence at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeSequence<'a> {
    /// Colors and styles (SGR), with its parameters: `1;31`.
    Style(&'a str),
    Other,
}

/// Whether a sequence starts with this character: `ESC`, or a control character of eight bits.
pub(super) fn is_sequence_start(it: char) -> bool {
    matches!(it, '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}'..='\u{9f}')
}

/// The sequence at the start of `text` and its length in bytes; `text` starts with a character for which
/// `is_sequence_start` is true. If the end of a string (OSC, DCS, …) is missing, only its introducer is the sequence:
/// the rest of the text stays visible.
pub(super) fn parse_sequence(text: &str) -> (EscapeSequence<'_>, usize) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or('\u{1b}');
    let start = first.len_utf8();
    if first != '\u{1b}' {
        return match first {
            '\u{9b}' => parse_control_sequence(text, start),
            _ => (EscapeSequence::Other, string_end(text, start)),
        };
    }
    match chars.next() {
        Some('[') => parse_control_sequence(text, start + 1),
        Some(']' | 'P' | 'X' | '^' | '_') => (EscapeSequence::Other, string_end(text, start + 1)),
        Some(_) => (EscapeSequence::Other, short_escape_end(text, start)),
        None => (EscapeSequence::Other, start),
    }
}

/// `CSI`: parameters, intermediates and a final character. A sequence that is cut or wrong ends before the first
/// character that cannot belong to it.
fn parse_control_sequence(text: &str, start: usize) -> (EscapeSequence<'_>, usize) {
    let bytes = text.as_bytes();
    let parameters_end = skip_while(bytes, start, |it| (0x30..=0x3f).contains(&it));
    let end = skip_while(bytes, parameters_end, |it| (0x20..=0x2f).contains(&it));
    match bytes.get(end) {
        Some(b'm') if end == parameters_end => {
            (EscapeSequence::Style(&text[start..parameters_end]), end + 1)
        }
        Some(0x40..=0x7e) => (EscapeSequence::Other, end + 1),
        _ => (EscapeSequence::Other, end),
    }
}

/// A string ends with `BEL` or `ST`. Any other control character but white space cancels it.
fn string_end(text: &str, start: usize) -> usize {
    let is_end = |it: char| it.is_control() && !matches!(it, '\t' | '\n' | '\r');
    let Some(length) = text[start..].find(is_end) else { return start };
    let end = start + length;
    let rest = &text[end..];
    match rest.chars().next() {
        Some(it @ ('\u{7}' | '\u{9c}')) => end + it.len_utf8(),
        Some('\u{1b}') if rest.as_bytes().get(1) == Some(&b'\\') => end + 2,
        _ => start,
    }
}

/// `ESC`, intermediates and a final character, such as the choice of a character set.
fn short_escape_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let end = skip_while(bytes, start, |it| (0x20..=0x2f).contains(&it));
    match bytes.get(end) {
        Some(0x30..=0x7e) => end + 1,
        _ => end,
    }
}

fn skip_while(bytes: &[u8], start: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|&it| !is_skipped(it)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_end_where_a_terminal_ends_them() {
        use EscapeSequence::{Other, Style};
        for (text, expected) in [
            ("\u{1b}[1;31mred", (Style("1;31"), 7)),
            ("\u{1b}[mx", (Style(""), 3)),
            ("\u{9b}31mx", (Style("31"), 5)),
            ("\u{1b}[?25lx", (Other, 6)),
            ("\u{1b}[0 qx", (Other, 5)),
            ("\u{1b}[12", (Other, 4)),
            ("\u{1b}[1é", (Other, 3)),
            ("\u{1b}]0;title\u{7}x", (Other, 10)),
            ("\u{1b}]0;title\u{1b}\\x", (Other, 11)),
            ("\u{9d}0;t\u{9c}x", (Other, 7)),
            ("\u{1b}]0;never closed", (Other, 2)),
            ("\u{1b}]0;cut by \u{1b}[1m", (Other, 2)),
            ("\u{1b}P1q~~\nx\u{1b}\\y", (Other, 10)),
            ("\u{1b}(0lq", (Other, 3)),
            ("\u{1b}cx", (Other, 2)),
            ("\u{1b}é", (Other, 1)),
            ("\u{1b}", (Other, 1)),
        ] {
            assert_eq!(parse_sequence(text), expected, "{text:?}");
        }
    }
}
