//! The few colors there are, each with one meaning. Everything reads the same without them.

use anstyle::{AnsiColor, Style};
use jackfield_protocol::visible;
use std::fmt::Display;

pub(crate) const DONE: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const ALERT: Style = AnsiColor::Red.on_default().bold();
/// Names of things, and hints.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// What need not be read.
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BRIGHT: Style = Style::new().bold();

/// Every sequence that [`paint`] writes.
const SEQUENCES: &[&str] =
    &["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// A line with nothing in it that a terminal obeys but our own colors.
pub(crate) fn keep_colors(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        kept.push_str(&visible::prose(&rest[..at]));
        let ours = SEQUENCES.iter().find(|it| rest[at..].starts_with(**it));
        let sequence = ours.map_or(&rest[at..=at], |it| it);
        kept.push_str(&if ours.is_some() { sequence.into() } else { visible::prose(sequence) });
        rest = &rest[at + sequence.len()..];
    }
    kept.push_str(&visible::prose(rest));
    kept
}

pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_color_of_ours_is_kept_and_nothing_else_is_obeyed() {
        for style in [DONE, WARNING, ALERT, NAME, DIM, BRIGHT] {
            let painted = paint(style, "text");
            assert_eq!(keep_colors(&painted), painted);
        }
        let line = paint(DIM, "a\x1b]52;c;cm0=\x07\x1b[2J\x1b[8mb\u{202e}");
        assert_eq!(keep_colors(&line), paint(DIM, r"a\x1b]52;c;cm0=\x07\x1b[2J\x1b[8mb\u{202e}"),);
    }
}
