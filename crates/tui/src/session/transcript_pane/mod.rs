//! The transcript of an open session: a window of its log, scrolled, folded and searched by the reader.
//!
//! Inputs only change the state. [`TranscriptPane::layout`] then lays out what is visible and returns the pages of the
//! log that are needed; it is called after the inputs and before [`TranscriptPane::draw`].

#![allow(
    clippy::unused_self,
    clippy::needless_pass_by_value,
    reason = "the methods are being written"
)]

use crate::{
    hub::{HubRequest, LogPage, LogRange},
    text::{ViewTheme, render_markdown},
    transcript::{ItemContent, MessagePart, TranscriptFold, TranscriptItem},
};
use jackfield_events::{ReceivedEvent, Time};
use ratatui::{buffer::Buffer, layout::Rect, text::Line, widgets::Widget};

const PAGE_EVENTS: u64 = 500;

/// The state of the search for a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FindStatus {
    /// The text was found; the item that contains it is selected.
    Found,
    /// Pages of the log are being searched.
    Searching,
    NotFound,
}

/// The transcript of one session.
#[derive(Debug)]
pub(crate) struct TranscriptPane {
    session: String,
    theme: ViewTheme,
    width: u16,
    height: u16,
    fold: TranscriptFold,
    requests: Vec<HubRequest>,
    lines: Vec<Line<'static>>,
}

impl TranscriptPane {
    /// Opens the end of a log. `end` is the last known event of the session.
    pub(crate) fn new(
        session: String,
        _end: u64,
        theme: ViewTheme,
    ) -> (TranscriptPane, Vec<HubRequest>) {
        let (range, limit) = (LogRange::End, PAGE_EVENTS);
        let request = HubRequest::ReadLog { session: session.clone(), range, limit };
        let (fold, requests, lines) = (TranscriptFold::default(), Vec::new(), Vec::new());
        let pane = TranscriptPane { session, theme, width: 0, height: 0, fold, requests, lines };
        (pane, vec![request])
    }

    /// A page of the log arrived.
    pub(crate) fn on_page(&mut self, page: LogPage) {
        self.on_events(page.events);
        let (session, after) = (self.session.clone(), page.end);
        self.requests.push(HubRequest::Follow { session, after });
    }

    /// New events of the session arrived.
    pub(crate) fn on_events(&mut self, events: Vec<ReceivedEvent>) {
        for it in &events {
            self.fold.append(it);
        }
    }

    /// A page of the log could not be read. It is read again later.
    pub(crate) fn on_read_failed(&mut self, _range: LogRange) {}

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        (self.width, self.height) = (width, height);
    }

    /// Lays out what is visible. Returns the requests for what is needed of the log.
    pub(crate) fn layout(&mut self, _now: Time) -> Vec<HubRequest> {
        let texts = self.fold.items().iter().map(item_text);
        self.lines =
            texts.flat_map(|it| render_markdown(&it, self.width.max(1), &self.theme)).collect();
        std::mem::take(&mut self.requests)
    }

    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let first = self.lines.len().saturating_sub(usize::from(area.height));
        for (row, line) in area.rows().zip(&self.lines[first..]) {
            line.render(row, buffer);
        }
    }

    /// Scrolls down by a number of lines, or up if it is negative.
    pub(crate) fn scroll_lines(&mut self, _count: isize) {}

    /// Scrolls down by a number of screens, or up if it is negative.
    pub(crate) fn scroll_pages(&mut self, _count: isize) {}

    /// Scrolls to the first event of the log.
    pub(crate) fn scroll_to_start(&mut self) {}

    /// Scrolls to the end of the log, and follows it.
    pub(crate) fn scroll_to_end(&mut self) {}

    /// Whether the end is visible and followed.
    pub(crate) fn is_at_end(&self) -> bool {
        true
    }

    /// Selects the next item, and scrolls to it.
    pub(crate) fn select_next(&mut self) {}

    pub(crate) fn select_previous(&mut self) {}

    /// Selects the item at a row of the drawn area, for a mouse click.
    pub(crate) fn select_row(&mut self, _row: u16) {}

    pub(crate) fn clear_selection(&mut self) {}

    /// The selected item.
    pub(crate) fn selected_item(&self) -> Option<&TranscriptItem> {
        None
    }

    /// The text of the selected item, to be copied.
    pub(crate) fn selected_text(&self) -> Option<String> {
        None
    }

    /// The code blocks of the selected item, to be copied.
    pub(crate) fn selected_code(&self) -> Option<String> {
        None
    }

    /// The last event of the selected item, from which a session can be forked.
    pub(crate) fn selected_seq(&self) -> Option<u64> {
        None
    }

    /// All lines of the selected item, for a page of its own.
    pub(crate) fn selected_lines(&self, _width: u16) -> Vec<Line<'static>> {
        Vec::new()
    }

    /// The text of the agent's last message.
    pub(crate) fn last_message_text(&self) -> Option<String> {
        None
    }

    /// Expands or folds the selected item, or the last one on the screen that can be folded.
    pub(crate) fn toggle_item(&mut self) {}

    /// Expands all items, or folds them to their defaults.
    pub(crate) fn toggle_all_items(&mut self) {}

    /// Finds a text, backward from what is visible. An empty text ends the search.
    pub(crate) fn find_text(&mut self, _text: &str) {}

    /// Finds the text again, further to the end.
    pub(crate) fn find_next(&mut self) {}

    /// Finds the text again, further to the beginning.
    pub(crate) fn find_previous(&mut self) {}

    /// Ends the search and removes the highlights.
    pub(crate) fn cancel_find(&mut self) {}

    /// The state of the search, if there is one.
    pub(crate) fn find_status(&self) -> Option<FindStatus> {
        None
    }

    /// What is loaded as plain lines, to be printed into the scrollback.
    pub(crate) fn plain_lines(&self, _width: u16) -> Vec<String> {
        Vec::new()
    }
}

/// The text of an item without styles.
fn item_text(item: &TranscriptItem) -> String {
    let (ItemContent::Prompt { parts, .. } | ItemContent::Message { parts, .. }) = &item.content
    else {
        return String::new();
    };
    let text = |it: &MessagePart| match it {
        MessagePart::Text(text) => text.clone(),
        _ => String::new(),
    };
    parts.iter().map(text).collect()
}
