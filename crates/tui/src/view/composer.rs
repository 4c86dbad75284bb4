//! Draws the input field of a session and its menu.

use super::selection::draw_selection;
use crate::{
    hub::SessionState,
    session::{CompletionKind, MARK_WIDTH, PromptComposer, SessionView},
    text::{ViewTheme, cell_width, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::{Clear, Widget as _},
};

const MENU_ROWS_MAX: u16 = 8;

/// Draws the rows around the cursor. Returns where the cursor is.
pub(super) fn draw_composer(
    session: &SessionView,
    has_focus: bool,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    if area.width <= MARK_WIDTH || area.height == 0 {
        return None;
    }
    let editor = session.composer().editor();
    let mark_style = if has_focus { theme.accent } else { theme.dim };
    buffer.set_string(area.x, area.y, ">", mark_style);
    let field = Rect { x: area.x + MARK_WIDTH, width: area.width - MARK_WIDTH, ..area };
    if editor.is_empty() {
        let text = truncate_cells(placeholder(session), usize::from(field.width));
        Line::styled(text, theme.dim).render(field, buffer);
        return Some(field.as_position());
    }
    let (row, column) = editor.cursor_cell();
    let height = usize::from(field.height);
    let first = (row + 1).saturating_sub(height).min(editor.rows().len().saturating_sub(height));
    for (line, shown) in field.rows().zip(&editor.rows()[first..]) {
        Line::from(shown.text.as_str()).render(line, buffer);
    }
    let (x, y) = (u16::try_from(column).ok()?, u16::try_from(row - first).ok()?);
    Some(Position::new(field.x + x, field.y + y))
}

fn placeholder(session: &SessionView) -> &'static str {
    match session.row().state {
        SessionState::Working | SessionState::Asks | SessionState::Other => {
            "Queue a prompt, or steer the agent"
        }
        SessionState::Asleep => "What should the agent do? It starts again.",
        SessionState::Closed => "The session is closed",
        SessionState::Idle => "What should the agent do?",
    }
}

/// Draws the menu over the last rows of the transcript.
pub(super) fn draw_menu(
    composer: &PromptComposer,
    theme: &ViewTheme,
    transcript: Rect,
    buffer: &mut Buffer,
) {
    let Some(menu) = composer.menu() else { return };
    let count = u16::try_from(menu.entries().len()).unwrap_or(u16::MAX);
    let height = count.min(MENU_ROWS_MAX).min(transcript.height);
    let area = Rect { y: transcript.bottom() - height, height, ..transcript };
    Clear.render(area, buffer);
    let first = (menu.selected() + 1).saturating_sub(usize::from(height));
    let sign = match menu.kind() {
        CompletionKind::Command => '/',
        CompletionKind::File => '@',
    };
    let widths = menu.entries().iter().map(|it| cell_width(&sanitize_line(&it.name)) + 1);
    let name_width = widths.max().unwrap_or(0).min(usize::from(area.width) / 2);
    for (row, (index, entry)) in area.rows().zip(menu.entries().iter().enumerate().skip(first)) {
        let name = format!("{sign}{}", sanitize_line(&entry.name));
        let line = if entry.description.is_empty() {
            Line::from(truncate_cells(&format!("  {name}"), usize::from(row.width)))
        } else {
            let name = truncate_cells(&name, name_width);
            let gap = " ".repeat(name_width - cell_width(&name) + 2);
            let room = usize::from(row.width).saturating_sub(name_width + 4);
            let description = truncate_cells(&entry.description, room);
            Line::from(vec![
                Span::raw(format!("  {name}{gap}")),
                Span::styled(description, theme.dim),
            ])
        };
        line.render(row, buffer);
        if index == menu.selected() {
            buffer.set_string(row.x, row.y, ">", theme.accent);
            draw_selection(row, buffer, theme);
        }
    }
}
