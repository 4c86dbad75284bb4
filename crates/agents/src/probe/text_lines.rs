//! Lines of a program's output for messages.

/// Versions and error lines are cut to this length.
const LINE_CHARS_MAX: usize = 120;

/// The first line that is not blank, without control characters.
pub(super) fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|it| !it.is_empty()).map(shorten)
}

/// The first line that reports an error, else the first line.
pub(super) fn error_line(text: &str) -> Option<String> {
    let is_error = |it: &&str| it.to_lowercase().contains("error");
    text.lines().map(str::trim).find(is_error).map(shorten).or_else(|| first_line(text))
}

fn shorten(line: &str) -> String {
    line.chars().filter(|it| !it.is_control()).take(LINE_CHARS_MAX).collect()
}
