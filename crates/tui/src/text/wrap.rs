//! Breaks styled lines to a width in cells.

use super::cells::cell_width;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

/// Breaks a line into lines of at most `width` cells; all but the first start with `indent` spaces.
pub(crate) fn wrap_line(line: Line<'static>, width: u16, indent: u16) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let mut lines = vec![Line::default().style(line.style)];
    let mut used = 0;
    for span in line.spans {
        for cluster in span.content.graphemes(true) {
            let cells = cell_width(cluster);
            if used + cells > width {
                let indent = usize::from(indent).min(width.saturating_sub(2));
                lines.push(Line::from(" ".repeat(indent)).style(line.style));
                used = indent;
            }
            used += cells;
            if let Some(last) = lines.last_mut() {
                last.push_span(Span::styled(cluster.to_owned(), span.style));
            }
        }
    }
    lines
}
