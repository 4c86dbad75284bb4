//! Writes blocks of Markdown: their prefixes, their distances, and their lines in the width that is left.

use super::table::TableContent;
use crate::text::{
    ViewTheme, cell_width, sanitize_line, span_list::SpanList, truncate_cells, wrap::wrap_spans,
};
use ratatui::{
    style::Style,
    text::{Line, Span},
};

/// Text gets at least this part of the width: deeper quotes and lists are not indented further.
const TEXT_WIDTH_DIVISOR: usize = 2;
const QUOTE_BAR: &str = "│ ";
const CODE_INDENT: &str = "  ";
const RULE_CELLS_MAX: usize = 40;

pub(super) struct BlockWriter<'a> {
    theme: &'a ViewTheme,
    width: usize,
    lines: Vec<Line<'static>>,
    prefixes: Vec<BlockPrefix>,
    /// For each open list the number of its next item; `None` for bullets.
    lists: Vec<Option<u64>>,
    inline: SpanList,
    /// An empty line is due before the next block.
    needs_gap: bool,
}

#[derive(Debug)]
enum BlockPrefix {
    Quote,
    /// The marker of an item, until it is written; then as many spaces.
    Item {
        marker: String,
        is_written: bool,
    },
}

impl BlockPrefix {
    fn width(&self) -> usize {
        match self {
            BlockPrefix::Quote => 2,
            BlockPrefix::Item { marker, .. } => cell_width(marker),
        }
    }
}

impl<'a> BlockWriter<'a> {
    pub(super) fn new(width: u16, theme: &'a ViewTheme) -> BlockWriter<'a> {
        BlockWriter {
            theme,
            width: usize::from(width.max(1)),
            lines: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            inline: SpanList::default(),
            needs_gap: false,
        }
    }

    pub(super) fn into_lines(mut self) -> Vec<Line<'static>> {
        self.end_line_if_open();
        self.lines
    }

    pub(super) fn push_inline(&mut self, text: &str, style: Style) {
        self.inline.push(text, style);
    }

    pub(super) fn take_inline(&mut self) -> Vec<Span<'static>> {
        self.inline.take()
    }

    pub(super) fn start_block(&mut self) {
        self.end_line_if_open();
        if std::mem::take(&mut self.needs_gap) && !self.lines.is_empty() {
            let mut prefix = self.prefix_spans(false);
            while prefix.last().is_some_and(|it| it.content.trim().is_empty()) {
                prefix.pop();
            }
            self.lines.push(Line::from(prefix));
        }
    }

    pub(super) fn end_block(&mut self) {
        self.end_line_if_open();
        self.needs_gap = true;
    }

    pub(super) fn start_quote(&mut self) {
        self.start_block();
        self.prefixes.push(BlockPrefix::Quote);
    }

    pub(super) fn end_quote(&mut self) {
        self.end_block();
        self.prefixes.pop();
    }

    pub(super) fn start_list(&mut self, first: Option<u64>) {
        if self.lists.is_empty() {
            self.start_block();
        } else {
            // A list inside of an item follows its text.
            self.end_line_if_open();
            self.needs_gap = false;
        }
        self.lists.push(first);
    }

    pub(super) fn end_list(&mut self) {
        self.lists.pop();
        self.needs_gap |= self.lists.is_empty();
    }

    pub(super) fn start_item(&mut self) {
        self.start_block();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.prefixes.push(BlockPrefix::Item { marker, is_written: false });
    }

    /// A task has a box instead of a bullet.
    pub(super) fn set_task_marker(&mut self, is_done: bool) {
        if let Some(BlockPrefix::Item { marker, .. }) = self.prefixes.last_mut() {
            (if is_done { "[x] " } else { "[ ] " }).clone_into(marker);
        }
    }

    pub(super) fn end_item(&mut self) {
        self.end_line_if_open();
        if matches!(self.prefixes.last(), Some(BlockPrefix::Item { is_written: false, .. })) {
            self.end_line();
        }
        self.prefixes.pop();
    }

    pub(super) fn end_line_if_open(&mut self) {
        if !self.inline.is_empty() {
            self.end_line();
        }
    }

    /// Writes the inline text, wrapped.
    pub(super) fn end_line(&mut self) {
        let spans = self.inline.take();
        let width = self.text_width();
        for line in wrap_spans(spans, width, width) {
            self.write_line(line);
        }
    }

    pub(super) fn write_rule(&mut self) {
        self.start_block();
        let rule = "─".repeat(self.text_width().min(RULE_CELLS_MAX));
        self.write_line(vec![Span::styled(rule, self.theme.border)]);
        self.needs_gap = true;
    }

    pub(super) fn write_code(&mut self, language: &str, code: Vec<Line<'static>>) {
        self.start_block();
        let indent = if self.text_width() > 8 { CODE_INDENT } else { "" };
        let width = self.text_width() - indent.len();
        let language = sanitize_line(language);
        if !language.trim().is_empty() {
            let label = format!("{indent}{}", truncate_cells(language.trim(), width));
            self.write_line(vec![Span::styled(label, self.theme.dim)]);
        }
        for line in code {
            for mut spans in wrap_spans(line.spans, width, width) {
                if !indent.is_empty() && !spans.is_empty() {
                    spans.insert(0, Span::raw(indent));
                }
                self.write_line(spans);
            }
        }
        self.needs_gap = true;
    }

    pub(super) fn write_table(&mut self, table: TableContent) {
        self.start_block();
        for line in table.into_lines(self.text_width(), self.theme) {
            self.write_line(line);
        }
        self.needs_gap = true;
    }

    fn write_line(&mut self, spans: Vec<Span<'static>>) {
        let mut line = self.prefix_spans(true);
        line.extend(spans);
        for prefix in &mut self.prefixes {
            if let BlockPrefix::Item { is_written, .. } = prefix {
                *is_written = true;
            }
        }
        self.lines.push(Line::from(line));
    }

    /// The prefixes that have room; `with_markers` is false for an empty line, which must not use up a marker.
    fn prefix_spans(&self, with_markers: bool) -> Vec<Span<'static>> {
        let prefixes = &self.prefixes[..self.shown_prefixes().0];
        let to_span = |prefix: &BlockPrefix| match prefix {
            BlockPrefix::Quote => Span::styled(QUOTE_BAR, self.theme.border),
            BlockPrefix::Item { marker, is_written: false } if with_markers => {
                Span::styled(marker.clone(), self.theme.accent)
            }
            BlockPrefix::Item { marker, .. } => Span::raw(" ".repeat(cell_width(marker))),
        };
        prefixes.iter().map(to_span).collect()
    }

    /// The number of prefixes that have room, and their width.
    fn shown_prefixes(&self) -> (usize, usize) {
        let mut filled = 0;
        for (count, prefix) in self.prefixes.iter().enumerate() {
            let next = filled + prefix.width();
            if next > self.width / TEXT_WIDTH_DIVISOR {
                return (count, filled);
            }
            filled = next;
        }
        (self.prefixes.len(), filled)
    }

    fn text_width(&self) -> usize {
        (self.width - self.shown_prefixes().1).max(1)
    }
}
