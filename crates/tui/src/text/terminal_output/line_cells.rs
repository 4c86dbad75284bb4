//! A line of cells that output can write over.

use crate::text::{cells::cluster_width, span_list::SpanList};
use ratatui::{style::Style, text::Span};
use unicode_segmentation::UnicodeSegmentation as _;

#[derive(Debug, Default)]
pub(super) struct LineCells {
    cells: Vec<OutputCell>,
    cursor: usize,
}

#[derive(Debug, Clone)]
struct OutputCell {
    /// Empty for the second cell of a wide cluster.
    cluster: String,
    style: Style,
}

impl LineCells {
    /// Writes sanitized text at the cursor, over what is there.
    pub(super) fn write(&mut self, text: &str, style: Style) {
        for cluster in text.graphemes(true) {
            let width = cluster_width(cluster);
            if width == 0 {
                continue;
            }
            let end = self.cursor + width;
            let blank = OutputCell { cluster: " ".to_owned(), style: Style::new() };
            if self.cells.len() < end {
                self.cells.resize(end, blank.clone());
            }
            self.split_wide_cluster(self.cursor, &blank);
            self.split_wide_cluster(end, &blank);
            self.cells[self.cursor] = OutputCell { cluster: cluster.to_owned(), style };
            for cell in &mut self.cells[self.cursor + 1..end] {
                *cell = OutputCell { cluster: String::new(), style };
            }
            self.cursor = end;
        }
    }

    pub(super) fn column(&self) -> usize {
        self.cursor
    }

    pub(super) fn move_to_start(&mut self) {
        self.cursor = 0;
    }

    pub(super) fn move_back(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    pub(super) fn erase_to_end(&mut self) {
        let blank = OutputCell { cluster: " ".to_owned(), style: Style::new() };
        self.split_wide_cluster(self.cursor, &blank);
        self.cells.truncate(self.cursor);
    }

    pub(super) fn erase_all(&mut self) {
        self.cells.clear();
    }

    pub(super) fn into_spans(self) -> Vec<Span<'static>> {
        let mut spans = SpanList::default();
        for cell in &self.cells {
            spans.push(&cell.cluster, cell.style);
        }
        spans.take()
    }

    /// Replaces a wide cluster by spaces if `column` is inside of it.
    fn split_wide_cluster(&mut self, column: usize, blank: &OutputCell) {
        if self.cells.get(column).is_none_or(|it| !it.cluster.is_empty()) {
            return;
        }
        let is_rest = |it: &OutputCell| it.cluster.is_empty();
        let start = self.cells[..column].iter().rposition(|it| !is_rest(it)).unwrap_or(0);
        let length = self.cells[start + 1..].iter().take_while(|it| is_rest(it)).count();
        self.cells[start..=start + length].fill(blank.clone());
    }
}
