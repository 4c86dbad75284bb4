//! A box in the middle of the page.

use crate::text::ViewTheme;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    widgets::{Block, BorderType, Clear, Padding, Widget as _},
};

/// Draws an empty box for content of this size, and returns the area for the content. It is smaller on a small page.
pub(super) fn draw_popup(
    theme: &ViewTheme,
    title: &str,
    (width, height): (u16, u16),
    page: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let width = width.saturating_add(4).min(page.width);
    let height = height.saturating_add(2).min(page.height);
    let area = Rect {
        x: page.x + (page.width - width) / 2,
        y: page.y + (page.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.accent)
        .title(format!(" {title} "))
        .padding(Padding::horizontal(1));
    let content = block.inner(area);
    Clear.render(area, buffer);
    block.render(area, buffer);
    content
}
