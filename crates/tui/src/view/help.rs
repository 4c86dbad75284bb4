//! Draws the help: the keys of each part of the interface.

use crate::app::HelpState;
use ratatui::{buffer::Buffer, layout::Rect, widgets::Widget as _};

pub(super) fn draw_help(help: &HelpState, area: Rect, buffer: &mut Buffer) {
    for (line, row) in help.visible_lines().iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}
