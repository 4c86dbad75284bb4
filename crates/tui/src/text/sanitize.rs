//! Removes from foreign text what could control the terminal or mislead the reader.

use std::borrow::Cow;

/// Text without control characters, escape sequences and invisible characters. Line breaks are kept.
pub(crate) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|it| it == b'\n' || (0x20..0x7f).contains(&it)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.replace('\t', "    ").chars().filter(|&it| it == '\n' || !it.is_control()).collect(),
    )
}

/// The same on one line: line breaks become spaces.
pub(crate) fn sanitize_line(text: &str) -> Cow<'_, str> {
    let text = sanitize_text(text);
    if text.contains('\n') { Cow::Owned(text.replace('\n', " ")) } else { text }
}
