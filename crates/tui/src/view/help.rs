//! Draws the help: the keys of each part of the interface.

use crate::{
    app::{HelpLine, HelpState},
    text::{ViewTheme, truncate_cells, wrap_line},
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget as _,
};

/// The cells of the column of keys.
const KEYS_CELLS_MAX: usize = 24;

pub(super) fn draw_help(help: &HelpState, theme: &ViewTheme, area: Rect, buffer: &mut Buffer) {
    let keys_cells = (usize::from(area.width) / 3).min(KEYS_CELLS_MAX);
    let mut rows = area.rows();
    for line in help.visible_lines() {
        for line in help_line(line, theme, area.width, keys_cells) {
            let Some(row) = rows.next() else { return };
            line.render(row, buffer);
        }
    }
}

fn help_line(
    line: &HelpLine,
    theme: &ViewTheme,
    width: u16,
    keys_cells: usize,
) -> Vec<Line<'static>> {
    match line {
        HelpLine::Empty => vec![Line::default()],
        HelpLine::Heading(name) => {
            let mut name = (*name).to_owned();
            name[..1].make_ascii_uppercase();
            vec![Line::styled(format!(" {name}"), theme.strong)]
        }
        HelpLine::Key { keys, meaning } => {
            let keys = truncate_cells(keys, keys_cells);
            let line = Line::from(vec![
                Span::styled(format!(" {keys:keys_cells$}  "), theme.accent),
                Span::styled(*meaning, theme.text),
            ]);
            wrap_line(line, width, u16::try_from(keys_cells).unwrap_or(0) + 3)
        }
    }
}
