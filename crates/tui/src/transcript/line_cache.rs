//! The rendered lines of items.
//!
//! Lines are kept by item, revision, width and state. When a message grows, only its last block is rendered again.

use super::{
    BlockSource, ItemContent, ItemKey, MessagePart, TranscriptItem,
    render::{BlockPlace, ItemOptions, item_blocks, render_block},
    split_markdown,
};
use crate::text::ViewTheme;
use ratatui::text::Line;
use std::collections::{BTreeMap, BTreeSet};

/// When more lines are held, those that are not visible are dropped.
pub(crate) const LINES_MAX: usize = 4000;

/// The rendered blocks of the items that were visible lately.
#[derive(Debug, Default)]
pub(crate) struct LineCache {
    items: BTreeMap<ItemKey, ItemLines>,
    lines: usize,
    /// How many blocks were rendered, and how many lines that gave.
    #[cfg(test)]
    pub(crate) rendered: (usize, usize),
}

#[derive(Debug)]
struct ItemLines {
    revision: u64,
    seq: u64,
    options: ItemOptions,
    blocks: Vec<BlockLines>,
}

#[derive(Debug)]
struct BlockLines {
    source: BlockSource,
    lines: Option<Vec<Line<'static>>>,
}

impl LineCache {
    /// Divides the item into blocks, if it has changed. Returns their number.
    pub(crate) fn update_item(&mut self, item: &TranscriptItem, options: ItemOptions) -> usize {
        let known = self.items.get_mut(&item.key);
        if let Some(known) = &known
            && known.revision == item.revision
            && known.options == options
        {
            return known.blocks.len();
        }
        let grown = known.filter(|it| it.seq == item.seq && it.can_grow(item, &options));
        if let Some(known) = grown {
            self.lines -= known.grow(item);
            (known.revision, known.options) = (item.revision, options);
            return known.blocks.len();
        }
        let sources = item_blocks(item, &options).into_iter();
        let blocks: Vec<_> = sources.map(|source| BlockLines { source, lines: None }).collect();
        let count = blocks.len();
        let new = ItemLines { revision: item.revision, seq: item.seq, options, blocks };
        let old = self.items.insert(item.key, new);
        self.lines -= old.map_or(0, |it| it.line_count());
        count
    }

    /// Drops all lines.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.lines = 0;
    }

    /// The lines of a block of an item that was updated.
    pub(crate) fn lines(
        &mut self,
        item: &TranscriptItem,
        block: usize,
        theme: &ViewTheme,
    ) -> &[Line<'static>] {
        let Some(known) = self.items.get_mut(&item.key) else { return &[] };
        let Some(block) = known.blocks.get_mut(block) else { return &[] };
        if block.lines.is_none() {
            let lines = render_block(item, &block.source, &known.options, theme);
            self.lines += lines.len();
            #[cfg(test)]
            {
                self.rendered = (self.rendered.0 + 1, self.rendered.1 + lines.len());
            }
            block.lines = Some(lines);
        }
        block.lines.as_deref().unwrap_or_default()
    }

    /// Lines that were rendered before.
    pub(crate) fn known_lines(&self, key: ItemKey, block: usize) -> &[Line<'static>] {
        let block = self.items.get(&key).and_then(|it| it.blocks.get(block));
        block.and_then(|it| it.lines.as_deref()).unwrap_or_default()
    }

    pub(crate) fn source(&self, key: ItemKey, block: usize) -> Option<&BlockSource> {
        Some(&self.items.get(&key)?.blocks.get(block)?.source)
    }

    /// The last block of the item that begins at a place or before it, in the same section.
    pub(crate) fn find_block(&self, key: ItemKey, place: BlockPlace) -> Option<usize> {
        let blocks = &self.items.get(&key)?.blocks;
        let index = blocks.partition_point(|it| it.source.place() <= place).checked_sub(1)?;
        (blocks[index].source.place().section == place.section).then_some(index)
    }

    /// The first block that is not blank.
    pub(crate) fn first_block(&self, key: ItemKey) -> usize {
        usize::from(self.source(key, 0) == Some(&BlockSource::Gap))
    }

    /// Drops the lines of all other blocks if too many are held.
    pub(crate) fn evict(&mut self, visible: &BTreeSet<(ItemKey, usize)>) {
        if self.lines <= LINES_MAX {
            return;
        }
        self.items.retain(|key, _| visible.range((*key, 0)..=(*key, usize::MAX)).next().is_some());
        self.lines = 0;
        for (key, item) in &mut self.items {
            for (index, block) in item.blocks.iter_mut().enumerate() {
                if !visible.contains(&(*key, index)) {
                    block.lines = None;
                }
                self.lines += block.lines.as_ref().map_or(0, Vec::len);
            }
        }
    }

    #[cfg(test)]
    /// How many lines are held.
    pub(crate) fn line_count(&self) -> usize {
        self.lines
    }
}

impl ItemLines {
    fn line_count(&self) -> usize {
        self.blocks.iter().filter_map(|it| it.lines.as_ref()).map(Vec::len).sum()
    }

    /// Whether the item differs only at the end of its last text.
    fn can_grow(&self, item: &TranscriptItem, options: &ItemOptions) -> bool {
        let is_text =
            matches!(item.content, ItemContent::Message { .. } | ItemContent::Thought { .. });
        let is_same =
            ItemOptions { is_growing: self.options.is_growing, ..*options } == self.options;
        let last = self.blocks.last().map(|it| &it.source);
        is_text && is_same && matches!(last, Some(BlockSource::Markdown { .. }))
    }

    /// Divides the text again from its last block on. Returns how many lines are not valid any more.
    fn grow(&mut self, item: &TranscriptItem) -> usize {
        let before = self.line_count();
        if let Some(BlockSource::Markdown { part, block }) = self.blocks.pop().map(|it| it.source) {
            let parts = item.content.parts();
            if let Some(MessagePart::Text(text)) = parts.get(part) {
                let block =
                    super::MarkdownBlock { range: block.range.start..block.range.start, ..block };
                for block in split_markdown(text, block) {
                    self.push(BlockSource::Markdown { part, block });
                }
            }
            for (part, it) in parts.iter().enumerate().skip(part + 1) {
                match it {
                    MessagePart::Text(text) => {
                        for block in split_markdown(text, super::MarkdownBlock::default()) {
                            self.push(BlockSource::Markdown { part, block });
                        }
                    }
                    _ => self.push(BlockSource::Part { part, range: 0..0 }),
                }
            }
        }
        // The thought's header has its duration.
        for it in &mut self.blocks {
            if it.source == BlockSource::Header {
                it.lines = None;
            }
        }
        before - self.line_count()
    }

    fn push(&mut self, source: BlockSource) {
        self.blocks.push(BlockLines { source, lines: None });
    }
}
