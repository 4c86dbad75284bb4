//! The change of a file as lines.

use super::{ViewTheme, sanitize_text, wrap_line};
use ratatui::text::Line;
use similar::{ChangeTag, TextDiff};

/// Hunks with three lines of context. A new file has no `old`.
pub(crate) fn render_diff(
    path: &str,
    old: Option<&str>,
    new: &str,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(sanitize_text(path).into_owned(), theme.strong)];
    let diff = TextDiff::from_lines(old.unwrap_or(""), new);
    for change in diff.iter_all_changes() {
        let (sign, style) = match change.tag() {
            ChangeTag::Equal => (' ', theme.text),
            ChangeTag::Insert => ('+', theme.added),
            ChangeTag::Delete => ('-', theme.removed),
        };
        let text = sanitize_text(change.value().trim_end_matches(['\r', '\n'])).into_owned();
        lines.extend(wrap_line(Line::styled(format!("{sign} {text}"), style), width, 2));
    }
    lines
}
