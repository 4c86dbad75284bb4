//! The selected item: copied, forked from, expanded.

use super::{LinePosition, ScrollState, TranscriptPane};
use crate::{
    text::sanitize_text,
    transcript::{
        ItemContent, ItemKey, ItemOptions, ToolOutput, TranscriptItem, can_expand, item_blocks,
        parts_text, render_block,
    },
};
use ratatui::text::Line;

/// States of items that are remembered.
const REMEMBERED_ITEMS_MAX: usize = 1000;

impl TranscriptPane {
    /// Selects the next item, and scrolls to it.
    pub(crate) fn select_next(&mut self) {
        let next = match self.selected_index() {
            Some(index) => (index + 1).min(self.window.items().len().saturating_sub(1)),
            None => self.visible_items().first().copied().unwrap_or(0),
        };
        self.select_item(next);
    }

    pub(crate) fn select_previous(&mut self) {
        let previous = match self.selected_index() {
            Some(index) => index.saturating_sub(1),
            None => self.visible_items().last().copied().unwrap_or(0),
        };
        self.select_item(previous);
    }

    /// Selects the item at a row of the drawn area, for a mouse click.
    pub(crate) fn select_row(&mut self, row: u16) {
        let key = self.visible_rows().nth(usize::from(row)).map(|it| it.item.key);
        self.selected = key.or(self.selected);
    }

    pub(crate) fn clear_selection(&mut self) {
        self.selected = None;
    }

    /// The selected item.
    pub(crate) fn selected_item(&self) -> Option<&TranscriptItem> {
        self.window.items().get(self.selected_index()?)
    }

    /// The last event of the selected item, from which a session can be forked.
    pub(crate) fn selected_seq(&self) -> Option<u64> {
        self.selected_item().map(|it| it.last_seq)
    }

    /// The text of the selected item, to be copied.
    pub(crate) fn selected_text(&self) -> Option<String> {
        self.selected_item().map(item_text)
    }

