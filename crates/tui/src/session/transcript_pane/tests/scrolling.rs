//! The line at the top stays in place.

use super::{TestReader, TranscriptPane, long_log::numbered_log};
use crate::transcript::test_log::TestLog;
use jackfield_events::{MissingEvent, Time};
use serde_json::json;

fn paragraphs(count: usize) -> String {
    let paragraph = |it: usize| {
        let words = (0..30).map(|word| format!("w{it}x{word}")).collect::<Vec<_>>();
        words.join(" ")
    };
    (0..count).map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// A prompt that is sent at once moves the reader to the end.
#[test]
fn moving_before_the_first_page_arrives_does_not_lose_it() {
    let log = numbered_log(600);
    let known = log.len();
    for action in [TranscriptPane::scroll_to_end, TranscriptPane::scroll_to_start] {
        let mut reader = TestReader::unanswered(log.clone(), known, (80, 24));
        reader.act(action);
        assert!(!reader.pane.is_loading());
    }
}

#[test]
fn width_changes_keep_the_word_at_the_top() {
    let mut log = TestLog::default();
    log.prompt("x").message(&paragraphs(60)).call("1", json!({ "title": "ls" }));
    log.message(&paragraphs(5));
    let mut reader = TestReader::open(log.events.clone(), (80, 20));
    reader.act(|it| it.scroll_lines(-70));
    let words = reader.words("w");
    let first = words.first().unwrap();
    for width in [40, 200, 61, 23, 80] {
        reader.resize(width, 20);
        let visible = reader.words("w");
        assert!(visible.contains(first), "{first} at {width}: {visible:?}");
    }
    assert_eq!(reader.words("w").first(), Some(first));
}

#[test]
fn page_that_begins_the_message_at_the_top_keeps_its_line() {
    let mut log = TestLog::default();
    log.prompt("x");
    for it in 0..600 {
        log.message(&format!("word{it} and more words\n\n"));
    }
    let mut reader = TestReader::unanswered(log.events, 601, (60, 10));
    reader.answer_one();
    reader.pane.scroll_lines(-1000);
    let first = reader.words("word").first().cloned();
    reader.layout();
    reader.answer_all();
    assert!(first.is_some());
    assert_eq!(reader.words("word").first(), first.as_ref());
    assert_eq!(reader.pane.window.first(), 1);
}

/// A block of a message has a blank line before it, unless it is the first.
#[test]
fn page_that_ends_at_a_block_of_the_message_at_the_top_keeps_its_row() {
    let mut log = TestLog::default();
    log.prompt("x");
    for it in 0..400 {
        let words = (0..200).map(|word| format!("w{it}x{word}")).collect::<Vec<_>>();
        log.message(&format!("{}\n\n", words.join(" ")));
    }
    let mut reader = TestReader::unanswered(log.events, 401, (60, 10));
    reader.answer_one();
    reader.pane.scroll_lines(-100_000);
    reader.pane.scroll_lines(5);
    let before = reader.screen();
    assert!(before[0].starts_with("  w200x"), "{before:?}");
    reader.layout();
    reader.answer_all();
    assert_eq!(reader.screen(), before);
}

/// The window begins between the call and its update, so the item of the call becomes longer at its beginning.
#[test]
fn page_that_begins_the_call_at_the_top_keeps_its_line() {
    let mut log = TestLog::default();
    log.prompt("x");
    for it in 0..298 {
        log.message(&format!("word{it}\n\n"));
    }
    let output = (0..50).map(|it| format!("out{it}")).collect::<Vec<_>>().join("\n");
    log.call("1", json!({ "title": "one" })).call("2", json!({ "title": "two" }));
    for id in ["1", "2"] {
        log.call_update(id, json!({ "status": "completed", "rawOutput": output }));
    }
    for it in 0..198 {
        log.message(&format!("word{it}\n\n"));
    }
    let mut reader = TestReader::unanswered(log.events, 501, (60, 10));
    reader.answer_one();
    assert_eq!(reader.pane.window.first(), 302);
    reader.pane.toggle_all_items();
    reader.pane.scroll_lines(-100_000);
    reader.pane.scroll_lines(5);
    let before = reader.screen();
    reader.layout();
    assert!(!reader.requests.is_empty());
    reader.answer_all();
    assert!(before.iter().any(|it| it.contains("out10")), "{before:?}");
    assert_eq!(reader.screen(), before);
}

/// The update of a call that began before the window divides a message, until the beginning of the call is loaded.
#[test]
fn page_that_joins_the_message_at_the_top_with_another_keeps_its_line() {
    let mut log = TestLog::default();
    log.prompt("x").call("1", json!({ "title": "one" }));
    for it in 0..400 {
        if it == 205 {
            log.call_update("1", json!({ "status": "completed", "rawOutput": "out" }));
        }
        log.message(&format!("word{it} and more words\n\n"));
    }
    for lines in [2, 14] {
        let mut reader = TestReader::unanswered(log.events.clone(), 403, (60, 5));
        reader.answer_one();
        assert!(reader.pane.items().len() == 3 && reader.pane.window.first() == 204);
        reader.pane.scroll_lines(-100_000);
        // Older pages are needed only at the beginning of the window.
        reader.resize(60, 30);
        reader.pane.scroll_lines(lines);
        let first = reader.words("word").first().cloned();
        reader.layout();
        assert!(!reader.requests.is_empty());
        reader.answer_all();
        assert!(reader.pane.items().len() == 3 && reader.pane.window.first() == 1);
        assert_eq!(reader.words("word").first(), first.as_ref());
    }
}

/// The width changes before and after an action: the line of the reader is the one at the time of the action.
#[test]
fn action_makes_the_line_at_the_top_the_line_of_the_reader() {
    let mut log = TestLog::default();
    log.prompt("x").message(&paragraphs(20)).call("1", json!({ "title": "ls" }));
    log.message(&paragraphs(3));
    for lines in 3..9 {
        let mut reader = TestReader::open(log.events.clone(), (44, 20));
        reader.act(|it| it.scroll_lines(-lines));
        reader.resize(120, 12);
        reader.act(TranscriptPane::select_previous);
        let first = reader.words("w").first().cloned().unwrap();
        for width in [12, 60, 15] {
            reader.resize(width, 3);
            let visible = reader.words("w");
            assert!(visible.contains(&first), "{first} at {width}: {visible:?}");
        }
    }
}

#[test]
fn folded_line_of_the_reader_becomes_the_header_of_its_item() {
    let mut log = TestLog::default();
    log.prompt("x").message(&paragraphs(5)).thought(&paragraphs(9)).message(&paragraphs(9));
    let mut reader = TestReader::open(log.events.clone(), (60, 10));
    reader.act(TranscriptPane::toggle_all_items);
    reader.act(|it| it.scroll_lines(-61));
    assert!(reader.screen()[0].starts_with("  │ w"), "{}", reader.text());
    reader.act(TranscriptPane::toggle_all_items);
    for (width, height) in [(60, 10), (18, 3), (100, 12)] {
        reader.resize(width, height);
        assert!(reader.screen()[0].starts_with("· Thought"), "{}", reader.text());
    }
}

#[test]
fn tool_call_that_grows_above_the_screen_does_not_move_it() {
    let mut log = TestLog::default();
    log.prompt("x").call("1", json!({ "title": "make", "status": "in_progress" }));
    log.message(&paragraphs(20));
    log.call_update("1", json!({ "status": "completed", "rawOutput": "a\n".repeat(50) }));
    let mut reader = TestReader::unanswered(log.events, 3, (80, 10));
    reader.answer_all();
    reader.act(TranscriptPane::toggle_all_items);
    reader.act(|it| it.scroll_lines(-5));
    let before = reader.screen();
    reader.happen(1);
    let after = reader.screen();
    assert_eq!(before[..9], after[..9]);
}

#[test]
fn scrolling_down_to_the_end_follows_it_again() {
    let mut reader = TestReader::unanswered(numbered_log(300), 200, (60, 10));
    reader.answer_all();
    reader.act(|it| it.scroll_lines(-7));
    reader.happen(50);
    assert!(!reader.is_following() && reader.pane.has_news());
    for _ in 0..200 {
        reader.act(|it| it.scroll_lines(3));
    }
    assert!(reader.is_following() && !reader.pane.has_news());
    reader.happen(50);
    assert_eq!(reader.words("event-").last().unwrap(), "event-300");
}

#[test]
fn page_that_fails_or_does_not_arrive_is_read_again() {
    let mut reader = TestReader::unanswered(numbered_log(900), 900, (60, 10));
    let request = reader.requests.pop_front().unwrap();
    reader.layout();
    assert!(reader.requests.is_empty());
    reader.pane.on_read_failed(crate::hub::LogRange::End);
    reader.now += 1000;
    reader.layout();
    assert_eq!(reader.requests.pop_front(), Some(request.clone()));
    reader.now += 15_000;
    reader.layout();
    assert_eq!(reader.requests, [request]);
    reader.answer_all();
    assert_eq!(reader.words("event-").last().unwrap(), "event-900");
}

#[test]
fn events_that_cannot_be_read_leave_no_gap() {
    let mut reader = TestReader::open(numbered_log(1000), (60, 10));
    let missing = MissingEvent { seq: jackfield_events::Seq(990), why: String::new() };
    let mut page = reader.page(crate::hub::LogRange::End, 200);
    page.events.retain(|it| it.seq != Some(missing.seq));
    reader.pane.window.open(page.events, page.bounds, page.end);
    reader.pane.is_changed = true;
    reader.layout();
    reader.answer_all();
    assert!(!reader.pane.window.has_after());
    assert_eq!(reader.words("event-").last().unwrap(), "event-1000");
}

#[test]
fn events_that_arrive_twice_or_early_are_shown_once() {
    let mut reader = TestReader::unanswered(numbered_log(400), 300, (60, 10));
    reader.answer_all();
    let events = reader.log.clone();
    reader.known = 320;
    reader.pane.on_events(events[305..320].to_vec());
    reader.layout();
    reader.answer_all();
    reader.pane.on_events(events[290..320].to_vec());
    reader.pane.layout(Time(0));
    let seqs = reader.pane.window.seqs();
    assert!(seqs.windows(2).all(|it| it[0] + 1 == it[1]));
    assert_eq!(seqs.last(), Some(&320));
}
