//! JSON values, such as the input of a tool, as lines.

use super::{ViewTheme, sanitize_text, wrap_line};
use ratatui::text::Line;
use serde_json::Value;

pub(crate) fn render_json(value: &Value, width: u16, theme: &ViewTheme) -> Vec<Line<'static>> {
    let text = format!("{value:#}");
    let lines = sanitize_text(&text);
    let lines = lines.lines().map(|it| Line::styled(it.to_owned(), theme.text));
    lines.flat_map(|it| wrap_line(it, width, 2)).collect()
}
