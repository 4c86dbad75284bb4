//! Random interleavings of events, pages, sizes, folds and scrolls: the reader's line stays visible, the screen is full,
//! and the followed end stays at the end.

use super::TestReader;
use crate::{
    hub::{HubRequest, LogRange},
    transcript::test_log::TestLog,
};
use jackfield_events::ReceivedEvent;
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

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

static LOG: LazyLock<Vec<ReceivedEvent>> = LazyLock::new(|| varied_log(1200));

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
            5 | 15 | 25 => log.call(&format!("c{number}"), json!({ "title": words(4) })),
            6 | 16 | 26 => {
                let output = (0..number % 30).map(|_| words(3)).collect::<Vec<_>>().join("\n");
                let id = format!("c{}", number - 1);
                log.call_update(&id, json!({ "status": "completed", "rawOutput": output }))
            }
            7 => log.plan(&[(&words(2), "completed"), (&words(12), "pending")]),
            8 => log.message(&format!("{}\n\n- {}\n- {}\n\n", words(30), words(5), words(15))),
            _ => log.message(&format!("{} ", words(5))),
        };
    }
    log.events
}

/// The first word of the screen that is not at the end of it.
fn first_word(reader: &TestReader) -> Option<String> {
    let screen = reader.screen();
    let words = screen.first()?.split(|it: char| !it.is_alphanumeric());
    words
        .filter(|it| it.starts_with('w'))
        .map(str::to_owned)
        .find(|it| it[1..].parse::<u64>().is_ok())
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

/// Whether the reader sees another part of the log after this step.
fn moves_reader(step: &ReaderStep) -> bool {
    matches!(
        step,
        ReaderStep::Scroll(_)
            | ReaderStep::ScrollPages(_)
            | ReaderStep::ToStart
            | ReaderStep::ToEnd
            | ReaderStep::Select(_)
            | ReaderStep::ToggleAll
            | ReaderStep::ToggleBelow
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "nightly: some seeds fail, the cause is not found yet"]
    fn line_of_the_reader_stays_visible(
        known in 1..700usize,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut reader = TestReader::unanswered(LOG.clone(), known, (80, 24));
        reader.answer_all();
        let mut word = None;
        for step in &steps {
            let was_following = reader.is_following();
            let can_jump = reader.requests.iter().any(is_jump);
            let (before, scroll) = (reader.text(), reader.pane.scroll);
            take_step(&mut reader, step);
            reader.check_screen();
            if was_following && !moves_reader(step) && !can_jump {
                prop_assert!(reader.is_following());
            }
            // There may be nothing to fold, and then the reader stays; or the word itself is folded.
            let is_shown = word.as_ref().is_some_and(|it| reader.words("w").contains(it));
            let has_moved = reader.pane.scroll != scroll || !is_shown;
            if (moves_reader(step) && has_moved) || can_jump || reader.is_following() {
                word = first_word(&reader).filter(|_| !reader.is_following());
            } else if let Some(word) = &word {
                let words = reader.words("w");
                prop_assert!(words.contains(word), "{word} after {step:?}\n{before}\n---\n{}", reader.text());
            }
        }
        reader.answer_all();
        reader.check_screen();
    }
}
