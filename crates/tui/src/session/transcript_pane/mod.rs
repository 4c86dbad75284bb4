//! The transcript of an open session: a window of its log, scrolled, folded and searched by the reader.
//!
//! Inputs only change the state. [`TranscriptPane::layout`] then lays out what is visible and returns the pages of the
//! log that are needed; it is called after the inputs and before [`TranscriptPane::draw`].

mod find;
mod line_walk;
mod printing;
mod reading;
mod scrolling;
mod selection;

#[cfg(test)]
mod tests;

use super::scroll::{LinePosition, ScrollState};
use crate::{
    hub::{HubRequest, LogRange},
    text::ViewTheme,
    transcript::{ItemKey, LineCache, LogWindow, TranscriptItem},
};
use find::FindState;
pub(crate) use find::{FindStatus, HighlightedRange};
use jackfield_events::{ReceivedEvent, Time};
use line_walk::LineWalk;
use printing::PrintedItems;
use reading::PendingReads;
use std::collections::BTreeMap;

/// The columns at the left: a mark of the selected item, and a mark of its kind.
pub(crate) const GUTTER_WIDTH: u16 = 2;
/// The column at the right shows the position in the log.
pub(crate) const SCROLLBAR_WIDTH: u16 = 1;

/// The transcript of one session.
#[derive(Debug)]
pub(crate) struct TranscriptPane {
    session: String,
    theme: ViewTheme,
    width: u16,
    height: u16,
    now: Time,
    window: LogWindow,
    cache: LineCache,
    expanded: ExpandedItems,
    scroll: ScrollState,
    selected: Option<ItemKey>,
    find: Option<FindState>,
    reads: PendingReads,
    printed: PrintedItems,
    /// New events are being sent.
    is_followed: bool,
    /// Events arrived below the screen since the reader left the end.
    has_news: bool,
    /// What is visible, from the top.
    visible: Vec<LinePosition>,
    is_changed: bool,
    requests: Vec<HubRequest>,
}

/// The items that are expanded.
#[derive(Debug, Default)]
struct ExpandedItems {
    is_all: bool,
    /// Items that differ from the others.
    items: BTreeMap<ItemKey, bool>,
}

impl ExpandedItems {
    fn contains(&self, key: ItemKey) -> bool {
        self.items.get(&key).copied().unwrap_or(self.is_all)
    }
}

impl TranscriptPane {
    /// Opens the end of a log. `end` is the last known event of the session.
    pub(crate) fn new(
        session: String,
        end: u64,
        theme: ViewTheme,
    ) -> (TranscriptPane, Vec<HubRequest>) {
        let mut pane = TranscriptPane {
            session,
            theme,
            width: 80,
            height: 24,
            now: Time(0),
            window: LogWindow::new(end),
            cache: LineCache::default(),
            expanded: ExpandedItems::default(),
            scroll: ScrollState::default(),
            selected: None,
            find: None,
            reads: PendingReads::default(),
            printed: PrintedItems::default(),
            is_followed: false,
            has_news: false,
            visible: Vec::new(),
            is_changed: true,
            requests: Vec::new(),
        };
        pane.read_end();
        let requests = std::mem::take(&mut pane.requests);
        (pane, requests)
    }

    /// New events of the session arrived.
    pub(crate) fn on_events(&mut self, events: Vec<ReceivedEvent>) {
        let has_events = !events.is_empty();
        self.is_changed |= self.window.append_new(events);
        self.has_news |= has_events && !self.is_at_end();
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.is_changed |= (self.width, self.height) != (width, height);
        (self.width, self.height) = (width, height);
    }

    /// Renders what is visible again: code has other colors now.
    pub(crate) fn render_again(&mut self) {
        self.cache.clear();
        self.is_changed = true;
    }

    /// Lays out what is visible. Returns the requests for what is needed of the log.
    pub(crate) fn layout(&mut self, now: Time) -> Vec<HubRequest> {
        // Running calls show how long they have been running.
        self.is_changed |= now.0 / 1000 != self.now.0 / 1000;
        self.now = now;
        if self.is_changed {
            self.place();
            if self.window.is_too_large() {
                self.trim();
                self.place();
            }
        }
        self.request_reads();
        std::mem::take(&mut self.requests)
    }

    /// Whether the end is followed.
    pub(crate) fn is_at_end(&self) -> bool {
        self.scroll == ScrollState::End && !self.window.has_after()
    }

    /// The loaded items.
    pub(crate) fn items(&self) -> &[TranscriptItem] {
        self.window.items()
    }

    fn walk(&mut self) -> LineWalk<'_> {
        LineWalk {
            window: &self.window,
            cache: &mut self.cache,
            expanded: &self.expanded,
            theme: &self.theme,
            width: self.width.saturating_sub(GUTTER_WIDTH + SCROLLBAR_WIDTH).max(1),
            now: self.now,
        }
    }

    fn rows(&self) -> usize {
        usize::from(self.height.max(1))
    }
}

/// What the view draws.
impl TranscriptPane {
    pub(crate) fn theme(&self) -> &ViewTheme {
        &self.theme
    }

    pub(crate) fn window(&self) -> &LogWindow {
        &self.window
    }

    pub(crate) fn is_loading(&self) -> bool {
        !self.window.is_open()
    }

    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Pages before the window are being read, and the window begins on the screen.
    pub(crate) fn is_waiting_for_older(&self) -> bool {
        let is_start = |it: &LinePosition| *it == LinePosition { item: 0, block: 0, line: 0 };
        self.window.has_before() && self.visible.first().is_none_or(is_start)
    }

    /// The visible lines from the top: the item, whether it is its first line, the line, and where the searched text is.
    pub(crate) fn visible_rows(&self) -> impl Iterator<Item = VisibleRow<'_>> {
        self.visible.iter().enumerate().filter_map(|(row, at)| {
            let item = self.window.items().get(at.item)?;
            if self.is_in_scrollback(item) {
                return None;
            }
            let line = self.cache.known_lines(item.key, at.block).get(at.line)?;
            let is_first = at.line == 0 && at.block == self.cache.first_block(item.key);
            let is_gap = at.block < self.cache.first_block(item.key);
            let is_selected = self.selected == Some(item.key) && !is_gap;
            let highlights = self.find.as_ref().map_or(&[][..], |it| it.highlights(row));
            Some(VisibleRow { item, line, is_first, is_selected, highlights })
        })
    }
}

/// One visible line.
#[derive(Debug)]
pub(crate) struct VisibleRow<'a> {
    pub(crate) item: &'a TranscriptItem,
    pub(crate) line: &'a ratatui::text::Line<'static>,
    /// The item begins with it.
    pub(crate) is_first: bool,
    pub(crate) is_selected: bool,
    /// Ranges of bytes of the line that match the searched text, and whether it is the current match.
    pub(crate) highlights: &'a [HighlightedRange],
}
