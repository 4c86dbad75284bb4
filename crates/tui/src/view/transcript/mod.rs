//! Draws the transcript of a session.

#[cfg(test)]
mod tests;

use crate::{
    session::{GUTTER_WIDTH, HighlightedRange, SCROLLBAR_WIDTH, TranscriptPane, VisibleRow},
    text::{ViewTheme, cell_width},
    transcript::item_mark,
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Widget,
};

impl TranscriptPane {
    /// Draws what [`TranscriptPane::layout`] has laid out.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.theme();
        for (row, visible) in area.rows().zip(self.visible_rows()) {
            draw_row(&visible, row, buffer, theme);
        }
        draw_scrollbar(self, area, buffer, theme);
        if self.is_loading() {
            draw_note("Loading…", area.rows().next(), buffer, theme.dim);
        } else if self.items().is_empty() {
            draw_note("No messages yet.", area.rows().next(), buffer, theme.dim);
        } else if self.is_waiting_for_older() {
            draw_note("Loading earlier events…", area.rows().next(), buffer, theme.dim);
        }
        if self.has_news() {
            let style = theme.accent.add_modifier(Modifier::REVERSED);
            draw_note(" ↓ new ", area.rows().next_back(), buffer, style);
        }
    }
}

fn draw_row(visible: &VisibleRow<'_>, row: Rect, buffer: &mut Buffer, theme: &ViewTheme) {
    let [gutter, text] = split_row(row);
    let (mark, style) = item_mark(&visible.item.content, theme);
    let mark = if visible.is_first { mark } else { " " };
    let bar = if visible.is_selected { "▌" } else { mark };
    let bar_style = if visible.is_selected { theme.accent } else { style };
    let second = if visible.is_selected { mark } else { " " };
    let gutter_line = Line::from(vec![Span::styled(bar, bar_style), Span::styled(second, style)]);
    gutter_line.render(gutter, buffer);
    if visible.highlights.is_empty() {
        visible.line.render(text, buffer);
    } else {
        highlight(visible.line, visible.highlights, theme).render(text, buffer);
    }
}

fn split_row(row: Rect) -> [Rect; 2] {
    let gutter = Rect { width: GUTTER_WIDTH.min(row.width), ..row };
    let text = Rect {
        x: row.x + gutter.width,
        width: row.width.saturating_sub(GUTTER_WIDTH + SCROLLBAR_WIDTH),
        ..row
    };
    [gutter, text]
}

/// The line with ranges of bytes in other styles.
fn highlight(
    line: &Line<'static>,
    ranges: &[HighlightedRange],
    theme: &ViewTheme,
) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut position = 0;
    for span in &line.spans {
        let mut rest = &*span.content;
        while !rest.is_empty() {
            let found = ranges.iter().find(|it| it.range.end > position);
            let (length, style) = match found {
                Some(it) if it.range.start <= position => {
                    let style = if it.is_current { theme.selected } else { theme.needs_user };
                    (it.range.end - position, style.add_modifier(Modifier::REVERSED))
                }
                Some(it) => (it.range.start - position, Style::new()),
                None => (rest.len(), Style::new()),
            };
            let (part, after) = rest.split_at(rest.floor_char_boundary(length.min(rest.len())));
            if part.is_empty() {
                break;
            }
            spans.push(Span::styled(part.to_owned(), span.style.patch(style)));
            position += part.len();
            rest = after;
        }
    }
    Line::from(spans).style(line.style)
}

/// Shows which part of the log is on the screen.
fn draw_scrollbar(pane: &TranscriptPane, area: Rect, buffer: &mut Buffer, theme: &ViewTheme) {
    let end = pane.window().end().max(1);
    let mut seqs = pane.visible_rows().map(|it| it.item.seq);
    let Some(first) = seqs.next() else { return };
    let last = if pane.is_at_end() { end } else { seqs.last().unwrap_or(first) };
    if (first <= 1 && last >= end) || area.width <= GUTTER_WIDTH + SCROLLBAR_WIDTH {
        return;
    }
    let height = u64::from(area.height);
    let start = (first - 1).saturating_mul(height) / end;
    let stop = last.saturating_mul(height).div_ceil(end).clamp(start + 1, height.max(start + 1));
    for (row, rect) in (0..).zip(area.rows()) {
        let is_thumb = (start..stop).contains(&row);
        let (symbol, style) = if is_thumb { ("█", theme.border) } else { ("│", theme.border) };
        buffer.set_string(area.right() - SCROLLBAR_WIDTH, rect.y, symbol, style);
    }
}

/// A note at the right end of a row.
fn draw_note(text: &str, row: Option<Rect>, buffer: &mut Buffer, style: Style) {
    let Some(row) = row else { return };
    let width = u16::try_from(cell_width(text)).unwrap_or(u16::MAX);
    let x = row.right().saturating_sub(width + SCROLLBAR_WIDTH + 1).max(row.x);
    buffer.set_stringn(x, row.y, text, usize::from(row.right() - x), style);
}
