//! Finding a text: in what is loaded, and further in pages of the log that are read and dropped again.

use super::{LinePosition, LogRange, TranscriptPane, reading::PAGE_EVENTS, selection::item_text};
use crate::{
    hub::LogPage,
    text::ViewTheme,
    transcript::{
        BlockPlace, BlockSource, ItemKey, ItemOptions, TextQuery, TranscriptFold, TranscriptItem,
        can_expand, item_blocks, render_block,
    },
};
use jackfield_events::ReceivedEvent;
use std::{collections::BTreeMap, ops::Range};

/// The most pages that one search reads.
const SEARCH_PAGES_MAX: usize = 250;
/// Events of the page before that are searched again with the next one, because a message may be in both.
const SHARED_EVENTS: usize = 100;

/// The state of the search for a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FindStatus {
    /// The text was found; the item that contains it is selected.
    Found,
    /// Pages of the log are being searched.
    Searching,
    NotFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindDirection {
    Older,
    Newer,
}

/// A searched text and where it was found.
#[derive(Debug)]
pub(super) struct FindState {
    query: TextQuery,
    pub(super) status: FindStatus,
    current: Option<(ItemKey, MatchPlace)>,
    search: Option<PageSearch>,
    highlights: BTreeMap<usize, Vec<HighlightedRange>>,
}

/// A match in an item: the block, the line and the byte with which it begins.
type MatchPlace = (BlockPlace, usize, usize);

/// A search in pages outside of the window.
#[derive(Debug)]
struct PageSearch {
    direction: FindDirection,
    pages_left: usize,
    /// Events that were searched, next to the page that is being read.
    shared: Vec<ReceivedEvent>,
}

/// A range of bytes of a visible line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightedRange {
    pub(crate) range: Range<usize>,
    pub(crate) is_current: bool,
}

impl FindState {
    pub(super) fn highlights(&self, row: usize) -> &[HighlightedRange] {
        self.highlights.get(&row).map_or(&[], Vec::as_slice)
    }
}

impl TranscriptPane {
    /// Finds a text, backward from what is visible. An empty text ends the search.
    pub(crate) fn find_text(&mut self, text: &str) {
        self.cancel_find();
        let Some(query) = TextQuery::new(text) else { return };
        self.find = Some(FindState {
            query,
            status: FindStatus::NotFound,
            current: None,
            search: None,
            highlights: BTreeMap::new(),
        });
        self.place();
        let end = self.visible.last().map_or(0, |it| it.item + 1);
        if self.find_in_window(end, None, FindDirection::Older) {
            return;
        }
        if self.window.has_before() {
            return self.search_pages(FindDirection::Older);
        }
        if !self.find_in_window(end, None, FindDirection::Newer) && self.window.has_after() {
            self.search_pages(FindDirection::Newer);
        }
    }

    /// Finds the text again, further to the end.
    pub(crate) fn find_next(&mut self) {
        self.find_again(FindDirection::Newer);
    }

    /// Finds the text again, further to the beginning.
    pub(crate) fn find_previous(&mut self) {
        self.find_again(FindDirection::Older);
    }

    /// Ends the search and removes the highlights.
    pub(crate) fn cancel_find(&mut self) {
        self.find = None;
        self.reads.search = None;
    }

    /// The state of the search, if there is one.
    pub(crate) fn find_status(&self) -> Option<FindStatus> {
        self.find.as_ref().map(|it| it.status.clone())
    }

    fn find_again(&mut self, direction: FindDirection) {
        self.place();
        let Some(find) = &mut self.find else { return };
        find.search = None;
        self.reads.search = None;
        let current = find.current;
        let items = self.window.items();
        let known = current.and_then(|(key, place)| {
            items.iter().position(|it| it.key == key).map(|index| (index, Some(place)))
        });
        let edge = match direction {
            FindDirection::Older => self.visible.last().map_or(0, |it| it.item + 1),
            FindDirection::Newer => self.visible.first().map_or(0, |it| it.item),
        };
        let (start, after) = known.unwrap_or((edge, None));
        if self.find_in_window(start, after, direction) {
            return;
        }
        let has_more = match direction {
            FindDirection::Older => self.window.has_before(),
            FindDirection::Newer => self.window.has_after(),
        };
        if has_more {
            self.search_pages(direction);
        }
    }

