//! Text for people: escaped, shortened, counted. Nothing here prints.

use jackfield_protocol::visible;
use std::{borrow::Cow, path::Path};

/// Escapes control characters, so that text cannot control the terminal.
pub(crate) fn escape_control_chars(text: &str) -> Cow<'_, str> {
    visible::prose(text)
}

/// `1 agent`, `2 agents`.
pub(crate) fn format_count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// `event 4`, `events 4 to 6`.
pub(crate) fn format_event_range(first: u64, last: u64) -> String {
    if first == last { format!("event {first}") } else { format!("events {first} to {last}") }
}

/// Text without color sequences.
pub(crate) fn strip_colors(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Text on one line, without color sequences, cut to `chars_max` characters.
pub(crate) fn to_one_line(text: &str, chars_max: usize) -> String {
    let line = strip_colors(text);
    let parts: Vec<&str> = line.split_whitespace().collect();
    let line = escape_control_chars(&parts.join(" ")).into_owned();
    if line.chars().count() <= chars_max {
        return line;
    }
    let start: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// A path as a word of a shell command.
pub(crate) fn quote_path(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+@%:,=".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_with_spaces_or_quotes_is_one_word_of_a_shell() {
        assert_eq!(quote_path(Path::new("/home/me/.local")), "/home/me/.local");
        assert_eq!(quote_path(Path::new("/mnt/c/My Files")), "'/mnt/c/My Files'");
        assert_eq!(quote_path(Path::new("/it's")), r"'/it'\''s'");
    }

    #[test]
    fn text_is_joined_to_one_line_and_cut() {
        assert_eq!(to_one_line(" run\n  \u{1b}[1mcargo\u{1b}[0m \ttest ", 80), "run cargo test");
        assert_eq!(to_one_line("0123456789", 6), "01234…");
    }
}
