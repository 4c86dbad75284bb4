//! Draws the form of a request.

use crate::{
    app::AppState,
    inbox::{FieldValue, FormField, RequestForm},
    text::{ViewTheme, cell_width, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Widget as _,
};

/// Cells of the column of labels.
const LABEL_CELLS_MAX: usize = 30;

/// Returns the position of the cursor in a text field.
pub(super) fn draw_form(
    state: &AppState,
    form: &RequestForm,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let theme = &state.theme;
    let height = usize::from(area.height).saturating_sub(1);
    let width = usize::from(area.width);
    let labels = form.fields.iter().map(|it| cell_width(&label_text(it))).max().unwrap_or(0);
    let label_cells = labels.min(LABEL_CELLS_MAX).min(width / 2);
    let mut lines: Vec<(Line<'static>, Option<usize>)> = Vec::new();
    let mut focus_end = 0;
    for (index, field) in form.fields.iter().enumerate() {
        let is_focused = index == form.focus;
        lines.push(field_line(theme, field, is_focused, label_cells, width));
        lines.extend(note_line(theme, field, form.is_checked, label_cells, width));
        if is_focused {
            focus_end = lines.len();
        }
    }
    // The field with the focus is always visible.
    let top = focus_end.saturating_sub(height).min(lines.len().saturating_sub(height));
    let mut cursor = None;
    for ((line, column), row) in lines.into_iter().skip(top).take(height).zip(area.rows()) {
        line.render(row, buffer);
        if let Some(column) = column {
            let column = u16::try_from(column).unwrap_or(u16::MAX).min(row.width.saturating_sub(1));
            cursor = Some(Position::new(row.x + column, row.y));
        }
    }
    if let Some(row) = area.rows().next_back() {
        buttons_line(theme, form, state.inbox.is_answerable(state.now)).render(row, buffer);
    }
    cursor
}

fn label_text(field: &FormField) -> String {
    let mark = if field.is_required { "*" } else { "" };
    format!("{}{mark}", sanitize_line(&field.label))
}

/// The line of a field, and the column of the cursor if it is a text that has the focus.
fn field_line(
    theme: &ViewTheme,
    field: &FormField,
    is_focused: bool,
    label_cells: usize,
    width: usize,
) -> (Line<'static>, Option<usize>) {
    let label = truncate_cells(&label_text(field), label_cells);
    let start = format!(
        "{} {label}{}",
        if is_focused { "›" } else { " " },
        " ".repeat(label_cells - cell_width(&label) + 2)
    );
    let start_cells = cell_width(&start);
    let room = width.saturating_sub(start_cells);
    let (text, column) = match &field.value {
        FieldValue::Text(line) | FieldValue::Number { field: line, .. } => {
            let (text, column) = line.visible_part(room);
            let is_empty = text.is_empty() && !is_focused;
            (if is_empty { "_".to_owned() } else { text }, Some(column))
        }
        other => (value_text(other, is_focused), None),
    };
    let style = if is_focused { theme.strong } else { theme.text };
    let line = Line::from(vec![
        Span::styled(start, if is_focused { theme.accent } else { theme.dim }),
        Span::styled(truncate_cells(&text, room), style),
    ]);
    (line, column.filter(|_| is_focused).map(|it| start_cells + it))
}

/// The value of a field that is not typed.
fn value_text(value: &FieldValue, is_focused: bool) -> String {
    match value {
        FieldValue::Boolean(true) => "[x] yes".to_owned(),
        FieldValue::Boolean(false) => "[ ] no".to_owned(),
        FieldValue::Choice { choices, chosen } => {
            let label = chosen.map_or("choose…", |it| &choices[it].label);
            let number = chosen.map_or(0, |it| it + 1);
            format!("‹ {} › {number}/{}", sanitize_line(label), choices.len())
        }
        FieldValue::Choices { choices, chosen, focus } => {
            let choice = |(index, is_chosen): (usize, &bool)| {
                let mark = if *is_chosen { "[x]" } else { "[ ]" };
                let label = sanitize_line(&choices[index].label);
                let here = if is_focused && index == *focus { "›" } else { "" };
                format!("{here}{mark} {label}")
            };
            // The choice with the focus comes into view.
            let first = if is_focused { focus.saturating_sub(1) } else { 0 };
            let texts = chosen.iter().enumerate().skip(first).map(choice);
            texts.collect::<Vec<_>>().join("  ")
        }
        _ => "(cannot be shown here)".to_owned(),
    }
}

/// The problem of a field after an attempt to send it, else its description.
fn note_line(
    theme: &ViewTheme,
    field: &FormField,
    is_checked: bool,
    label_cells: usize,
    width: usize,
) -> Option<(Line<'static>, Option<usize>)> {
    let problem = field.problem().filter(|_| is_checked);
    let style = if problem.is_some() { theme.error } else { theme.dim };
    let text = problem.or_else(|| field.description.clone())?;
    let indent = label_cells + 4;
    let text = truncate_cells(&sanitize_line(&text), width.saturating_sub(indent));
    Some((Line::styled(format!("{}{text}", " ".repeat(indent)), style), None))
}

fn buttons_line(theme: &ViewTheme, form: &RequestForm, is_open: bool) -> Line<'static> {
    let spans = form.buttons().iter().map(|button| {
        let is_focused = form.focused_button() == Some(*button);
        let mark = if is_focused { "›" } else { " " };
        let style = match (is_open, is_focused) {
            (false, _) => theme.dim,
            (true, true) => theme.accent.patch(theme.selected),
            (true, false) => theme.text,
        };
        Span::styled(format!("{mark}[{}]", button.label()), style)
    });
    spans.collect()
}
