//! Random interleavings of events, pages, sizes, folds and scrolls: the reader's line stays visible, the screen is full,
//! and the followed end stays at the end.

use super::TestReader;
use crate::{
    hub::{HubRequest, LogRange},
    transcript::{BlockSource, ItemKey, test_log::TestLog},
};
use jackfield_events::ReceivedEvent;
use proptest::prelude::*;
use serde_json::json;
use std::sync::{Arc, LazyLock};

#[derive(Debug, Clone)]
enum ReaderStep {
    Happen(usize),
    AnswerOne,
    Resize(u16, u16),
    ToggleBelow,
    ToggleAll,
    Scroll(isize),
    ScrollPages(isize),
    ToStart,
    ToEnd,
    Select(bool),
    Tick,
}

fn step() -> impl Strategy<Value = ReaderStep> {
    prop_oneof![
        4 => (1..60usize).prop_map(ReaderStep::Happen),
        4 => Just(ReaderStep::AnswerOne),
        3 => (12..120u16, 3..40u16).prop_map(|(width, height)| ReaderStep::Resize(width, height)),
        2 => Just(ReaderStep::ToggleBelow),
        1 => Just(ReaderStep::ToggleAll),
        4 => (-40..40isize).prop_map(ReaderStep::Scroll),
        3 => (-3..2isize).prop_map(ReaderStep::ScrollPages),
        1 => Just(ReaderStep::ToStart),
        1 => Just(ReaderStep::ToEnd),
        2 => any::<bool>().prop_map(ReaderStep::Select),
        1 => Just(ReaderStep::Tick),
    ]
}

static LOG: LazyLock<Arc<[ReceivedEvent]>> = LazyLock::new(|| varied_log(1200).into());

/// A log of all kinds of items, in which every word occurs once.
fn varied_log(events: usize) -> Vec<ReceivedEvent> {
    let mut log = TestLog::default();
    let mut word = 0;
    let mut words = |count: usize| {
        let words = (0..count).map(|_| {
            word += 1;
            format!("w{word}")
        });
        words.collect::<Vec<_>>().join(" ")
    };
    log.prompt(&words(3));
    while log.events.len() < events {
        let number = log.events.len();
        match number % 37 {
            0 => log.end(&json!({ "stopReason": words(1) })),
            1 => log.prompt(&words(40)),
            2..5 => log.thought(&format!("{} ", words(9))),
            5 | 6 | 15 | 25 => log.call(&format!("c{number}"), json!({ "title": words(4) })),
            // Calls 5 and 6 are parallel, so a page can begin between a call and its update.
            7 | 8 | 16 | 26 => {
                let output = (0..number % 30).map(|_| words(3)).collect::<Vec<_>>().join("\n");
                let call = if number % 37 < 9 { number - 2 } else { number - 1 };
                let result = json!({ "status": "completed", "rawOutput": output });
                log.call_update(&format!("c{call}"), result)
            }
            9 => log.plan(&[(&words(2), "completed"), (&words(12), "pending")]),
            10 => log.message(&format!("{}\n\n- {}\n- {}\n\n", words(30), words(5), words(15))),
            _ => log.message(&format!("{} ", words(5))),
        };
    }
    log.events
}

/// The line that stays visible until the reader moves.
#[derive(Debug, Clone, PartialEq)]
enum ReaderLine {
    /// A line of wrapped text, by its first word.
    Text(String),
    /// A line of the header of an item. A header is cut at the right, so its words depend on the width.
    Header(ItemKey),
}

impl ReaderLine {
    /// The line at the top of the screen; `None` if it is blank.
    fn top(reader: &TestReader, screen: &str) -> Option<ReaderLine> {
        let at = *reader.pane.visible.first()?;
        let key = reader.pane.items()[at.item].key;
        if reader.pane.cache.source(key, at.block) == Some(&BlockSource::Header) {
            return Some(ReaderLine::Header(key));
        }
        let is_word = |it: &&str| it.strip_prefix('w').is_some_and(|it| it.parse::<u64>().is_ok());
        words(screen.lines().next()?).find(is_word).map(|it| ReaderLine::Text(it.to_owned()))
    }

