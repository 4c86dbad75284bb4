//! Finished items for the scrollback, if the frame is below the prompt of the shell: each is printed once, and is not
//! shown in the frame while that follows the end.

use super::{ScrollState, TranscriptPane};
use crate::transcript::{ItemContent, TranscriptItem, item_mark};
use ratatui::text::{Line, Span};

/// How far the transcript is in the scrollback.
#[derive(Debug, Default)]
pub(super) struct PrintedItems {
    /// Items that begin up to this event are finished; `None` before the end of the log was loaded.
    upto: Option<u64>,
    has_lines: bool,
}

impl TranscriptPane {
    /// The lines of the items that have finished since the last call. Those that were finished when the session was
    /// opened are not printed.
    pub(crate) fn take_finished_lines(&mut self) -> Vec<Line<'static>> {
        if self.is_loading() || self.window.has_after() {
            return Vec::new();
        }
        let items = self.window.items();
        let start = self.printed.upto.map_or(0, |upto| items.partition_point(|it| it.seq <= upto));
        let end = self.finished_end(start);
        let upto = match (items.get(end), items.last()) {
            (Some(unfinished), _) => unfinished.seq.saturating_sub(1),
            (None, last) => last.map_or(0, |it| it.seq),
        };
        let is_first = self.printed.upto.is_none();
        self.printed.upto = self.printed.upto.max(Some(upto));
        let mut lines = Vec::new();
        if !is_first {
            (start..end).for_each(|it| self.print_item(it, &mut lines));
        }
        self.printed.has_lines |= !lines.is_empty();
        lines
    }

    /// Whether the scrollback has this item, so that the frame does not show it.
    pub(super) fn is_in_scrollback(&self, item: &TranscriptItem) -> bool {
        let is_printed = self.printed.has_lines && Some(item.seq) <= self.printed.upto;
        self.scroll == ScrollState::End && is_printed && !self.is_running_plan(item)
    }

    /// The index of the first item from `start` on that has not finished. Items of one event are printed together.
    fn finished_end(&self, start: usize) -> usize {
        let items = self.window.items();
        let is_open = |it: &usize| !self.is_finished(*it);
        let mut end = (start..items.len()).find(is_open).unwrap_or(items.len());
        while start < end && end < items.len() && items[end - 1].seq == items[end].seq {
            end -= 1;
        }
        end
    }

    fn is_finished(&self, index: usize) -> bool {
        let items = self.window.items();
        let (item, is_last) = (&items[index], index + 1 == items.len());
        match &item.content {
            // More of it can follow.
            ItemContent::Message { is_late: true, .. } => !is_last,
            ItemContent::Message { .. } | ItemContent::Thought { .. } => {
                self.window.fold().growing_item() != Some(item.key)
            }
            ItemContent::ToolCall(call) => call.status.has_ended(),
            ItemContent::Request(request) => request.answer.is_some() || !self.is_running(item),
            // A plan is printed with the end of its turn, and does not hold up what follows it.
            ItemContent::Prompt { .. }
            | ItemContent::Plan(_)
            | ItemContent::Notice { .. }
            | ItemContent::TurnEnd(_) => true,
        }
    }

    fn is_running(&self, item: &TranscriptItem) -> bool {
        self.window.fold().running_turn() == Some(item.turn)
    }

    fn is_running_plan(&self, item: &TranscriptItem) -> bool {
        matches!(item.content, ItemContent::Plan(_)) && self.is_running(item)
    }

    fn print_item(&mut self, index: usize, lines: &mut Vec<Line<'static>>) {
        let items = self.window.items();
        match &items[index].content {
            ItemContent::Plan(_) => {}
            ItemContent::TurnEnd(_) => {
                let turn = items[index].turn;
                let is_plan = |it: &TranscriptItem| {
                    it.turn == turn && matches!(it.content, ItemContent::Plan(_))
                };
                let plans: Vec<usize> = (0..index).filter(|it| is_plan(&items[*it])).collect();
                for plan in plans {
                    self.push_lines(plan, lines);
                }
                self.push_lines(index, lines);
            }
            _ => self.push_lines(index, lines),
        }
    }

    /// The lines of an item with its mark, as the frame shows them.
    fn push_lines(&mut self, index: usize, lines: &mut Vec<Line<'static>>) {
        let mut walk = self.walk();
        let count = walk.block_count(index);
        let item = &walk.window.items()[index];
        let first_block = walk.cache.first_block(item.key);
        let (mark, style) = item_mark(&item.content, walk.theme);
        for block in 0..count {
            for (row, line) in walk.lines(index, block).iter().enumerate() {
                let is_first = block == first_block && row == 0;
                let mark = if is_first { mark } else { " " };
                let mut spans = vec![Span::styled(mark, style), Span::raw(" ")];
                spans.extend(line.spans.iter().cloned());
                lines.push(Line::from(spans).style(line.style));
            }
        }
    }
}
