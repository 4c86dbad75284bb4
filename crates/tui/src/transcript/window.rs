//! The events of a log that are loaded: a range without gaps, folded into items.
//!
//! The range grows at both ends and is trimmed far from the reader when it is too large. An event is appended only if
//! it is the next one, so nothing is doubled, lost or reordered.

use super::{TranscriptFold, TranscriptItem};
use crate::hub::LogPage;
use jackfield_events::{EventBody, ReceivedEvent};
use serde_json::Value;
use std::collections::VecDeque;

/// A larger window is trimmed, down to the second number.
pub(crate) const WINDOW_EVENTS_MAX: usize = 4000;
const WINDOW_EVENTS_KEPT: usize = 2500;
pub(crate) const WINDOW_BYTES_MAX: usize = 16 * 1024 * 1024;
const WINDOW_BYTES_KEPT: usize = 10 * 1024 * 1024;
/// Events that may arrive while the ones before them are being read.
const GAP_EVENTS_MAX: usize = 1000;
/// A window is cut at the beginning of an item if one is as near as this many events.
const CUT_EVENTS: usize = 400;

#[derive(Debug)]
struct HeldEvent {
    event: ReceivedEvent,
    bytes: usize,
}

/// A range of a log.
#[derive(Debug, Default)]
pub(crate) struct LogWindow {
    events: VecDeque<HeldEvent>,
    bytes: usize,
    fold: TranscriptFold,
    /// The sequence numbers of the range, with events that cannot be read. Empty if `last` is before `first`.
    first: u64,
    last: u64,
    /// The last known event of the session.
    end: u64,
    /// New events are appended. Otherwise the reader is far from the end.
    is_following: bool,
    /// New events that arrived before the ones that precede them.
    gap_events: VecDeque<ReceivedEvent>,
    is_open: bool,
}

impl LogWindow {
    pub(crate) fn new(end: u64) -> LogWindow {
        LogWindow { end, first: 1, ..LogWindow::default() }
    }

    pub(crate) fn fold(&self) -> &TranscriptFold {
        &self.fold
    }

    pub(crate) fn items(&self) -> &[TranscriptItem] {
        self.fold.items()
    }