    fn is_visible(&self, reader: &TestReader, screen: &str) -> bool {
        match self {
            ReaderLine::Text(word) => words(screen).any(|it| it == word),
            ReaderLine::Header(key) => has_first_block(reader, *key),
        }
    }
}

/// The lines on the screen. The mark of new events, which is drawn over the end of the last one, is not among them.
fn visible_text(reader: &TestReader) -> String {
    let lines = reader.pane.visible_rows().map(|it| it.line.to_string());
    lines.collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric())
}

/// Whether lines of the block with which an item begins are on the screen.
fn has_first_block(reader: &TestReader, key: ItemKey) -> bool {
    let pane = &reader.pane;
    let block = pane.cache.first_block(key);
    pane.visible.iter().any(|it| pane.items()[it.item].key == key && it.block == block)
}

fn take_step(reader: &mut TestReader, step: &ReaderStep) {
    match step {
        ReaderStep::Happen(count) => reader.happen(*count),
        ReaderStep::AnswerOne => reader.answer_one(),
        ReaderStep::Resize(width, height) => reader.resize(*width, *height),
        ReaderStep::ToggleBelow => {
            reader.pane.clear_selection();
            reader.pane.toggle_item();
        }
        ReaderStep::ToggleAll => reader.pane.toggle_all_items(),
        ReaderStep::Scroll(count) => reader.pane.scroll_lines(*count),
        ReaderStep::ScrollPages(count) => reader.pane.scroll_pages(*count),
        ReaderStep::ToStart => reader.pane.scroll_to_start(),
        ReaderStep::ToEnd => reader.pane.scroll_to_end(),
        ReaderStep::Select(true) => reader.pane.select_next(),
        ReaderStep::Select(false) => reader.pane.select_previous(),
        ReaderStep::Tick => reader.now += 20_000,
    }
    reader.layout();
}

/// Whether the answer shows another part of the log.
fn is_jump(request: &HubRequest) -> bool {
    let HubRequest::ReadLog { range, .. } = request else { return false };
    matches!(range, LogRange::End | LogRange::After(0))
}

/// Whether the reader may see another part of the log after this step.
fn can_move(reader: &TestReader, step: &ReaderStep) -> bool {
    match step {
        ReaderStep::AnswerOne => reader.requests.front().is_some_and(is_jump),
        ReaderStep::Happen(_) | ReaderStep::Resize(..) | ReaderStep::Tick => false,
        _ => true,
    }
}

/// If this step folds items, the items of which one has its first lines on the screen afterwards: that of the line at the
/// top, and the selected one.
fn folded_items(reader: &TestReader, step: &ReaderStep) -> Vec<ItemKey> {
    if !matches!(step, ReaderStep::ToggleAll) || reader.is_following() {
        return Vec::new();
    }
    let top = reader.pane.visible.first().map(|it| reader.pane.items()[it.item].key);
    top.into_iter().chain(reader.pane.selected).collect()
}

fn case_count() -> u32 {
    let count = std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok());
    count.unwrap_or(100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: case_count(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// The promise is that of `session::scroll`.
    #[test]
    fn line_of_the_reader_stays_visible(
        known in 1..700usize,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut reader = TestReader::unanswered(LOG.clone(), known, (80, 24));
        reader.answer_all();
        let mut line: Option<ReaderLine> = None;
        let mut before = visible_text(&reader);
        for step in &steps {
            let (was_following, can_move) = (reader.is_following(), can_move(&reader, step));
            let folded = folded_items(&reader, step);
            let scroll = reader.pane.scroll;
            take_step(&mut reader, step);
            reader.check_screen();
            prop_assert!(can_move || reader.is_following() == was_following);
            let after = visible_text(&reader);
            let is_visible = line.as_ref().is_none_or(|it| it.is_visible(&reader, &after));
            let has_moved = can_move && (reader.pane.scroll != scroll || after != before);
            let is_kept = if has_moved {
                folded.is_empty() || is_visible || folded.iter().any(|it| has_first_block(&reader, *it))
            } else {
                is_visible
            };
            prop_assert!(is_kept, "{line:?} after {step:?}\n{before}\n---\n{after}");
            if has_moved {
                line = ReaderLine::top(&reader, &after);
            }
            line = line.filter(|_| !reader.is_following());
            before = after;
        }
        reader.answer_all();
        reader.check_screen();
    }
}
