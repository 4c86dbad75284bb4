//! Marks the selected row of a list.

use crate::text::ViewTheme;
use ratatui::{buffer::Buffer, layout::Rect, style::Style};

/// Gives a row one style instead of those of its parts, which reversed colors would make a patchwork.
pub(super) fn draw_selection(row: Rect, buffer: &mut Buffer, theme: &ViewTheme) {
    buffer.set_style(row, Style::reset().patch(theme.selected));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ColorDepth;
    use ratatui::style::{Color, Modifier};

    #[test]
    fn selected_row_has_one_style() {
        let theme = ViewTheme::new(ColorDepth::Ansi16);
        let area = Rect::new(0, 0, 8, 1);
        let mut buffer = Buffer::empty(area);
        buffer.set_string(0, 0, "work", theme.working);
        buffer.set_string(4, 0, "last", theme.dim);
        draw_selection(area, &mut buffer, &theme);
        for cell in buffer.content() {
            assert_eq!(
                (cell.fg, cell.bg, cell.modifier),
                (Color::Reset, Color::Reset, Modifier::REVERSED)
            );
        }
    }
}
