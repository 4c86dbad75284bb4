//! Walks over the lines of a transcript, and renders them on the way.

use super::ExpandedItems;
use crate::{
    session::scroll::{
        LinePosition, ScrollAnchor, count_letters, count_text_letters, line_of_letter,
    },
    text::ViewTheme,
    transcript::{
        BlockSource, ItemOptions, LineCache, LogWindow, MessagePart, TranscriptItem, can_expand,
        is_compact, running_seconds,
    },
};
use jackfield_events::Time;
use ratatui::text::Line;

/// Access to the lines of all items of a window.
pub(super) struct LineWalk<'a> {
    pub(super) window: &'a LogWindow,
    pub(super) cache: &'a mut LineCache,
    pub(super) expanded: &'a ExpandedItems,
    pub(super) theme: &'a ViewTheme,
    /// The width of the text.
    pub(super) width: u16,
    pub(super) now: Time,
}

impl LineWalk<'_> {
    fn items(&self) -> &[TranscriptItem] {
        self.window.items()
    }

    /// Updates the blocks of an item, and returns their number.
    pub(super) fn block_count(&mut self, item: usize) -> usize {
        let items = self.window.items();
        let Some(it) = items.get(item) else { return 0 };
        let before = item.checked_sub(1).map(|before| &items[before].content);
        let is_turn_end = matches!(it.content, crate::transcript::ItemContent::TurnEnd(_));
        let is_joined = before.is_none_or(|before| is_compact(before) && is_compact(&it.content));
        let options = ItemOptions {
            width: self.width,
            is_expanded: can_expand(it) && self.expanded.contains(it.key),
            has_gap: !is_joined && !is_turn_end,
            is_growing: self.window.fold().growing_item() == Some(it.key),
            running_s: running_seconds(it, self.now),
        };
        self.cache.update_item(it, options)
    }

    pub(super) fn lines(&mut self, item: usize, block: usize) -> &[Line<'static>] {
        if block >= self.block_count(item) {
            return &[];
        }
        self.cache.lines(&self.window.items()[item], block, self.theme)
    }

    /// The first line of an item, or of the first item after it that has one.
    pub(super) fn first_line(&mut self, item: usize) -> Option<LinePosition> {
        self.line_from(item, 0)
    }

    /// The line with which an item begins, without the blank line before it.
    pub(super) fn header_line(&mut self, item: usize) -> Option<LinePosition> {
        self.block_count(item);
        let key = self.items().get(item)?.key;
        self.line_from(item, self.cache.first_block(key))
    }

    fn line_from(&mut self, mut item: usize, mut block: usize) -> Option<LinePosition> {
        while item < self.items().len() {
            while block < self.block_count(item) {
                if !self.lines(item, block).is_empty() {
                    return Some(LinePosition { item, block, line: 0 });
                }
                block += 1;
            }
            (item, block) = (item + 1, 0);
        }
        None
    }

    fn line_before(&mut self, mut item: usize, mut block: usize) -> Option<LinePosition> {
        loop {
            while let Some(before) = block.checked_sub(1) {
                block = before;
                if let Some(line) = self.lines(item, block).len().checked_sub(1) {
                    return Some(LinePosition { item, block, line });
                }
            }
            item = item.checked_sub(1)?;
            block = self.block_count(item);
        }
    }

    pub(super) fn last_line(&mut self) -> Option<LinePosition> {
        let count = self.items().len();
        self.line_before(count, 0)
    }

    pub(super) fn next(&mut self, at: LinePosition) -> Option<LinePosition> {
        if at.line + 1 < self.lines(at.item, at.block).len() {
            return Some(LinePosition { line: at.line + 1, ..at });
        }
        self.line_from(at.item, at.block + 1)
    }

    pub(super) fn previous(&mut self, at: LinePosition) -> Option<LinePosition> {
        match at.line.checked_sub(1) {
            Some(line) => Some(LinePosition { line, ..at }),
            None => self.line_before(at.item, at.block),
        }
    }

    /// Moves up by at most this many lines. Returns also how many it were.
    pub(super) fn move_up(&mut self, mut at: LinePosition, count: usize) -> (LinePosition, usize) {
        for moved in 0..count {
            let Some(previous) = self.previous(at) else { return (at, moved) };
            at = previous;
        }
        (at, count)
    }

    pub(super) fn move_down(
        &mut self,
        mut at: LinePosition,
        count: usize,
    ) -> (LinePosition, usize) {
        for moved in 0..count {
            let Some(next) = self.next(at) else { return (at, moved) };
            at = next;
        }
        (at, count)
    }

    /// This line and those below it.
    pub(super) fn collect(&mut self, top: LinePosition, count: usize) -> Vec<LinePosition> {
        let mut lines = vec![top];
        while lines.len() < count
            && let Some(next) = self.next(lines[lines.len() - 1])
        {
            lines.push(next);
        }
        lines
    }

    /// An anchor for a line.
    pub(super) fn anchor(&mut self, at: LinePosition, row: usize) -> Option<ScrollAnchor> {
        let letters = self.lines(at.item, at.block).iter().take(at.line).map(count_letters).sum();
        let item = self.items().get(at.item)?;
        let (key, seq) = (item.key, item.seq);
        let place = self.cache.source(key, at.block)?.place();
        Some(ScrollAnchor { key, seq, place, line: at.line, width: self.width, letters, row })
    }

    /// The line of an anchor, as near as possible. The anchor is changed to the present width.
    pub(super) fn resolve(&mut self, anchor: &mut ScrollAnchor) -> Option<LinePosition> {
        let found = self.window.fold().index_of_seq(anchor.seq);
        let items = self.items();
        let item = match items.get(found) {
            Some(it) if it.key == anchor.key => found,
            _ => items.iter().position(|it| it.key == anchor.key).unwrap_or(found),
        };
        self.block_count(item);
        let key = self.items().get(item)?.key;
        let block = self.cache.find_block(key, anchor.place).filter(|_| key == anchor.key);
        let Some(block) = block else {
            return self.header_line(item);
        };
        let start = self.cache.source(key, block)?.place();
        let letters = anchor.letters + self.letters_between(item, start.start, anchor);
        let is_same = (start, self.width) == (anchor.place, anchor.width);
        let line = anchor.line;
        let lines = self.lines(item, block);
        let line = if is_same {
            line.min(lines.len().saturating_sub(1))
        } else {
            line_of_letter(lines, letters)
        };
        if lines.is_empty() {
            return self.line_from(item, block).or_else(|| self.line_before(item, block));
        }
        (anchor.line, anchor.width, anchor.letters, anchor.place) =
            (line, self.width, letters, start);
        Some(LinePosition { item, block, line })
    }

    /// The letters of a text part from a byte up to the block of an anchor.
    fn letters_between(&self, item: usize, start: usize, anchor: &ScrollAnchor) -> usize {
        let first = BlockSource::part_section(0);
        let parts = self.items()[item].content.parts();
        let part = anchor.place.section.checked_sub(first).and_then(|it| parts.get(it));
        match part {
            Some(MessagePart::Text(text)) => {
                text.get(start..anchor.place.start).map_or(0, count_text_letters)
            }
            _ => 0,
        }
    }

    /// About the event that a line comes from: a long message has many.
    pub(super) fn seq_of(&mut self, at: LinePosition) -> u64 {
        let Some(item) = self.items().get(at.item) else { return 0 };
        let (seq, last_seq, key) = (item.seq, item.last_seq, item.key);
        let bytes = item.content.parts().iter().map(|it| match it {
            MessagePart::Text(text) => text.len(),
            _ => 0,
        });
        let bytes = bytes.sum::<usize>().max(1) as u64;
        let place = self.cache.source(key, at.block).map(BlockSource::place).unwrap_or_default();
        let start = (place.start as u64).min(bytes);
        if self.items()[at.item].content.parts().is_empty() {
            return seq;
        }
        seq + (last_seq - seq) * start / bytes
    }
}
