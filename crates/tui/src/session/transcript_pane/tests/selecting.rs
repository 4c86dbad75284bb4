//! Selected items are copied, forked from and expanded.

use super::{TestReader, TranscriptPane};
use crate::transcript::test_log::TestLog;
use serde_json::json;

fn log() -> TestLog {
    let mut log = TestLog::default();
    log.prompt("Look").thought("Where is it?\n\nIn the file.").message("Reading.");
    log.call("1", json!({ "title": "Read a.txt", "kind": "read" }));
    log.call_update("1", json!({ "status": "completed", "rawOutput": "line one\nline two" }));
    log.message("It says:\n```text\ntwo lines\n```\n").message("Done.");
    log.end(&json!({ "stopReason": "end_turn" }));
    log
}

#[test]
fn folded_items_show_one_line_and_expand() {
    let mut reader = TestReader::open(log().events, (60, 30));
    assert!(reader.text().contains("Read a.txt"));
    assert!(!reader.text().contains("line two"));
    assert!(!reader.text().contains("In the file"));
    reader.act(TranscriptPane::toggle_item);
    assert!(reader.text().contains("line two"));
    reader.act(TranscriptPane::toggle_all_items);
    assert!(reader.text().contains("In the file"));
    reader.act(TranscriptPane::toggle_all_items);
    assert!(!reader.text().contains("line two"));
}

#[test]
fn selected_item_is_copied_and_forked_from_its_last_event() {
    let mut reader = TestReader::open(log().events, (60, 30));
    assert_eq!(reader.pane.selected_text(), None);
    reader.act(TranscriptPane::select_previous);
    assert_eq!(reader.pane.selected_seq(), Some(8));
    reader.act(TranscriptPane::select_previous);
    assert_eq!(reader.pane.selected_seq(), Some(7));
    assert_eq!(reader.pane.selected_code().as_deref(), Some("two lines\n"));
    assert!(reader.pane.selected_text().unwrap().ends_with("Done."));
    reader.act(TranscriptPane::select_previous);
    assert_eq!(reader.pane.selected_seq(), Some(5));
    assert_eq!(reader.pane.selected_text().unwrap(), "Read a.txt\nline one\nline two");
    let lines = reader.pane.selected_lines(40);
    assert!(lines.iter().any(|it| it.to_string().contains("line two")));
    assert_eq!(reader.pane.last_message_text().unwrap().lines().last(), Some("Done."));
    reader.act(TranscriptPane::clear_selection);
    assert!(reader.pane.selected_item().is_none());
}

#[test]
fn item_that_is_expanded_stays_on_its_row() {
    let mut log = log();
    for it in 0..40 {
        log.message(&format!("line {it}\n\n"));
    }
    let mut reader = TestReader::open(log.events, (60, 12));
    reader.act(TranscriptPane::scroll_to_start);
    for _ in 0..4 {
        reader.act(TranscriptPane::select_next);
    }
    let row = |reader: &TestReader| reader.screen().iter().position(|it| it.contains("Read a.txt"));
    let before = row(&reader);
    assert!(before.is_some());
    reader.act(TranscriptPane::toggle_item);
    assert!(reader.text().contains("line two"));
    assert_eq!(row(&reader), before);
    reader.act(TranscriptPane::toggle_item);
    assert_eq!(row(&reader), before);
}

#[test]
fn selection_scrolls_and_a_click_selects() {
    let mut reader = TestReader::open(super::long_log::numbered_log(600), (60, 12));
    for _ in 0..200 {
        reader.act(TranscriptPane::select_previous);
        reader.check_screen();
    }
    let selected = reader.pane.selected_text().unwrap();
    assert!(reader.words("event-").contains(&selected), "{selected}");
    for _ in 0..400 {
        reader.act(TranscriptPane::select_next);
        reader.check_screen();
    }
    assert_eq!(reader.pane.selected_seq(), Some(600));
    reader.act(|it| it.select_row(0));
    assert!(reader.pane.selected_seq().unwrap() < 600);
}

#[test]
fn plain_lines_have_everything_without_control_characters() {
    let mut log = log();
    log.prompt("\u{1b}]0;title\u{7}evil\u{202e}");
    let reader = TestReader::open(log.events, (60, 12));
    let lines = reader.pane.plain_lines(50);
    let text = lines.join("\n");
    assert!(text.contains("line two") && text.contains("evil"));
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']));
}
