//! Lines of a program's output for messages.

/// Versions and error lines are cut to this length.
const LINE_CHARS_MAX: usize = 120;

/// The first line that is not blank, without control characters.
pub(super) fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|it| !it.is_empty())?;
    Some(line.chars().filter(|it| !it.is_control()).take(LINE_CHARS_MAX).collect())
}