    /// The code blocks of the selected item, to be copied.
    pub(crate) fn selected_code(&self) -> Option<String> {
        let text = self.selected_text()?;
        let mut code = String::new();
        let mut is_code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                code.push_str(line);
                code.push('\n');
            }
        }
        (!code.is_empty()).then_some(code)
    }

    /// The text of the agent's last message.
    pub(crate) fn last_message_text(&self) -> Option<String> {
        let is_message = |it: &&TranscriptItem| matches!(it.content, ItemContent::Message { .. });
        self.window.items().iter().rev().find(is_message).map(item_text)
    }

    /// All lines of the selected item, for a page of its own.
    pub(crate) fn selected_lines(&self, width: u16) -> Vec<Line<'static>> {
        let Some(item) = self.selected_item() else { return Vec::new() };
        self.item_lines(item, width)
    }

    fn item_lines(&self, item: &TranscriptItem, width: u16) -> Vec<Line<'static>> {
        let running_s = crate::transcript::running_seconds(item, self.now);
        let options =
            ItemOptions { width, is_expanded: true, has_gap: false, is_growing: false, running_s };
        let blocks = item_blocks(item, &options);
        blocks.iter().flat_map(|it| render_block(item, it, &options, &self.theme)).collect()
    }

    /// What is loaded as plain lines, to be printed into the scrollback.
    pub(crate) fn plain_lines(&self, width: u16) -> Vec<String> {
        let mut lines = Vec::new();
        for item in self.window.items() {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let rendered = self.item_lines(item, width);
            lines.extend(rendered.iter().map(|it| it.to_string().trim_end().to_owned()));
        }
        lines
    }

    /// Expands or folds the selected item, or the last one on the screen that can be folded.
    pub(crate) fn toggle_item(&mut self) {
        self.place();
        let items = self.window.items();
        let last = || {
            let visible = self.visible_items();
            visible.into_iter().rev().find(|it| items.get(*it).is_some_and(can_expand))
        };
        let Some(index) = self.selected_index().or_else(last) else { return };
        let key = items[index].key;
        if !can_expand(&items[index]) {
            return;
        }
        let is_expanded = self.expanded.contains(key);
        self.keep_header_in_place(index);
        self.set_expanded(key, !is_expanded);
        self.keep_top();
    }

    /// The first line of an item stays on its row; if it is above the screen, it comes to the top.
    fn keep_header_in_place(&mut self, index: usize) {
        let Some(header) = self.walk().header_line(index) else { return };
        let row = self.visible.iter().position(|it| *it == header).unwrap_or(0);
        if let Some(anchor) = self.walk().anchor(header, row) {
            self.scroll = ScrollState::At(anchor);
        }
    }

    pub(super) fn set_expanded(&mut self, key: ItemKey, is_expanded: bool) {
        if self.expanded.items.len() >= REMEMBERED_ITEMS_MAX {
            let items = self.window.items();
            self.expanded.items.retain(|key, _| items.iter().any(|it| it.key == *key));
        }
        self.expanded.items.insert(key, is_expanded);
        self.is_changed = true;
    }

    /// Expands all items, or folds them.
    pub(crate) fn toggle_all_items(&mut self) {
        self.place();
        let index = self.selected_index().filter(|it| self.visible_items().contains(it));
        if self.scroll != ScrollState::End {
            match (index, self.visible.first().copied()) {
                (Some(index), _) => self.keep_header_in_place(index),
                (None, Some(top)) => self.show_at(top, 0),
                (None, None) => {}
            }
        }
        self.expanded.is_all = !self.expanded.is_all;
        self.expanded.items.clear();
        self.is_changed = true;
        if self.scroll != ScrollState::End {
            self.keep_top();
        }
    }

    pub(super) fn selected_index(&self) -> Option<usize> {
        let key = self.selected?;
        self.window.items().iter().position(|it| it.key == key)
    }

    /// The items whose first line is on the screen, or all that are on the screen.
    fn visible_items(&self) -> Vec<usize> {
        let mut items: Vec<usize> = self.visible.iter().map(|it| it.item).collect();
        items.dedup();
        items
    }

    fn select_item(&mut self, index: usize) {
        let Some(key) = self.window.items().get(index).map(|it| it.key) else { return };
        self.selected = Some(key);
        self.place();
        let Some(header) = self.walk().header_line(index) else { return };
        if self.visible.contains(&header) {
            return self.keep_top();
        }
        let is_above = self.visible.first().is_some_and(|top| header < *top);
        let row = if is_above { 0 } else { self.row_for_whole_item(header) };
        self.show_at(header, row);
    }

    /// The row on which an item below the screen is shown as a whole, or as much as fits.
    fn row_for_whole_item(&mut self, header: LinePosition) -> usize {
        let rows = self.rows();
        let lines = self.walk().collect(header, rows);
        let count = lines.iter().take_while(|it| it.item == header.item).count();
        rows - count.clamp(1, rows)
    }
}

/// The text of an item, as its author wrote it.
pub(super) fn item_text(item: &TranscriptItem) -> String {
    match &item.content {
        ItemContent::ToolCall(call) => {
            let mut texts = vec![call.title.clone()];
            texts.extend(call.command().filter(|it| *it != call.title));
            for it in &call.output {
                if let ToolOutput::Diff { path, new, .. } = it {
                    texts.extend([path.clone(), new.clone()]);
                }
            }
            texts.push(call.output_text());
            texts.retain(|it| !it.is_empty());
            sanitize_text(&texts.join("\n")).into_owned()
        }
        ItemContent::Plan(entries) => {
            let line = |it: &crate::transcript::PlanEntry| {
                let mark = if it.status == "completed" { "x" } else { " " };
                format!("- [{mark}] {}", it.content)
            };
            entries.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        ItemContent::Request(request) => request.title.clone(),
        ItemContent::Notice { text, detail, .. } if detail.is_empty() => text.clone(),
        ItemContent::Notice { text, detail, .. } => format!("{text}\n{detail}"),
        ItemContent::TurnEnd(end) => end.detail.clone(),
        content => parts_text(content.parts()),
    }
}