    /// Goes to the next match in the window: after a match in the item `start`, or in the items from there on.
    fn find_in_window(
        &mut self,
        start: usize,
        after: Option<MatchPlace>,
        direction: FindDirection,
    ) -> bool {
        let Some(find) = &mut self.find else { return false };
        let (query, items) = (&find.query, self.window.items());
        let width = self.width.saturating_sub(super::GUTTER_WIDTH + super::SCROLLBAR_WIDTH).max(1);
        let matches = |index: usize| item_matches(&items[index], query, width, &self.theme);
        let found = match direction {
            FindDirection::Newer => {
                let in_item = after.and_then(|after| {
                    matches(start).into_iter().find(|it| *it > after).map(|it| (start, it))
                });
                let next = start + usize::from(after.is_some());
                in_item.or_else(|| {
                    let mut indexes = next..items.len();
                    indexes.find_map(|it| matches(it).first().map(|place| (it, *place)))
                })
            }
            FindDirection::Older => {
                let in_item = after.and_then(|after| {
                    matches(start).into_iter().rfind(|it| *it < after).map(|it| (start, it))
                });
                in_item.or_else(|| {
                    let mut indexes = (0..start.min(items.len())).rev();
                    indexes.find_map(|it| matches(it).last().map(|place| (it, *place)))
                })
            }
        };
        let Some((index, place)) = found else {
            find.status = FindStatus::NotFound;
            return false;
        };
        find.status = FindStatus::Found;
        find.current = Some((items[index].key, place));
        self.show_match(index, place);
        true
    }

    fn show_match(&mut self, index: usize, (place, line, _): MatchPlace) {
        let item = &self.window.items()[index];
        let (key, is_folded) = (item.key, can_expand(item) && !self.expanded.contains(item.key));
        self.selected = Some(key);
        let is_header = place.section < BlockPlace { section: 2, start: 0 }.section;
        if is_folded && !is_header {
            self.set_expanded(key, true);
        }
        let mut walk = self.walk();
        walk.block_count(index);
        let Some(block) = self.cache.find_block(key, place) else { return };
        let at = LinePosition { item: index, block, line };
        self.place();
        if self.visible.contains(&at) {
            self.keep_top();
        } else {
            self.show_at(at, self.rows() / 3);
        }
    }

    /// Searches pages next to the window, one after the other.
    fn search_pages(&mut self, direction: FindDirection) {
        let range = match direction {
            FindDirection::Older => LogRange::Before(self.window.first()),
            FindDirection::Newer => LogRange::After(self.window.last()),
        };
        let Some(find) = &mut self.find else { return };
        find.status = FindStatus::Searching;
        find.search =
            Some(PageSearch { direction, pages_left: SEARCH_PAGES_MAX, shared: Vec::new() });
        self.reads.search = Some(self.read(range, PAGE_EVENTS));
    }

    pub(super) fn on_search_page(&mut self, page: LogPage) {
        let Some(find) = &mut self.find else { return };
        let Some(mut search) = find.search.take() else { return };
        find.status = FindStatus::NotFound;
        let Some((first, last)) = page.bounds else { return };
        let page_events = page.events.clone();
        let page = search.join_shared(page);
        let width = self.width.saturating_sub(super::GUTTER_WIDTH + super::SCROLLBAR_WIDTH).max(1);
        let mut fold = TranscriptFold::default();
        fold.refold(&page.events);
        let has_match =
            |it: &TranscriptItem| !item_matches(it, &find.query, width, &self.theme).is_empty();
        if fold.items().iter().any(has_match) {
            return self.open_match(page, search.direction);
        }
        let next = match search.direction {
            FindDirection::Older => (first > 1).then_some(LogRange::Before(first)),
            FindDirection::Newer => (last < page.end).then_some(LogRange::After(last)),
        };
        search.pages_left -= 1;
        let Some(next) = next.filter(|_| search.pages_left > 0) else { return };
        search.keep_shared(page_events);
        find.search = Some(search);
        find.status = FindStatus::Searching;
        self.reads.search = Some(self.read(next, PAGE_EVENTS));
    }

