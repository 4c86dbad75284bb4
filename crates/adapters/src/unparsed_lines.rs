//! Lines of a JSON dialect that are not JSON. They are held until it is clear whether the program
//! prints JSON at all: then they are notices, otherwise they are its answer.

use crate::colors::strip_colors;

/// More lines than this are not held; from then on they are notices.
const HELD_LINES_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct UnparsedLines {
    held: Vec<String>,
    /// Whether the program has printed an object, or too many other lines.
    are_notices: bool,
}

impl UnparsedLines {
    /// The program printed an object. Returns the lines that are now notices.
    pub(crate) fn on_object(&mut self) -> Vec<String> {
        self.are_notices = true;
        self.take_held()
    }

    /// The program printed another line. Returns the lines that are now notices.
    pub(crate) fn on_other_line(&mut self, line: &str) -> Vec<String> {
        let line = strip_colors(line).trim_end().to_owned();
        if !line.is_empty() || !self.held.is_empty() && !self.are_notices {
            self.held.push(line);
        }
        self.are_notices |= HELD_LINES_MAX < self.held.len();
        if self.are_notices { self.take_held() } else { Vec::new() }
    }

    /// The lines that are held, without blank ones at the end.
    pub(crate) fn take_held(&mut self) -> Vec<String> {
        let mut held = std::mem::take(&mut self.held);
        while held.pop_if(|it| it.is_empty()).is_some() {}
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_until_an_object_makes_them_notices() {
        let mut lines = UnparsedLines::default();
        assert!(lines.on_other_line("").is_empty());
        assert!(lines.on_other_line("\u{1b}[1mbanner\u{1b}[0m").is_empty());
        assert!(lines.on_other_line("").is_empty());
        assert_eq!(lines.on_object(), ["banner"]);
        assert_eq!(lines.on_other_line("warning "), ["warning"]);
        assert!(lines.on_other_line(" ").is_empty() && lines.take_held().is_empty());
    }

    #[test]
    fn text_without_any_object_is_kept_with_its_blank_lines() {
        let mut lines = UnparsedLines::default();
        for line in ["one", "", "two", ""] {
            assert!(lines.on_other_line(line).is_empty());
        }
        assert_eq!(lines.take_held(), ["one", "", "two"]);
    }
}
