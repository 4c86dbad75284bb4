//! The styles of the output, each with one meaning. No information depends on color.

use anstyle::{AnsiColor, Style};
use jackfield_protocol::visible;
use std::fmt::Display;

pub(crate) const DONE: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const ALERT: Style = AnsiColor::Red.on_default().bold();
/// Names and hints.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// Secondary information.
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BRIGHT: Style = Style::new().bold();

/// Every sequence that [`paint`] writes.
const SEQUENCES: &[&str] =
    &["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// Escapes every control character in a line except the sequences of [`paint`].
pub(crate) fn escape_except_colors(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        escaped.push_str(&visible::prose(&rest[..at]));
        let known = SEQUENCES.iter().find(|it| rest[at..].starts_with(**it));
        let sequence = known.map_or(&rest[at..=at], |it| it);
        escaped.push_str(&if known.is_some() { sequence.into() } else { visible::prose(sequence) });
        rest = &rest[at + sequence.len()..];
    }
    escaped.push_str(&visible::prose(rest));
    escaped
}

/// Text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_color_sequences_are_kept() {
        for style in [DONE, WARNING, ALERT, NAME, DIM, BRIGHT] {
            let painted = paint(style, "text");
            assert_eq!(escape_except_colors(&painted), painted);
        }
        let line = paint(DIM, "a\x1b]52;c;cm0=\x07\x1b[2J\x1b[8mb\u{202e}");
        assert_eq!(
            escape_except_colors(&line),
            paint(DIM, r"a\x1b]52;c;cm0=\x07\x1b[2J\x1b[8mb\u{202e}"),
        );
    }
}