    /// Whether a page was loaded.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The last known event of the session.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn has_before(&self) -> bool {
        self.is_open && self.first > 1
    }

    pub(crate) fn has_after(&self) -> bool {
        self.is_open && self.last < self.end
    }

    /// Replaces the range by consecutive events.
    pub(crate) fn open(
        &mut self,
        events: Vec<ReceivedEvent>,
        bounds: Option<(u64, u64)>,
        end: u64,
    ) {
        self.end = self.end.max(end);
        (self.first, self.last) = bounds.unwrap_or((self.end + 1, self.end));
        self.events = events.into_iter().map(HeldEvent::new).collect();
        self.bytes = self.events.iter().map(|it| it.bytes).sum();
        self.gap_events.clear();
        self.is_open = true;
        self.is_following = self.last >= self.end;
        self.refold();
    }

    /// Adds the page before the range.
    pub(crate) fn prepend(&mut self, page: LogPage) {
        let Some((first, last)) = page.bounds else {
            // The log begins here.
            self.first = 1;
            return;
        };
        if last + 1 != self.first {
            return;
        }
        self.end = self.end.max(page.end);
        self.first = first;
        for it in page.events.into_iter().rev() {
            let held = HeldEvent::new(it);
            self.bytes += held.bytes;
            self.events.push_front(held);
        }
        self.refold();
    }

    /// Adds the page after the range.
    pub(crate) fn append_page(&mut self, page: LogPage) {
        self.end = self.end.max(page.end);
        let Some((first, last)) = page.bounds else { return };
        if first > self.last + 1 {
            return;
        }
        for it in page.events {
            if it.seq.is_some_and(|it| it.0 > self.last) {
                self.append(it);
            }
        }
        self.last = self.last.max(last);
        self.is_following |= self.last >= page.end;
        self.append_gap_events();
    }

    /// Adds new events of the session. Returns whether the range changed.
    pub(crate) fn append_new(&mut self, events: Vec<ReceivedEvent>) -> bool {
        let last = self.last;
        for event in events {
            let Some(seq) = event.seq else { continue };
            self.end = self.end.max(seq.0);
            if self.is_following && seq.0 > self.last {
                self.gap_events.push_back(event);
            }
        }
        self.append_gap_events();
        if self.gap_events.len() > GAP_EVENTS_MAX {
            self.gap_events.clear();
        }
        self.last != last
    }

    fn append_gap_events(&mut self) {
        while let Some(seq) = self.gap_events.front().and_then(|it| it.seq)
            && seq.0 <= self.last + 1
        {
            let event = self.gap_events.pop_front();
            if let Some(event) = event.filter(|_| seq.0 == self.last + 1) {
                self.append(event);
            }
        }
    }

    fn append(&mut self, event: ReceivedEvent) {
        self.last = event.seq.map_or(self.last, |it| it.0);
        self.fold.append(&event);
        let held = HeldEvent::new(event);
        self.bytes += held.bytes;
        self.events.push_back(held);
    }

    fn refold(&mut self) {
        self.fold.refold(self.events.iter().map(|it| &it.event));
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.events.len() > WINDOW_EVENTS_MAX || self.bytes > WINDOW_BYTES_MAX
    }

    /// Drops events that are far from those that the reader sees.
    pub(crate) fn trim(&mut self, protected: (u64, u64)) {
        let (start, end) = self.kept_indexes(protected);
        let start = self.item_start(start, start.saturating_sub(CUT_EVENTS)..=start);
        let end = self.item_start(end, end..=(end + CUT_EVENTS).min(self.events.len()));
        if end < self.events.len() {
            let kept = end.checked_sub(1).map_or(self.first, |it| self.seq_at(it));
            self.last = kept;
            self.is_following = false;
            self.gap_events.clear();
        }
        if start > 0 {
            self.first = self.seq_at(start);
        }
        self.events.truncate(end);
        self.events.drain(..start);
        self.bytes = self.events.iter().map(|it| it.bytes).sum();
        self.refold();
    }

    /// The protected events, and as many on both sides of them as may be kept.
    fn kept_indexes(&self, (first, last): (u64, u64)) -> (usize, usize) {
        let mut start = self.events.partition_point(|it| it.seq() < first);
        let mut end = self.events.partition_point(|it| it.seq() <= last).max(start);
        let (protected_start, protected_end) = (start, end);
        let mut bytes: usize = self.events.range(start..end).map(|it| it.bytes).sum();
        loop {
            let (can_before, can_after) = (start > 0, end < self.events.len());
            let is_nearer = protected_start - start <= end - protected_end;
            let added = match (can_before, can_after) {
                (false, false) => break,
                (true, is_free) if is_nearer || !is_free => start - 1,
                _ => end,
            };
            bytes += self.events[added].bytes;
            if end - start >= WINDOW_EVENTS_KEPT || bytes > WINDOW_BYTES_KEPT {
                break;
            }
            (start, end) = (start.min(added), end.max(added + 1));
        }
        (start, end)
    }

    /// An index in the range at which an item begins, or `index` itself.
    fn item_start(&self, index: usize, range: std::ops::RangeInclusive<usize>) -> usize {
        let is_start = |at: &usize| {
            *at == 0
                || self.events.get(*at).is_none_or(|it| {
                    self.items().binary_search_by_key(&it.seq(), |it| it.seq).is_ok()
                })
        };
        let mut near = range.clone();
        let found =
            if *range.start() == index { near.find(is_start) } else { near.rfind(is_start) };
        found.unwrap_or(index)
    }

    fn seq_at(&self, index: usize) -> u64 {
        self.events[index].seq()
    }

    /// How many events and bytes are held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.events.len(), self.bytes)
    }

    #[cfg(test)]
    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.events.iter().map(HeldEvent::seq).collect()
    }
}

impl HeldEvent {
    fn new(event: ReceivedEvent) -> HeldEvent {
        let bytes = event_bytes(&event.body);
        HeldEvent { event, bytes }
    }

    fn seq(&self) -> u64 {
        self.event.seq.map_or(0, |it| it.0)
    }
}

/// About how many bytes an event takes.
fn event_bytes(body: &EventBody<Value>) -> usize {
    128 + match body {
        EventBody::Opened(it) => value_bytes(&it.setup) + value_bytes(&it.params),
        EventBody::Bound(it) => value_bytes(&it.setup),
        EventBody::Said(it) => value_bytes(&it.frame),
        EventBody::Queued(it) => value_bytes(&it.frame),
        EventBody::Prompted(it) => value_bytes(&it.frame),
        EventBody::Ended(it) => value_bytes(it.outcome.json()),
        EventBody::Asked(it) => value_bytes(&it.frame),
        EventBody::Answered(it) => value_bytes(&it.answer),
        EventBody::Learned(it) => value_bytes(&it.rule),
        EventBody::Unasked(it) => value_bytes(&it.call),
        EventBody::Served(it) => value_bytes(&it.call),
        EventBody::Configured(it) => value_bytes(&it.frame) + value_bytes(&it.answer),
        EventBody::Gone(it) => it.stderr.len(),
        _ => 0,
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(values) => 32 + values.iter().map(value_bytes).sum::<usize>(),
        Value::Object(members) => {
            32 + members.iter().map(|(name, it)| 32 + name.len() + value_bytes(it)).sum::<usize>()
        }
        _ => 32,
    }
}
