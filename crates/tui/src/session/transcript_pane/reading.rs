//! Reading pages of the log.

use super::{FindStatus, LogRange, ScrollState, Time, TranscriptPane};
use crate::hub::{HubRequest, LogPage};

/// The first page fills a screen; it is small, so that it is drawn soon.
const FIRST_EVENTS: u64 = 200;
pub(super) const PAGE_EVENTS: u64 = 500;
/// A page that does not arrive is read again.
const READ_AGAIN_MS: u64 = 15_000;
const RETRY_MS: u64 = 1000;

/// What is being read.
#[derive(Debug, Default)]
pub(super) struct PendingReads {
    older: Option<PendingRead>,
    newer: Option<PendingRead>,
    /// Another part of the log, which replaces the window.
    jump: Option<PendingRead>,
    /// A page that is searched.
    pub(super) search: Option<PendingRead>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PendingRead {
    range: LogRange,
    /// When it is read again; not known before the next layout.
    retry_at: Option<Time>,
    limit: u64,
}

impl PendingReads {
    fn slots(&mut self) -> [&mut Option<PendingRead>; 4] {
        [&mut self.older, &mut self.newer, &mut self.jump, &mut self.search]
    }
}

impl TranscriptPane {
    /// The reader stays in the window. Before it is open, there is nothing else to show.
    pub(super) fn cancel_jump(&mut self) {
        if self.window.is_open() {
            self.reads.jump = None;
        }
    }

    pub(super) fn read_end(&mut self) {
        let pending = self.read(LogRange::End, FIRST_EVENTS);
        self.reads.jump = Some(pending);
    }

    pub(super) fn read_start(&mut self) {
        let pending = self.read(LogRange::After(0), PAGE_EVENTS);
        self.reads.jump = Some(pending);
    }

    pub(super) fn read(&mut self, range: LogRange, limit: u64) -> PendingRead {
        let session = self.session.clone();
        self.requests.push(HubRequest::ReadLog { session, range, limit });
        PendingRead { range, retry_at: None, limit }
    }

    /// Requests what is missing near the screen, and again what has not arrived.
    pub(super) fn request_reads(&mut self) {
        if self.reads.jump.is_none() && self.window.is_open() {
            if self.reads.older.is_none() && self.window.has_before() && self.is_near_start() {
                self.reads.older =
                    Some(self.read(LogRange::Before(self.window.first()), PAGE_EVENTS));
            }
            if self.reads.newer.is_none() && self.window.has_after() && self.is_near_end() {
                self.reads.newer =
                    Some(self.read(LogRange::After(self.window.last()), PAGE_EVENTS));
            }
        }
        let now = self.now;
        let mut late = Vec::new();
        for it in self.reads.slots().into_iter().flatten() {
            if it.retry_at.is_some_and(|it| it <= now) {
                late.push((it.range, it.limit));
                it.retry_at = None;
            }
            it.retry_at.get_or_insert(Time(now.0 + READ_AGAIN_MS));
        }
        for (range, limit) in late {
            self.read(range, limit);
        }
    }

    /// Less than a screen is loaded above the one that is shown.
    fn is_near_start(&mut self) -> bool {
        let rows = self.rows();
        let Some(top) = self.visible.first().copied() else { return true };
        self.walk().move_up(top, rows).1 < rows
    }

    fn is_near_end(&mut self) -> bool {
        let rows = self.rows();
        let Some(bottom) = self.visible.last().copied() else { return true };
        self.walk().move_down(bottom, rows).1 < rows
    }

    /// A page of the log could not be read. It is read again later.
    pub(crate) fn on_read_failed(&mut self, range: LogRange) {
        let now = self.now;
        for it in self.reads.slots().into_iter().flatten().filter(|it| it.range == range) {
            it.retry_at = Some(Time(now.0 + RETRY_MS));
        }
    }

    /// A page of the log arrived.
    pub(crate) fn on_page(&mut self, page: LogPage) {
        if page.session != self.session {
            return;
        }
        if !self.is_followed {
            self.is_followed = true;
            let (session, after) = (self.session.clone(), page.end);
            self.requests.push(HubRequest::Follow { session, after });
        }
        let is = |it: &Option<PendingRead>| it.is_some_and(|it| it.range == page.range);
        if is(&self.reads.jump) {
            self.on_jump_page(page);
        } else if is(&self.reads.search) {
            self.reads.search = None;
            self.on_search_page(page);
        } else if is(&self.reads.older) {
            self.reads.older = None;
            if page.range == LogRange::Before(self.window.first()) {
                let before = self.text_before();
                self.window.prepend(page);
                self.move_anchor(before);
            }
        } else if is(&self.reads.newer) {
            self.reads.newer = None;
            if page.range == LogRange::After(self.window.last()) {
                self.window.append_page(page);
                self.is_changed = true;
            }
        }
    }

    fn on_jump_page(&mut self, page: LogPage) {
        let is_end = page.range == LogRange::End;
        self.open_window(page);
        self.scroll = if is_end { ScrollState::End } else { ScrollState::Start };
        if !is_end {
            self.keep_top();
        }
    }

    /// Replaces the window by a page.
    pub(super) fn open_window(&mut self, page: LogPage) {
        let LogPage { events, bounds, end, .. } = page;
        self.reads = PendingReads::default();
        self.window.open(events, bounds, end);
        self.is_changed = true;
        if let Some(find) = &mut self.find
            && find.status == FindStatus::Searching
        {
            find.status = FindStatus::Found;
        }
    }
}
