//! Markdown as lines.

use super::{ViewTheme, sanitize_text, wrap_line};
use ratatui::text::Line;

pub(crate) fn render_markdown(text: &str, width: u16, theme: &ViewTheme) -> Vec<Line<'static>> {
    let lines = sanitize_text(text);
    let lines = lines.lines().map(|it| Line::styled(it.to_owned(), theme.text));
    lines.flat_map(|it| wrap_line(it, width, 0)).collect()
}
