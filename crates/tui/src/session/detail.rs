//! A page with one item of the transcript in full, or with the clients of the session.

use crate::{keymap::KeyAction, transcript::ItemKey};
use ratatui::text::Line;

/// Lines that can be scrolled.
#[derive(Debug)]
pub(crate) struct DetailPage {
    content: DetailContent,
    lines: Vec<Line<'static>>,
    /// The item, its revision and the width for which the lines were made.
    rendered: Option<(ItemKey, u64, u16)>,
    first: usize,
    height: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailContent {
    /// The selected item of the transcript.
    Item,
    Clients,
}

impl DetailPage {
    pub(crate) fn new(content: DetailContent) -> DetailPage {
        DetailPage { content, lines: Vec::new(), rendered: None, first: 0, height: 1 }
    }

    pub(crate) fn content(&self) -> DetailContent {
        self.content
    }

    pub(crate) fn title(&self) -> &'static str {
        match self.content {
            DetailContent::Item => "Details",
            DetailContent::Clients => "Clients",
        }
    }

    /// Whether the lines have to be made: a long output takes a while.
    pub(crate) fn needs_lines(&mut self, item: ItemKey, revision: u64, width: u16) -> bool {
        let rendered = Some((item, revision, width));
        std::mem::replace(&mut self.rendered, rendered) != rendered
    }

    /// The lines have to be made again.
    pub(crate) fn render_again(&mut self) {
        self.rendered = None;
    }

    /// Replaces the lines, after the item has changed or the page has another width.
    pub(crate) fn set_lines(&mut self, lines: Vec<Line<'static>>) {
        self.lines = lines;
        self.first = self.first.min(self.last_first());
    }

    pub(crate) fn set_height(&mut self, height: u16) {
        self.height = usize::from(height).max(1);
        self.first = self.first.min(self.last_first());
    }

    pub(crate) fn visible_lines(&self) -> &[Line<'static>] {
        let end = (self.first + self.height).min(self.lines.len());
        &self.lines[self.first..end]
    }

    /// The first visible line, counted from 1, the last one, and the number of lines.
    pub(crate) fn position(&self) -> (usize, usize, usize) {
        let last = (self.first + self.height).min(self.lines.len());
        ((self.first + 1).min(last), last, self.lines.len())
    }

    /// Scrolls. Other actions have no effect.
    pub(crate) fn scroll(&mut self, action: KeyAction) {
        let page = self.height.saturating_sub(1).max(1);
        let first = match action {
            KeyAction::MoveDown => self.first + 1,
            KeyAction::MoveUp => self.first.saturating_sub(1),
            KeyAction::MovePageDown => self.first + page,
            KeyAction::MovePageUp => self.first.saturating_sub(page),
            KeyAction::MoveFirst => 0,
            KeyAction::MoveLast => usize::MAX,
            _ => self.first,
        };
        self.first = first.min(self.last_first());
    }

    fn last_first(&self) -> usize {
        self.lines.len().saturating_sub(self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrolling_ends_at_the_last_line() {
        let mut page = DetailPage::new(DetailContent::Item);
        page.set_height(4);
        page.set_lines((0..10).map(|it| Line::from(it.to_string())).collect());
        page.scroll(KeyAction::MoveLast);
        assert_eq!(page.position(), (7, 10, 10));
        page.scroll(KeyAction::MovePageUp);
        assert_eq!(page.position(), (4, 7, 10));
        page.set_lines(vec![Line::from("one")]);
        assert_eq!((page.position(), page.visible_lines().len()), ((1, 1, 1), 1));
    }

    #[test]
    fn lines_are_made_once_for_each_revision_and_width() {
        let mut page = DetailPage::new(DetailContent::Item);
        assert!(page.needs_lines(ItemKey(1), 1, 80));
        assert!(!page.needs_lines(ItemKey(1), 1, 80));
        assert!(page.needs_lines(ItemKey(1), 2, 80) && page.needs_lines(ItemKey(1), 2, 40));
    }
}
