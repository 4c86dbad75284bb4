//! A log of 100,000 events is read from its end to its beginning and back, with few of them in memory.

use super::{TestReader, TranscriptPane};
use crate::transcript::{LINES_MAX, WINDOW_BYTES_MAX, WINDOW_EVENTS_MAX};
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, Seq, Time, TurnEnded, TurnOutcome, TurnStarted,
};
use serde_json::{Value, json};

const EVENTS: u64 = 100_000;

/// A log in which each event is shown as one word: `event-1`, `event-2`, …
pub(super) fn numbered_log(events: u64) -> Vec<ReceivedEvent> {
    (1..=events).map(numbered_event).collect()
}

fn numbered_event(seq: u64) -> ReceivedEvent {
    let (turn, word) = (seq.div_ceil(10), format!("event-{seq}"));
    let said = |update: Value| {
        let frame = json!({ "params": { "update": update } });
        EventBody::Said(AgentMessage { turn, late: false, frame })
    };
    let body = match seq % 10 {
        1 => {
            let frame = json!({ "params": { "prompt": [{ "type": "text", "text": word }] } });
            EventBody::Prompted(TurnStarted { turn, by: "zed".into(), prompt: None, frame })
        }
        0 => {
            let outcome = TurnOutcome::Stopped(json!({ "stopReason": word }));
            EventBody::Ended(TurnEnded { turn, outcome })
        }
        5 => said(json!({ "sessionUpdate": "tool_call", "toolCallId": word, "title": word })),
        _ => {
            let content = json!({ "type": "text", "text": word });
            let kind = "agent_message_chunk";
            said(json!({ "sessionUpdate": kind, "messageId": word, "content": content }))
        }
    };
    ReceivedEvent { session: None, seq: Some(Seq(seq)), at: Time(seq * 10), body }
}

/// The numbers of the events on the screen, which are consecutive.
fn visible_numbers(reader: &TestReader) -> (u64, u64) {
    let lines = reader.pane.visible_rows().map(|it| it.line.to_string());
    let number = |line: String| {
        let mut words = line.split(' ');
        words.find_map(|it| it.strip_prefix("event-")).map(|it| it.parse().unwrap())
    };
    let numbers: Vec<u64> = lines.filter_map(number).collect();
    assert!(numbers.windows(2).all(|it| it[0] + 1 == it[1]), "{numbers:?}");
    (numbers[0], numbers[numbers.len() - 1])
}

fn check_memory(reader: &TestReader) {
    let (events, bytes) = reader.pane.window.held();
    assert!(events <= WINDOW_EVENTS_MAX, "{events} events are held");
    assert!(bytes <= WINDOW_BYTES_MAX, "{bytes} bytes are held");
    let lines = reader.pane.cache.line_count();
    assert!(lines <= LINES_MAX + 10 * reader.pane.rows(), "{lines} lines are held");
    let seqs = reader.pane.window.seqs();
    assert!(seqs.windows(2).all(|it| it[0] + 1 == it[1]));
}

#[test]
fn long_log_is_read_to_its_beginning_and_back_with_few_events_in_memory() {
    let mut reader = TestReader::open(numbered_log(EVENTS), (80, 600));
    let mut screens = 0;
    let (mut first, last) = visible_numbers(&reader);
    assert_eq!(last, EVENTS);
    while first > 1 {
        reader.act(|it| it.scroll_pages(-1));
        let (start, end) = visible_numbers(&reader);
        assert!(start < first && first <= end + 1, "{start} to {end} follows {first}");
        first = start;
        screens += 1;
        check_memory(&reader);
    }
    let mut last = visible_numbers(&reader).1;
    while !reader.is_following() {
        reader.act(|it| it.scroll_pages(1));
        let (start, end) = visible_numbers(&reader);
        assert!(start <= last + 1 && last <= end, "{start} to {end} follows {last}");
        last = end;
        check_memory(&reader);
    }
    assert_eq!(last, EVENTS);
    assert!(screens > 200);
}

#[test]
fn first_screen_needs_one_small_page() {
    let mut reader = TestReader::unanswered(numbered_log(5000), 5000, (80, 40));
    assert_eq!(reader.requests.len(), 1);
    reader.answer_one();
    assert_eq!(visible_numbers(&reader).1, 5000);
    assert_eq!(reader.pane.window.held().0, 200);
}

#[test]
fn beginning_and_end_are_reached_at_once() {
    let mut reader = TestReader::open(numbered_log(9000), (80, 40));
    reader.act(TranscriptPane::scroll_to_start);
    assert_eq!(visible_numbers(&reader).0, 1);
    check_memory(&reader);
    assert!(!reader.pane.is_at_end());
    reader.act(TranscriptPane::scroll_to_end);
    assert_eq!(visible_numbers(&reader).1, 9000);
    assert!(reader.pane.is_at_end());
}

#[test]
fn events_that_happen_while_the_reader_is_far_from_the_end_are_not_held() {
    let mut reader = TestReader::unanswered(numbered_log(12_000), 6000, (80, 40));
    reader.answer_all();
    reader.act(TranscriptPane::scroll_to_start);
    for _ in 0..60 {
        reader.happen(100);
        check_memory(&reader);
    }
    assert_eq!(visible_numbers(&reader).0, 1);
    assert!(reader.pane.has_news());
    reader.act(TranscriptPane::scroll_to_end);
    assert_eq!(visible_numbers(&reader).1, 12_000);
    assert!(!reader.pane.has_news());
}

#[test]
fn end_is_followed_with_few_events_in_memory() {
    let mut reader = TestReader::unanswered(numbered_log(8000), 100, (80, 40));
    reader.answer_all();
    while reader.known < 8000 {
        reader.happen(250);
        check_memory(&reader);
        assert_eq!(visible_numbers(&reader).1, reader.known as u64);
    }
}
