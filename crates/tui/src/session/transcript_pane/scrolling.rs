//! Scrolling, and which lines are on the screen.

use super::{LinePosition, ScrollState, TranscriptPane};
use crate::transcript::{BlockSource, ItemKey, MessagePart, TranscriptItem};
use std::{collections::BTreeSet, mem::discriminant};

/// The text of an item before the window was folded again.
pub(super) struct TextBefore {
    key: ItemKey,
    seq: u64,
    last_seq: u64,
    parts: usize,
    first_part_bytes: usize,
    /// The last events and the lengths of the texts after it. They may become parts of its text: a tool call between them
    /// moves when its beginning is loaded.
    later_texts: Vec<(u64, usize)>,
}

/// How many texts after that of the reader can be joined with it.
const LATER_TEXTS_MAX: usize = 20;

impl TranscriptPane {
    /// Finds the lines that are on the screen.
    pub(super) fn place(&mut self) {
        self.is_changed = false;
        let rows = self.rows();
        let mut scroll = self.scroll;
        let has_after = self.window.has_after();
        let mut walk = self.walk();
        let top = match &mut scroll {
            ScrollState::End => walk.last_line().map(|it| walk.move_up(it, rows - 1).0),
            ScrollState::Start => walk.first_line(0),
            ScrollState::At(anchor) => {
                walk.resolve(anchor).map(|it| walk.move_up(it, anchor.row.min(rows - 1)).0)
            }
        };
        let mut lines = top.map(|it| walk.collect(it, rows)).unwrap_or_default();
        let missing = rows - lines.len().min(rows);
        // The end is at the bottom, unless the text is shorter than the screen or more of it is being read.
        if missing > 0
            && let Some(top) = lines.first().copied()
            && !has_after
        {
            let (higher, moved) = walk.move_up(top, missing);
            lines = walk.collect(higher, rows);
            if let ScrollState::At(anchor) = &mut scroll {
                anchor.row = anchor.row.min(rows - 1) + moved;
            }
        }
        self.visible = lines;
        self.scroll = scroll;
        self.evict_lines();
        self.update_highlights();
    }

    fn evict_lines(&mut self) {
        let items = self.window.items();
        let visible: BTreeSet<_> =
            self.visible.iter().map(|it| (items[it.item].key, it.block)).collect();
        self.cache.evict(&visible);
    }

    /// Scrolls down by a number of lines, or up if it is negative.
    pub(crate) fn scroll_lines(&mut self, count: isize) {
        self.place();
        let Some(top) = self.visible.first().copied() else { return };
        let mut walk = self.walk();
        let moved = match count {
            ..0 => walk.move_up(top, count.unsigned_abs()).0,
            _ => walk.move_down(top, count.unsigned_abs()).0,
        };
        self.show_at(moved, 0);
        if count > 0 {
            self.follow_if_at_end();
        }
    }

    /// Scrolls down by a number of screens, or up if it is negative. One line stays visible.
    pub(crate) fn scroll_pages(&mut self, count: isize) {
        let page = isize::try_from(self.rows()).unwrap_or(1).saturating_sub(1).max(1);
        self.scroll_lines(count.saturating_mul(page));
    }

    /// Scrolls to the first event of the log.
    pub(crate) fn scroll_to_start(&mut self) {
        if self.window.has_before() {
            self.read_start();
        } else {
            self.scroll = ScrollState::Start;
            self.keep_top();
        }
    }

    /// Scrolls to the end of the log, and follows it.
    pub(crate) fn scroll_to_end(&mut self) {
        self.cancel_jump();
        self.has_news = false;
        self.is_changed = true;
        if self.window.has_after() {
            self.read_end();
        } else {
            self.scroll = ScrollState::End;
        }
    }

    /// Puts a line on a row of the screen.
    pub(super) fn show_at(&mut self, at: LinePosition, row: usize) {
        self.cancel_jump();
        if let Some(anchor) = self.walk().anchor(at, row) {
            self.scroll = ScrollState::At(anchor);
            self.keep_top();
        }
    }

    /// Keeps the line at the top where it is from now on. An older anchor may be a word in the middle of it, from
    /// before the width changed, or a line that is folded.
    pub(super) fn keep_top(&mut self) {
        self.place();
        if let Some(top) = self.visible.first().copied()
            && let Some(anchor) = self.walk().anchor(top, 0)
        {
            self.scroll = ScrollState::At(anchor);
        }
    }

