//! The text of the field in rows of a width in cells.

use super::{PastedBlocks, TextBuffer};
use crate::text::cell_width;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation as _;

/// One row as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorRow {
    /// The bytes of the text in this row.
    pub(crate) range: Range<usize>,
    /// Never wider than the field.
    pub(crate) text: String,
}

/// All rows. There is at least one.
#[derive(Debug, Default)]
pub(crate) struct EditorRows {
    rows: Vec<EditorRow>,
    width: usize,
}

impl EditorRows {
    /// Wraps a text, after spaces where possible. Spaces that do not fit stay at the end of their row, undrawn.
    pub(crate) fn wrap(text: &str, blocks: &PastedBlocks, width: u16) -> EditorRows {
        let width = usize::from(width.max(1));
        let mut rows = EditorRows { rows: Vec::new(), width };
        let mut start = 0;
        for line in text.split('\n') {
            rows.wrap_line(text, start..start + line.len(), blocks);
            start += line.len() + 1;
        }
        rows
    }

    pub(crate) fn as_slice(&self) -> &[EditorRow] {
        &self.rows
    }

    /// The row and column at which an offset is drawn. The column is less than the width.
    pub(crate) fn cell_of(
        &self,
        buffer: &TextBuffer,
        blocks: &PastedBlocks,
        offset: usize,
    ) -> (usize, usize) {
        let row = self.row_of(offset);
        let text = &buffer.text()[self.rows[row].range.start..offset];
        let column: usize = text.graphemes(true).map(|it| self.cells(it, blocks)).sum();
        if column < self.width {
            return (row, column);
        }
        // A space that is not drawn: the next word starts in the next row.
        if row + 1 < self.rows.len() { (row + 1, 0) } else { (row, self.width - 1) }
    }

    /// The offset in a row that is nearest to a column from the left.
    pub(crate) fn offset_at(
        &self,
        buffer: &TextBuffer,
        blocks: &PastedBlocks,
        row: usize,
        column: usize,
    ) -> usize {
        let range = self.rows[row].range.clone();
        let continues = self.rows.get(row + 1).is_some_and(|it| it.range.start == range.end);
        let mut column_end = 0;
        for (index, cluster) in buffer.text()[range.clone()].grapheme_indices(true) {
            column_end += self.cells(cluster, blocks);
            let is_last = range.start + index + cluster.len() == range.end;
            if column_end > column || (continues && is_last) {
                return range.start + index;
            }
        }
        range.end
    }

    /// The row in which an offset is.
    pub(crate) fn row_of(&self, offset: usize) -> usize {
        self.rows.partition_point(|it| it.range.start <= offset).saturating_sub(1)
    }

    fn wrap_line(&mut self, text: &str, line: Range<usize>, blocks: &PastedBlocks) {
        let mut row_start = line.start;
        let mut column = 0;
        // Where the row can end, and the cells since then.
        let (mut word_start, mut word_cells) = (line.start, 0);
        for (index, cluster) in text[line.clone()].grapheme_indices(true) {
            let at = line.start + index;
            let cells = self.cells(cluster, blocks);
            let is_space = cluster.chars().all(char::is_whitespace);
            while !is_space && column + cells > self.width && at > row_start {
                let row_end = if word_start > row_start { word_start } else { at };
                column = if row_end == at { 0 } else { word_cells };
                self.push_row(text, row_start..row_end, blocks);
                (row_start, word_start) = (row_end, row_end);
                word_cells = column;
            }
            column += cells;
            word_cells += cells;
            if is_space {
                (word_start, word_cells) = (at + cluster.len(), 0);
            }
        }
        self.push_row(text, row_start..line.end, blocks);
        if column >= self.width {
            // The place of the cursor after a full row.
            self.rows.push(EditorRow { range: line.end..line.end, text: String::new() });
        }
    }

    fn push_row(&mut self, text: &str, range: Range<usize>, blocks: &PastedBlocks) {
        let mut column_end = 0;
        let mut shown = String::new();
        for cluster in text[range.clone()].graphemes(true) {
            let displayed = blocks.display(cluster, self.width);
            column_end += cell_width(&displayed);
            if column_end > self.width {
                break;
            }
            shown.push_str(&displayed);
        }
        self.rows.push(EditorRow { range, text: shown });
    }

    fn cells(&self, cluster: &str, blocks: &PastedBlocks) -> usize {
        cell_width(&blocks.display(cluster, self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(text: &str, width: u16) -> Vec<String> {
        let rows = EditorRows::wrap(text, &PastedBlocks::default(), width);
        rows.rows.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn words_are_kept_together_where_they_fit() {
        assert_eq!(wrap("hello big world", 9), ["hello big", "world"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!(wrap("日本語テキスト", 5), ["日本", "語テ", "キス", "ト"]);
        assert_eq!(wrap("\tx", 5), ["    x", ""]);
    }

    #[test]
    fn cursor_after_a_full_row_is_in_the_next_one() {
        let mut buffer = TextBuffer::default();
        buffer.replace(0..0, "abcd");
        let blocks = PastedBlocks::default();
        let rows = EditorRows::wrap(buffer.text(), &blocks, 4);
        assert_eq!(rows.cell_of(&buffer, &blocks, 4), (1, 0));
        assert_eq!(rows.cell_of(&buffer, &blocks, 3), (0, 3));
    }
}
