//! A text and a cursor, which is always between two grapheme clusters.

use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

/// A text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextBuffer {
    text: String,
    /// A byte offset.
    cursor: usize,
}

/// A replacement of a part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) at: usize,
    pub(crate) removed: String,
    pub(crate) inserted: String,
    pub(crate) cursor_before: usize,
    pub(crate) cursor_after: usize,
}

impl TextBuffer {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Moves the cursor to this offset, or after the cluster that contains it.
    pub(crate) fn move_to(&mut self, offset: usize) {
        self.cursor = self.boundary_from(offset);
    }

    /// Replaces a range and puts the cursor after the new text.
    pub(crate) fn replace(&mut self, range: Range<usize>, inserted: &str) -> TextEdit {
        let cursor_before = self.cursor;
        let removed = self.text[range.clone()].to_owned();
        self.text.replace_range(range.clone(), inserted);
        self.move_to(range.start + inserted.len());
        let (at, inserted, cursor_after) = (range.start, inserted.to_owned(), self.cursor);
        TextEdit { at, removed, inserted, cursor_before, cursor_after }
    }

    pub(crate) fn revert(&mut self, edit: &TextEdit) {
        self.text.replace_range(edit.at..edit.at + edit.inserted.len(), &edit.removed);
        self.cursor = edit.cursor_before;
    }

    pub(crate) fn apply(&mut self, edit: &TextEdit) {
        self.text.replace_range(edit.at..edit.at + edit.removed.len(), &edit.inserted);
        self.cursor = edit.cursor_after;
    }

    /// The end of the cluster that starts at `offset`.
    pub(crate) fn next_boundary(&self, offset: usize) -> usize {
        let mut cursor = GraphemeCursor::new(offset, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    /// The start of the cluster that ends at `offset`.
    pub(crate) fn previous_boundary(&self, offset: usize) -> usize {
        let mut cursor = GraphemeCursor::new(offset, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    fn boundary_from(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset += 1;
        }
        let mut cursor = GraphemeCursor::new(offset, self.text.len(), true);
        let is_boundary = cursor.is_boundary(&self.text, 0).unwrap_or(true);
        if is_boundary { offset } else { self.next_boundary(offset) }
    }

    /// The range of the line that contains `offset`, without its line break.
    pub(crate) fn line_range(&self, offset: usize) -> Range<usize> {
        let start = self.text[..offset].rfind('\n').map_or(0, |it| it + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |it| offset + it);
        start..end
    }

    /// The offset of the first character of the line that is not a space.
    pub(crate) fn first_word_of_line(&self, offset: usize) -> usize {
        let line = self.line_range(offset);
        let text = &self.text[line.clone()];
        self.boundary_from(line.start + text.len() - text.trim_start().len())
    }

    /// The cluster at `offset`; empty at the end.
    pub(crate) fn cluster_at(&self, offset: usize) -> &str {
        self.text[offset..].graphemes(true).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_moves_over_a_cluster_of_several_characters() {
        let mut buffer = TextBuffer::default();
        buffer.replace(0..0, "a👨‍👩‍👧e\u{301}");
        let family = buffer.previous_boundary(buffer.previous_boundary(buffer.cursor()));
        assert_eq!((family, buffer.cluster_at(family)), (1, "👨‍👩‍👧"));
        assert_eq!(buffer.next_boundary(1), buffer.text().len() - "e\u{301}".len());
    }

    #[test]
    fn cursor_leaves_a_cluster_that_an_insertion_has_made() {
        let mut buffer = TextBuffer::default();
        buffer.replace(0..0, "\u{301}");
        buffer.move_to(0);
        buffer.replace(0..0, "e");
        assert_eq!(buffer.cursor(), buffer.text().len());
    }
}
