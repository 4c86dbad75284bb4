//! Tests of the transcript pane, with a log that answers its requests.

mod finding;
mod long_log;
mod printing;
mod properties;
mod scrolling;
mod selecting;
mod streaming;

use super::{ScrollState, TranscriptPane};
use crate::{
    hub::{HubRequest, LogPage, LogRange},
    text::{ColorDepth, ViewTheme},
};
use jackfield_events::{ReceivedEvent, Time};
use ratatui::{buffer::Buffer, layout::Rect};
use std::{collections::VecDeque, sync::Arc};

/// A pane and the log that it reads.
pub(super) struct TestReader {
    pub(super) pane: TranscriptPane,
    /// The whole log; `known` of its events have happened.
    pub(super) log: Arc<[ReceivedEvent]>,
    pub(super) known: usize,
    /// Requests that are not answered yet.
    pub(super) requests: VecDeque<HubRequest>,
    pub(super) now: u64,
    pub(super) size: (u16, u16),
}

impl TestReader {
    /// Opens a pane and answers all of its requests.
    pub(super) fn open(log: Vec<ReceivedEvent>, size: (u16, u16)) -> TestReader {
        let known = log.len();
        let mut reader = TestReader::unanswered(log, known, size);
        reader.answer_all();
        reader
    }

    pub(super) fn unanswered(
        log: impl Into<Arc<[ReceivedEvent]>>,
        known: usize,
        size: (u16, u16),
    ) -> TestReader {
        let log = log.into();
        let theme = ViewTheme::new(ColorDepth::None);
        let (pane, requests) = TranscriptPane::new("s-1".to_owned(), known as u64, theme);
        let requests = requests.into();
        let mut reader = TestReader { pane, log, known, requests, now: 1_000_000, size };
        reader.resize(size.0, size.1);
        reader
    }

    pub(super) fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.pane.resize(width, height);
        self.layout();
    }

    pub(super) fn layout(&mut self) {
        self.requests.extend(self.pane.layout(Time(self.now)));
    }

    /// Does something and answers all requests.
    pub(super) fn act(&mut self, action: impl FnOnce(&mut TranscriptPane)) {
        action(&mut self.pane);
        self.layout();
        self.answer_all();
    }

    pub(super) fn answer_all(&mut self) {
        for _ in 0..2000 {
            if self.requests.is_empty() {
                return;
            }
            self.answer_one();
        }
        panic!("the requests do not end: {:?}", self.requests);
    }

    pub(super) fn answer_one(&mut self) {
        let Some(HubRequest::ReadLog { range, limit, .. }) = self.requests.pop_front() else {
            return;
        };
        self.pane.on_page(self.page(range, limit));
        self.layout();
    }

    pub(super) fn page(&self, range: LogRange, limit: u64) -> LogPage {
        let (known, limit) = (self.known, usize::try_from(limit).unwrap());
        let index = |it: u64| usize::try_from(it).unwrap();
        let events = match range {
            LogRange::End => known.saturating_sub(limit)..known,
            LogRange::Before(seq) => index(seq - 1).saturating_sub(limit)..index(seq - 1),
            LogRange::After(seq) => index(seq)..(index(seq) + limit).min(known),
        };
        let bounds = (!events.is_empty()).then_some((events.start as u64 + 1, events.end as u64));
        let events = self.log[events].to_vec();
        LogPage { session: "s-1".to_owned(), range, events, bounds, end: known as u64 }
    }

    /// The next `count` events happen.
    pub(super) fn happen(&mut self, count: usize) {
        let end = (self.known + count).min(self.log.len());
        let events = self.log[self.known..end].to_vec();
        self.known = end;
        self.pane.on_events(events);
        self.layout();
    }

    /// The text of the screen, row by row, without trailing spaces.
    pub(super) fn screen(&self) -> Vec<String> {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.pane.draw(area, &mut buffer);
        let row = |y: u16| {
            let cells = (0..self.size.0).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end_matches([' ', '│', '█']).to_owned()
        };
        (0..self.size.1).map(row).collect()
    }

    pub(super) fn text(&self) -> String {
        self.screen().join("\n")
    }

    /// The words that begin like this, in the order of the screen.
    pub(super) fn words(&self, prefix: &str) -> Vec<String> {
        let text = self.text();
        let words = text.split(|it: char| !it.is_alphanumeric() && it != '-');
        words.filter(|it| it.starts_with(prefix)).map(str::to_owned).collect()
    }

    pub(super) fn is_following(&self) -> bool {
        self.pane.scroll == ScrollState::End
    }

    /// The lines on the screen are consecutive, and the screen is full if there are enough lines.
    pub(super) fn check_screen(&mut self) {
        let visible = self.pane.visible.clone();
        let rows = self.pane.rows();
        assert!(visible.len() <= rows);
        let mut walk = self.pane.walk();
        for pair in visible.windows(2) {
            assert_eq!(walk.next(pair[0]), Some(pair[1]));
        }
        let (Some(top), Some(bottom)) = (visible.first(), visible.last()) else { return };
        let (above, below) = (walk.previous(*top), walk.next(*bottom));
        let has_after = self.pane.window.has_after();
        if visible.len() < rows {
            assert_eq!(below, None);
            assert!(above.is_none() || has_after, "the screen is not full");
        }
        if self.is_following() {
            assert_eq!(below, None, "the end is followed, but not visible");
        }
    }
}
