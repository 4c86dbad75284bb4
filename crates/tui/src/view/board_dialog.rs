//! Draws the dialogs of the board.

use super::popup::draw_popup;
use crate::{
    app::AppState,
    board::{BoardDialog, NewSessionDialog},
    page::LineField,
    text::{ViewTheme, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Widget as _,
};

const DIALOG_CELLS: u16 = 60;
/// More agents than these are scrolled.
const AGENT_LINES_MAX: usize = 12;

/// Returns the position of the cursor in a field.
pub(super) fn draw_dialog(
    state: &AppState,
    dialog: &BoardDialog,
    page: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let theme = &state.theme;
    match dialog {
        BoardDialog::NewSession(dialog) => Some(draw_new_session(theme, dialog, page, buffer)),
        BoardDialog::Rename { field, .. } => {
            let area = draw_popup(theme, "Rename session", (DIALOG_CELLS, 1), page, buffer);
            Some(draw_field(theme, "Name", field, area, buffer))
        }
        BoardDialog::ConfirmClose { title, .. } => {
            let area = draw_popup(theme, "Close session", (DIALOG_CELLS, 3), page, buffer);
            let width = usize::from(area.width);
            let lines = [
                (truncate_cells(title, width), theme.strong),
                (truncate_cells("Closing it stops the work of its agent.", width), theme.text),
                (truncate_cells("y: close it   any other key: keep it", width), theme.accent),
            ];
            for ((text, style), row) in lines.into_iter().zip(area.rows()) {
                Line::styled(text, style).render(row, buffer);
            }
            None
        }
    }
}

fn draw_new_session(
    theme: &ViewTheme,
    dialog: &NewSessionDialog,
    page: Rect,
    buffer: &mut Buffer,
) -> Position {
    let agents = dialog.agents.as_deref().unwrap_or_default();
    let names = std::iter::once("default agent").chain(agents.iter().map(String::as_str));
    let mut names: Vec<_> = names.map(|it| sanitize_line(it).into_owned()).collect();
    if dialog.agents.is_none() {
        names.push("…".to_owned());
    }
    // The field, an empty line, the agents.
    let lines = names.len().min(AGENT_LINES_MAX) + 2;
    let size = (DIALOG_CELLS, u16::try_from(lines).unwrap_or(u16::MAX));
    let area = draw_popup(theme, "New session", size, page, buffer);
    let cursor = draw_field(theme, "Directory", &dialog.directory, area, buffer);
    let list =
        Rect { y: area.y + 2.min(area.height), height: area.height.saturating_sub(2), ..area };
    let height = usize::from(list.height);
    let top = (dialog.selected + 1).saturating_sub(height);
    for ((index, name), row) in names.iter().enumerate().skip(top).zip(list.rows()) {
        let is_selected = index == dialog.selected;
        let label = if index == top { "Agent      " } else { "           " };
        let name = truncate_cells(name, usize::from(row.width).saturating_sub(label.len() + 2));
        let style = if is_selected { theme.selected } else { theme.text };
        let mark = if is_selected { "›" } else { " " };
        let name = Span::styled(format!("{mark}{name} "), style);
        Line::from(vec![Span::styled(label, theme.dim), name]).render(row, buffer);
    }
    cursor
}

fn draw_field(
    theme: &ViewTheme,
    label: &str,
    field: &LineField,
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let label = format!("{label}  ");
    let room = usize::from(area.width).saturating_sub(label.len());
    let (text, column) = field.visible_part(room);
    let column = u16::try_from(label.len() + column).unwrap_or(u16::MAX);
    let line = Line::from(vec![Span::styled(label, theme.dim), Span::styled(text, theme.strong)]);
    if let Some(row) = area.rows().next() {
        line.render(row, buffer);
    }
    Position::new(area.x + column.min(area.width.saturating_sub(1)), area.y)
}
