//! Draws a session: a line about it, the transcript, the queue and the input field, and what is open above them.

use super::{
    composer::{draw_composer, draw_menu},
    picker::draw_picker,
    selection::draw_selection,
    session_header::{draw_session_header, draw_session_rule},
};
use crate::{
    session::{
        DetailPage, FindStatus, LinePrompt, LinePurpose, PromptQueue, SessionFocus, SessionOverlay,
        SessionView,
    },
    text::{ViewTheme, cell_width, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Style,
    text::{Line, Span},
    widgets::Widget as _,
};

/// Returns where the cursor is, if text is typed.
pub(crate) fn draw_session(
    session: &SessionView,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    if let Some(SessionOverlay::Detail(page)) = session.overlay() {
        draw_detail(page, theme, area, buffer);
        return None;
    }
    let areas = session.areas(area);
    draw_session_header(session, theme, areas.header, buffer);
    session.pane().draw(areas.transcript, buffer);
    let has_queue_focus = session.focused_part() == SessionFocus::Queue;
    draw_queue(session.queue(), has_queue_focus, theme, areas.queue, buffer);
    draw_session_rule(session, theme, areas.rule, buffer);
    let has_focus = session.overlay().is_none() && session.focused_part() == SessionFocus::Composer;
    let cursor = draw_composer(session, has_focus, theme, areas.composer, buffer);
    match session.overlay() {
        Some(SessionOverlay::Picker(picker)) => draw_picker(picker, theme, area, buffer),
        Some(SessionOverlay::Line(line)) => {
            Some(draw_line_input(line, theme, areas.line_input, buffer))
        }
        Some(SessionOverlay::Detail(_)) | None => {
            draw_find_status(session, theme, areas.line_input, buffer);
            if has_focus {
                draw_menu(session.composer(), theme, areas.transcript, buffer);
            }
            cursor.filter(|_| has_focus)
        }
    }
}

/// The prompts that wait. The selected one is visible.
fn draw_queue(
    queue: &PromptQueue,
    has_focus: bool,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.is_empty() {
        return;
    }
    let count = queue.prompts().len();
    let title =
        if count == 1 { "1 prompt waits".to_owned() } else { format!("{count} prompts wait") };
    draw_titled_rule(&title, theme.border, area, buffer);
    let shown = usize::from(area.height) - 1;
    let first = (queue.selected_index() + 1).saturating_sub(shown);
    let prompts = queue.prompts().iter().enumerate().skip(first).take(shown);
    for (row, (index, prompt)) in area.rows().skip(1).zip(prompts) {
        let held = if prompt.is_held { " · held since the daemon stopped" } else { "" };
        let by = format!(" · {}{held}", sanitize_line(&prompt.by));
        let room = usize::from(row.width).saturating_sub(cell_width(&by) + 6);
        let text = truncate_cells(&sanitize_line(&prompt.text), room);
        let is_selected = has_focus && index == queue.selected_index();
        let mark = if is_selected { "> " } else { "  " };
        let line = Line::from(vec![
            Span::raw(format!("{mark}{}. {text}", index + 1)),
            Span::styled(by, theme.dim),
        ]);
        line.render(row, buffer);
        if is_selected {
            draw_selection(row, buffer, theme);
        }
    }
}

/// A horizontal line that begins with a title.
pub(super) fn draw_titled_rule(title: &str, style: Style, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let title = truncate_cells(&sanitize_line(title), width.saturating_sub(5));
    let start = if title.is_empty() { String::new() } else { format!("── {title} ") };
    let rule = "─".repeat(width.saturating_sub(cell_width(&start)));
    let row = Rect { height: area.height.min(1), ..area };
    Line::styled(format!("{start}{rule}"), style).render(row, buffer);
}

fn draw_line_input(
    line: &LinePrompt,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let label = line.purpose.label();
    let (row, column) = line.editor.cursor_cell();
    let text = line.editor.rows()[row].text.clone();
    Line::from(vec![Span::styled(label, theme.accent), Span::raw(text)]).render(area, buffer);
    let column = u16::try_from(cell_width(label) + column).unwrap_or(u16::MAX);
    Position::new((area.x + column).min(area.right().saturating_sub(1)), area.y)
}

/// The text that was searched, and whether it was found.
fn draw_find_status(session: &SessionView, theme: &ViewTheme, area: Rect, buffer: &mut Buffer) {
    let Some(status) = session.pane().find_status() else { return };
    let (status, style) = match status {
        FindStatus::Found => ("found", theme.success),
        FindStatus::Searching => ("searching…", theme.dim),
        FindStatus::NotFound => ("not found", theme.warning),
    };
    let room = usize::from(area.width).saturating_sub(cell_width(status) + 8);
    let text = truncate_cells(&sanitize_line(session.find_text()), room);
    let line = Line::from(vec![
        Span::styled(LinePurpose::Find.label(), theme.accent),
        Span::raw(text),
        Span::styled(format!("  {status}"), style),
    ]);
    line.render(area, buffer);
}

fn draw_detail(page: &DetailPage, theme: &ViewTheme, area: Rect, buffer: &mut Buffer) {
    let (first, last, count) = page.position();
    let position = format!("{first}–{last} of {count}");
    let title = format!("{} · {position}", page.title());
    draw_titled_rule(&title, theme.accent, area, buffer);
    for (row, line) in area.rows().skip(1).zip(page.visible_lines()) {
        line.render(row, buffer);
    }
}
