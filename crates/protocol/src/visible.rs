//! Text of others made safe to show: characters that move the cursor, reorder text or cannot be seen are written
//! as escapes, so that a person sees what is there and a terminal does nothing but print.

use std::{borrow::Cow, fmt::Write as _};

/// Running text: line breaks, tabs, and the joiners and marks that scripts and emoji need are kept.
pub fn prose(text: &str) -> Cow<'_, str> {
    escape(text, |it| is_hidden(it) && !is_of_prose(it), for_people)
}

/// Text in which each character matters, on one line: everything that cannot be seen is escaped.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden, for_people)
}

/// JSON text, which stays the same value: what cannot be seen can only be in strings.
pub fn json(text: &str) -> Cow<'_, str> {
    escape(text, |it| is_hidden(it) && !matches!(it, '\n' | '\t' | '\r'), for_json)
}

/// Control characters, marks that change the direction of text, and characters without a shape.
pub fn is_hidden(it: char) -> bool {
    it.is_control()
        || matches!(it,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_of_prose(it: char) -> bool {
    matches!(it, '\n' | '\t' | '\u{ad}' | '\u{200c}'..='\u{200f}')
}

fn escape(
    text: &str,
    is_bad: impl Fn(char) -> bool,
    write: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(it) = rest.next() {
        if !is_bad(it) {
            shown.push(it);
        } else if it != '\r' || rest.peek() != Some(&'\n') || is_bad('\n') {
            // A line break of other systems is a line break.
            write(&mut shown, it);
        }
    }
    Cow::Owned(shown)
}

fn for_people(shown: &mut String, it: char) {
    let number = u32::from(it);
    let written = match it {
        '\n' => shown.write_str(r"\n"),
        '\r' => shown.write_str(r"\r"),
        '\t' => shown.write_str(r"\t"),
        _ if number < 0x100 => write!(shown, r"\x{number:02x}"),
        _ => write!(shown, r"\u{{{number:x}}}"),
    };
    written.expect("writing to memory cannot fail");
}

fn for_json(shown: &mut String, it: char) {
    for unit in it.encode_utf16(&mut [0; 2]) {
        write!(shown, r"\u{unit:04x}").expect("writing to memory cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, shown) in [
            ("a\u{1b}[2Jb\n\tc", "a\\x1b[2Jb\n\tc"),
            ("\u{1b}]52;c;cm0=\u{7}", "\\x1b]52;c;cm0=\\x07"),
            ("\u{9b}2J", "\\x9b2J"),
            ("safe\rrm", "safe\\rrm"),
            ("one\r\ntwo", "one\ntwo"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("👩\u{200d}💻 مرحبا\u{200f}", "👩\u{200d}💻 مرحبا\u{200f}"),
        ] {
            assert_eq!(prose(text), shown);
        }
        assert!(matches!(prose("plain\ntext"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_hides_nothing() {
        assert_eq!(line("ls\n\trm\u{200d}\r\n"), r"ls\n\trm\u{200d}\r\n");
        assert_eq!(line("a b é 漢"), "a b é 漢");
    }

    #[test]
    fn json_stays_the_same_value() {
        let text = "{\"a\":\"x\u{202e}\u{e0041}\u{9b}y\"}\n";
        let shown = json(text);
        assert_eq!(shown, "{\"a\":\"x\\u202e\\udb40\\udc41\\u009by\"}\n");
        let value = |it: &str| serde_json::from_str::<serde_json::Value>(it).unwrap();
        assert_eq!(value(&shown), value(text));
    }
}
