//! Where the reader is in a transcript.
//!
//! An action of the reader (scrolling, selecting, folding, a found text) makes the line that is then at the top of the
//! screen the line of the reader, unless the end is followed. Until the next action its first word stays on the screen:
//! when events and pages arrive or are dropped, when time passes, and when the width or the height changes. A header is
//! cut at the width of the screen, so of a header only the line stays, not each word; and the mark of new events is drawn
//! over the end of the last line.
//!
//! Folding keeps the first line of the folded item on its row. Folding all items keeps the line at the top, or the
//! header of its item if the line is folded; if the selected item is on the screen, it keeps the first line of that.
//! An action that changes nothing, such as folding where nothing can be folded, leaves the line of the reader as it is.
//!
//! So the place is a line of an item, not a number of lines from the beginning.

use crate::transcript::{BlockPlace, ItemKey};
use ratatui::text::Line;

/// What the screen shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ScrollState {
    /// The end of the log, as it grows.
    #[default]
    End,
    /// The beginning of the window.
    Start,
    At(ScrollAnchor),
}

/// A line that stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScrollAnchor {
    pub(super) key: ItemKey,
    /// The first event of the item, if the item is no longer there.
    pub(super) seq: u64,
    pub(super) place: BlockPlace,
    /// The line of the block, for this width.
    pub(super) line: usize,
    pub(super) width: u16,
    /// How many letters and digits are before the line in its block. It is the same for all widths.
    pub(super) letters: usize,
    /// The row of the screen on which the line is.
    pub(super) row: usize,
}

/// A line of an item: indexes of the item, the block and the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePosition {
    pub(super) item: usize,
    pub(super) block: usize,
    pub(super) line: usize,
}

/// How many letters and digits a line has. Wrapping neither adds nor removes any.
pub(super) fn count_letters(line: &Line<'_>) -> usize {
    line.spans.iter().map(|it| count_text_letters(&it.content)).sum()
}

pub(super) fn count_text_letters(text: &str) -> usize {
    text.chars().filter(|it| it.is_alphanumeric()).count()
}

/// The line that has the letter with this number.
pub(super) fn line_of_letter(lines: &[Line<'_>], letter: usize) -> usize {
    let mut before = 0;
    for (index, line) in lines.iter().enumerate() {
        before += count_letters(line);
        if before > letter {
            return index;
        }
    }
    lines.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_is_found_in_its_line_for_every_width() {
        let words = ["one two", "", "│ three"].map(Line::from);
        let found = [0, 5, 6, 10, 99].map(|it| line_of_letter(&words, it));
        assert_eq!(found, [0, 0, 2, 2, 2]);
        assert_eq!(line_of_letter(&[], 3), 0);
    }
}