    /// Shows the page in which the text was found.
    fn open_match(&mut self, page: LogPage, direction: FindDirection) {
        self.open_window(page);
        let start = match direction {
            FindDirection::Older => self.window.items().len(),
            FindDirection::Newer => 0,
        };
        self.find_in_window(start, None, direction);
    }

    /// Finds the text in the visible lines.
    pub(super) fn update_highlights(&mut self) {
        let Some(mut find) = self.find.take() else { return };
        find.highlights.clear();
        let mut row = 0;
        while let Some(at) = self.visible.get(row).copied() {
            let is_same = |it: &&LinePosition| (it.item, it.block) == (at.item, at.block);
            let count = self.visible[row..].iter().take_while(is_same).count();
            let key = self.window.items()[at.item].key;
            let place =
                self.cache.source(key, at.block).map(BlockSource::place).unwrap_or_default();
            for found in find.query.find(self.cache.known_lines(key, at.block)) {
                let is_current = found.first().is_some_and(|it| {
                    find.current == Some((key, (place, it.line, it.range.start)))
                });
                for it in found {
                    if let Some(offset) = it.line.checked_sub(at.line).filter(|it| *it < count) {
                        let ranges = find.highlights.entry(row + offset).or_default();
                        ranges.push(HighlightedRange { range: it.range, is_current });
                    }
                }
            }
            row += count;
        }
        self.find = Some(find);
    }
}

impl PageSearch {
    /// The page with the events next to it that were searched before.
    fn join_shared(&mut self, mut page: LogPage) -> LogPage {
        let shared = std::mem::take(&mut self.shared);
        let seq = |it: Option<&ReceivedEvent>| it.and_then(|it| it.seq).map(|it| it.0);
        match (self.direction, page.bounds) {
            (FindDirection::Older, Some((first, last))) => {
                page.bounds = Some((first, seq(shared.last()).unwrap_or(last)));
                page.events.extend(shared);
            }
            (FindDirection::Newer, Some((first, last))) => {
                page.bounds = Some((seq(shared.first()).unwrap_or(first), last));
                page.events.splice(0..0, shared);
            }
            (_, None) => {}
        }
        page
    }

    fn keep_shared(&mut self, mut events: Vec<ReceivedEvent>) {
        match self.direction {
            FindDirection::Older => events.truncate(SHARED_EVENTS),
            FindDirection::Newer => {
                events.drain(..events.len().saturating_sub(SHARED_EVENTS));
            }
        }
        self.shared = events;
    }
}

/// The matches in an item, in order, as if it were expanded.
fn item_matches(
    item: &TranscriptItem,
    query: &TextQuery,
    width: u16,
    theme: &ViewTheme,
) -> Vec<MatchPlace> {
    if !query.may_match(&item_text(item)) {
        return Vec::new();
    }
    let options = ItemOptions {
        width,
        is_expanded: can_expand(item),
        has_gap: false,
        is_growing: false,
        running_s: None,
    };
    let blocks = item_blocks(item, &options).into_iter().flat_map(|source| {
        let found = query.find(&render_block(item, &source, &options, theme));
        let starts = found.into_iter().filter_map(|it| it.into_iter().next());
        starts.map(move |it| (source.place(), it.line, it.range.start)).collect::<Vec<_>>()
    });
    blocks.collect()
}
