//! Finding a text in what is loaded, and further in the log.

use super::{TestReader, TranscriptPane, long_log::numbered_log};
use crate::{session::FindStatus, transcript::test_log::TestLog};
use serde_json::json;

fn found(reader: &TestReader) -> Option<FindStatus> {
    reader.pane.find_status()
}

#[test]
fn matches_are_visited_in_both_directions_and_folded_items_are_expanded() {
    let mut log = TestLog::default();
    log.prompt("needle one").message("hay\n\nneedle two and needle three");
    log.call("1", json!({ "title": "cat", "rawOutput": "hay\nNeedle four" }));
    log.message("last hay");
    let mut reader = TestReader::open(log.events, (60, 30));
    reader.act(|it| it.find_text("needle"));
    assert_eq!(found(&reader), Some(FindStatus::Found));
    assert!(reader.text().contains("Needle four"));
    assert_eq!(reader.pane.selected_seq(), Some(3));
    let mut visited = Vec::new();
    for _ in 0..4 {
        reader.act(TranscriptPane::find_previous);
        visited.push((reader.pane.selected_seq().unwrap(), found(&reader).unwrap()));
    }
    let is_found = |seq| (seq, FindStatus::Found);
    assert_eq!(visited, [is_found(2), is_found(2), is_found(1), (1, FindStatus::NotFound)]);
    reader.act(TranscriptPane::find_next);
    assert_eq!(reader.pane.selected_seq(), Some(2));
    let current = || reader.pane.visible_rows().flat_map(|it| it.highlights.iter());
    assert_eq!(current().filter(|it| it.is_current).count(), 1);
    assert_eq!(current().count(), 4);
    reader.act(TranscriptPane::cancel_find);
    assert_eq!(found(&reader), None);
    assert!(reader.pane.visible_rows().all(|it| it.highlights.is_empty()));
}

#[test]
fn text_far_back_is_found_without_holding_the_pages() {
    let mut reader = TestReader::open(numbered_log(6000), (60, 20));
    reader.act(|it| it.find_text("event-4321"));
    assert_eq!(found(&reader), Some(FindStatus::Found));
    assert!(reader.words("event-").contains(&"event-4321".to_owned()));
    reader.act(|it| it.find_text("event-4330"));
    assert_eq!(found(&reader), Some(FindStatus::NotFound));
    reader.act(TranscriptPane::find_next);
    assert!(reader.words("event-").contains(&"event-4330".to_owned()));
    reader.act(|it| it.find_text("event-5"));
    reader.act(TranscriptPane::find_next);
    assert!(reader.words("event-").contains(&"event-5000".to_owned()));
    reader.check_screen();
}

#[test]
fn search_that_finds_nothing_leaves_the_reader_where_he_is() {
    let mut reader = TestReader::open(numbered_log(6000), (60, 20));
    reader.act(|it| it.scroll_lines(-30));
    let before = reader.screen();
    let held = reader.pane.window.held().0;
    reader.act(|it| it.find_text("not there"));
    assert_eq!(found(&reader), Some(FindStatus::NotFound));
    assert_eq!(reader.screen(), before);
    assert_eq!(reader.pane.window.held().0, held);
}

#[test]
fn search_is_cancelled_between_two_pages() {
    let mut reader = TestReader::open(numbered_log(6000), (60, 20));
    reader.pane.find_text("not there");
    reader.layout();
    reader.answer_one();
    assert_eq!(found(&reader), Some(FindStatus::Searching));
    reader.pane.cancel_find();
    reader.layout();
    reader.answer_all();
    assert_eq!(found(&reader), None);
    reader.check_screen();
}

#[test]
fn message_that_begins_in_an_earlier_page_is_found_as_a_whole() {
    let mut log = TestLog::default();
    log.prompt("x");
    for _ in 0..498 {
        log.message("a ");
    }
    log.message("begin of the ").message("split text ");
    for it in 0..700 {
        log.prompt(&format!("{it}"));
    }
    let mut reader = TestReader::open(log.events, (60, 20));
    reader.act(|it| it.find_text("the split text"));
    assert_eq!(found(&reader), Some(FindStatus::Found));
    assert!(reader.text().contains("split text"));
}
