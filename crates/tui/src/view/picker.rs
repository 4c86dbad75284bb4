//! Draws a list to choose from in the middle of the page.

use super::{popup::draw_popup, selection::draw_selection};
use crate::{
    session::{ChoicePicker, PickerChoice},
    text::{ViewTheme, cell_width, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Widget as _,
};

/// Returns where the cursor is in the filter, if there is one.
pub(super) fn draw_picker(
    picker: &ChoicePicker,
    theme: &ViewTheme,
    page: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let rows = u16::try_from(picker.all_choices().len()).unwrap_or(u16::MAX);
    let filter_height = u16::from(picker.has_filter());
    let size = (picker.width(page.width), rows.saturating_add(filter_height));
    let inner = draw_popup(theme, picker.title(), size, page, buffer);
    let cursor = picker.has_filter().then(|| draw_filter(picker, theme, inner, buffer));
    let height = inner.height.saturating_sub(filter_height);
    let list = Rect { y: inner.y + filter_height, height, ..inner };
    let first = (picker.selected() + 1).saturating_sub(usize::from(list.height));
    for (row, (index, choice)) in list.rows().zip(picker.matching_choices().enumerate().skip(first))
    {
        choice_line(choice, theme, usize::from(row.width)).render(row, buffer);
        if index == picker.selected() {
            buffer.set_string(row.x, row.y, ">", theme.accent);
            draw_selection(row, buffer, theme);
        }
    }
    if picker.matching_choices().len() == 0 {
        Line::styled("  Nothing matches", theme.dim).render(list, buffer);
    }
    cursor
}

fn draw_filter(
    picker: &ChoicePicker,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let (row, column) = picker.filter().cursor_cell();
    if picker.filter().is_empty() {
        Line::styled("/ type to filter", theme.dim).render(area, buffer);
    } else {
        let text = picker.filter().rows()[row].text.clone();
        let line = Line::from(vec![Span::styled("/ ", theme.accent), Span::raw(text)]);
        line.render(area, buffer);
    }
    let column = u16::try_from(column + 2).unwrap_or(u16::MAX);
    Position::new((area.x + column).min(area.right().saturating_sub(1)), area.y)
}

/// A star marks the current value.
fn choice_line(choice: &PickerChoice, theme: &ViewTheme, width: usize) -> Line<'static> {
    let mark = if choice.is_current { "  * " } else { "    " };
    let name = truncate_cells(&choice.name, width.saturating_sub(4));
    let room = width.saturating_sub(cell_width(&name) + 6);
    let mut spans = vec![Span::raw(format!("{mark}{name}"))];
    if !choice.description.is_empty() && room > 8 {
        let description = truncate_cells(&choice.description, room);
        spans.push(Span::styled(format!("  {description}"), theme.dim));
    }
    Line::from(spans)
}
