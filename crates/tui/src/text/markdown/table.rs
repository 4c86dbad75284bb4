//! Lays out a table of Markdown. A table that is too wide for columns becomes a list of its cells.

use crate::text::{ViewTheme, cell_width, wrap::wrap_spans};
use pulldown_cmark::Alignment;
use ratatui::{style::Modifier, text::Span};

const SEPARATOR: &str = " │ ";
const SEPARATOR_CELLS: usize = 3;
/// A narrower column cannot be read.
const COLUMN_CELLS_MIN: usize = 6;

#[derive(Debug)]
pub(super) struct TableContent {
    alignments: Vec<Alignment>,
    /// The first row is the head.
    rows: Vec<Vec<TableCell>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct TableCell {
    spans: Vec<Span<'static>>,
    width: usize,
}

type SpanLine = Vec<Span<'static>>;

impl TableCell {
    pub(super) fn new(spans: Vec<Span<'static>>) -> TableCell {
        let width = spans_width(&spans);
        TableCell { spans, width }
    }
}

impl TableContent {
    pub(super) fn new(alignments: Vec<Alignment>) -> TableContent {
        TableContent { alignments, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: TableCell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn into_lines(mut self, width: usize, theme: &ViewTheme) -> Vec<SpanLine> {
        for span in self.rows.first_mut().into_iter().flatten().flat_map(|it| &mut it.spans) {
            span.style = span.style.add_modifier(Modifier::BOLD);
        }
        match self.column_widths(width) {
            Some(widths) => self.to_columns(&widths, theme),
            None => self.to_list(width, theme),
        }
    }

    /// The widths of the columns; `None` if they have no room. Wide columns share what narrow ones leave.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.rows.iter().map(Vec::len).max().filter(|&it| it > 0)?;
        let mut free = width.checked_sub(SEPARATOR_CELLS * (count - 1))?;
        let mut widths = vec![1; count];
        for (column, cell) in self.rows.iter().flat_map(|it| it.iter().enumerate()) {
            widths[column] = widths[column].max(cell.width);
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&it| widths[it]);
        for (index, &column) in order.iter().enumerate() {
            let share = free / (count - index);
            if widths[column] > share && share < COLUMN_CELLS_MIN {
                return None;
            }
            widths[column] = widths[column].min(share);
            free -= widths[column];
        }
        Some(widths)
    }

    fn to_columns(&self, widths: &[usize], theme: &ViewTheme) -> Vec<SpanLine> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, widths, theme));
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|&it| "─".repeat(it)).collect();
                lines.push(vec![Span::styled(rules.join("─┼─"), theme.border)]);
            }
        }
        lines
    }

    fn row_lines(&self, row: &[TableCell], widths: &[usize], theme: &ViewTheme) -> Vec<SpanLine> {
        let empty = TableCell::default();
        let cells = widths.iter().enumerate().map(|(column, &width)| {
            wrap_spans(row.get(column).unwrap_or(&empty).spans.clone(), width, width)
        });
        let cells: Vec<Vec<SpanLine>> = cells.collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let mut line = SpanLine::new();
            for (column, &width) in widths.iter().enumerate() {
                if column > 0 {
                    line.push(Span::styled(SEPARATOR, theme.border));
                }
                let content = cells[column].get(index).cloned().unwrap_or_default();
                let is_last = column + 1 == widths.len();
                self.push_aligned(&mut line, content, column, width, is_last);
            }
            line
        };
        (0..height).map(line).collect()
    }

    /// Adds spaces around the content of a cell; none at the end of a line.
    fn push_aligned(
        &self,
        line: &mut SpanLine,
        content: SpanLine,
        column: usize,
        width: usize,
        is_last: bool,
    ) {
        let free = width.saturating_sub(spans_width(&content));
        let left = match self.alignments.get(column) {
            Some(Alignment::Right) => free,
            Some(Alignment::Center) => free / 2,
            _ => 0,
        };
        let right = if is_last { 0 } else { free - left };
        line.extend((left > 0).then(|| Span::raw(" ".repeat(left))));
        line.extend(content);
        line.extend((right > 0).then(|| Span::raw(" ".repeat(right))));
    }

    /// Each cell on lines of its own, after the head of its column.
    fn to_list(&self, width: usize, theme: &ViewTheme) -> Vec<SpanLine> {
        let mut lines = Vec::new();
        let head = self.rows.first().map_or(&[][..], Vec::as_slice);
        let rows = self.rows.get(1..).unwrap_or_default();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut spans = head.get(column).map(|it| it.spans.clone()).unwrap_or_default();
                spans.push(Span::styled(": ", theme.dim));
                spans.extend(cell.spans.iter().cloned());
                lines.extend(wrap_spans(spans, width, width));
            }
        }
        if rows.is_empty() {
            lines.extend(head.iter().flat_map(|it| wrap_spans(it.spans.clone(), width, width)));
        }
        lines
    }
}

fn spans_width(spans: &[Span<'static>]) -> usize {
    spans.iter().map(|it| cell_width(&it.content)).sum()
}
