//! Removes terminal escape sequences from the output of agents.

use std::iter::Peekable;
use std::str::Chars;

/// Removes colors, cursor movements and titles. A carriage return alone becomes a new line.
pub(crate) fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\x1b' => skip_escape(&mut chars),
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            '\n' | '\t' => out.push(next),
            _ if next.is_control() => {}
            _ => out.push(next),
        }
    }
    out
}

fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next_if(|c| !c.is_control()) {
        // Parameters, then one letter.
        Some('[') => {
            while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
            chars.next_if(|c| ('@'..='~').contains(c));
        }
        // A title or a link: up to the bell or the string terminator, on this line.
        Some(']' | 'P' | '_' | '^') => {
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed_and_the_text_stays() {
        let text = "\x1b]0;title\x07\x1b[1;31mred\x1b[0m\r\n10%\r20%\x1b]8;;http://x\x1b\\\u{0}\n";
        assert_eq!(strip_escapes(text), "red\n10%\n20%\n");
        assert_eq!(strip_escapes("\x1b[\u{e4}\x1b"), "\u{e4}");
    }
}
