//! The width of text in cells of a terminal.

use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation as _;

/// The number of cells that a line of text takes.
pub(crate) fn cell_width(text: &str) -> usize {
    text.graphemes(true).map(|it| usize::from(it.cell_width())).sum()
}

/// The start of a text that fits into `width` cells, with `…` if something is missing.
pub(crate) fn truncate_cells(text: &str, width: usize) -> String {
    if cell_width(text) <= width {
        return text.to_owned();
    }
    let Some(free) = width.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let mut start = String::new();
    for cluster in text.graphemes(true) {
        used += usize::from(cluster.cell_width());
        if used > free {
            break;
        }
        start.push_str(cluster);
    }
    start.push('…');
    start
}
