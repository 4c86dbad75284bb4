//! Code with the colors of its language.

use super::{ViewTheme, sanitize_text};
use ratatui::text::Line;

/// The lines of `code`, not wrapped. `language` is the word after a fence of Markdown, or a file extension.
pub(crate) fn highlight_code(_language: &str, code: &str, theme: &ViewTheme) -> Vec<Line<'static>> {
    sanitize_text(code).lines().map(|it| Line::styled(it.to_owned(), theme.text)).collect()
}