    fn follow_if_at_end(&mut self) {
        let last = self.visible.last().copied();
        let is_end = last.is_some_and(|it| self.walk().next(it).is_none());
        if is_end && !self.window.has_after() {
            self.scroll = ScrollState::End;
            self.has_news = false;
        }
    }

    /// Drops events that are far from the screen.
    pub(super) fn trim(&mut self) {
        let rows = self.rows();
        let (Some(top), Some(bottom)) = (self.visible.first(), self.visible.last()) else { return };
        let (top, bottom) = (*top, *bottom);
        let is_end = self.scroll == ScrollState::End;
        let last = self.window.last();
        let mut walk = self.walk();
        // What is near the screen would be read again at once.
        let above = walk.move_up(top, 2 * rows).0;
        let below = walk.move_down(bottom, 2 * rows).0;
        let first = walk.seq_of(above);
        let last = if is_end { last } else { walk.seq_of(below) };
        let before = self.text_before();
        self.window.trim((first, last));
        self.move_anchor(before);
    }

    /// The text in which the anchor is, before the window is folded again.
    pub(super) fn text_before(&self) -> Option<TextBefore> {
        let ScrollState::At(anchor) = self.scroll else { return None };
        let items = self.window.items();
        let index = items.iter().position(|it| it.key == anchor.key)?;
        let TranscriptItem { key, seq, last_seq, ref content, .. } = items[index];
        let is_same_kind =
            |it: &&TranscriptItem| discriminant(&it.content) == discriminant(content);
        let later = items[index + 1..].iter().filter(is_same_kind).take(LATER_TEXTS_MAX);
        let later_texts = later.map(|it| (it.last_seq, text_bytes(it.content.parts().first())));
        Some(TextBefore {
            key,
            seq,
            last_seq,
            parts: content.parts().len(),
            first_part_bytes: text_bytes(content.parts().first()),
            later_texts: later_texts.collect(),
        })
    }

    /// Moves the anchor as far as its text was moved, because its beginning was loaded or dropped.
    pub(super) fn move_anchor(&mut self, before: Option<TextBefore>) {
        self.is_changed = true;
        let (Some(before), ScrollState::At(anchor)) = (before, &mut self.scroll) else { return };
        let items = self.window.items();
        let Some(item) = before.find_item(items) else { return };
        let parts = item.content.parts();
        let first = BlockSource::part_section(0);
        let Some(part) = anchor.place.section.checked_sub(first).filter(|it| *it < before.parts)
        else {
            return;
        };
        let Some(moved_part) = (part + parts.len()).checked_sub(before.parts) else {
            anchor.place = crate::transcript::BlockPlace::default();
            return;
        };
        (anchor.key, anchor.seq) = (item.key, item.seq);
        anchor.place.section = first + moved_part;
        if part == 0 {
            let bytes = text_bytes(parts.get(moved_part));
            let known_bytes = before.first_part_bytes + before.joined_bytes(item);
            anchor.place.start = (anchor.place.start + bytes).saturating_sub(known_bytes);
            // A block that is not the first any more begins with a blank line: its lines have other numbers.
            anchor.width = 0;
        }
    }
}

impl TextBefore {
    /// The item that has the text now.
    fn find_item<'a>(&self, items: &'a [TranscriptItem]) -> Option<&'a TranscriptItem> {
        let has_text = |it: &&TranscriptItem| {
            it.seq <= self.seq && self.last_seq <= it.last_seq && it.content.parts().len() == 1
        };
        let same = items.iter().find(|it| it.key == self.key);
        same.or_else(|| items.iter().find(has_text).filter(|_| self.parts == 1))
    }

    /// The bytes of the texts after it that are in this item now.
    fn joined_bytes(&self, item: &TranscriptItem) -> usize {
        if (self.parts, item.content.parts().len()) != (1, 1) {
            return 0;
        }
        let joined = self.later_texts.iter().filter(|(last_seq, _)| *last_seq <= item.last_seq);
        joined.map(|(_, bytes)| bytes).sum()
    }
}

fn text_bytes(part: Option<&MessagePart>) -> usize {
    match part {
        Some(MessagePart::Text(text)) => text.len(),
        _ => 0,
    }
}
