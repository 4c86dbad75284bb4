//! Finished items are printed into the scrollback once, and the frame that follows the end does not show them.

use super::TestReader;
use crate::transcript::test_log::TestLog;
use serde_json::json;

/// The lines that are printed now, without blank ones.
fn print(reader: &mut TestReader) -> Vec<String> {
    let lines = reader.pane.take_finished_lines();
    let lines = lines.iter().map(|it| it.to_string().trim_end().to_owned());
    lines.filter(|it| !it.is_empty()).collect()
}

#[test]
fn items_are_printed_once_when_they_are_finished() {
    let mut log = TestLog::default();
    log.opened().prompt("earlier").message("old answer").end(&json!({ "stopReason": "end_turn" }));
    log.prompt("question").plan(&[("one step", "pending")]).message("first ").message("words");
    log.call("1", json!({ "title": "ls", "status": "pending" })).message("after it");
    log.call_update("1", json!({ "status": "completed" })).plan(&[("one step", "completed")]);
    log.end(&json!({ "stopReason": "end_turn" }));
    let mut reader = TestReader::unanswered(log.events, 4, (60, 12));
    reader.answer_all();
    assert_eq!(print(&mut reader), [""; 0]);
    assert!(reader.text().contains("old answer"));
    let mut steps = Vec::new();
    for count in [1, 2, 2, 1, 1, 1, 1] {
        reader.happen(count);
        steps.push(print(&mut reader).join("\n"));
    }
    let found: Vec<_> = ["question", "", "first words", "", "ls", "", "after it"]
        .iter()
        .zip(&steps)
        .map(|(expected, printed)| {
            printed.contains(expected) && printed.is_empty() == expected.is_empty()
        })
        .collect();
    assert_eq!(found, [true; 7], "{steps:#?}");
    // The plan is in its last state, with the end of the turn.
    let all = steps.join("\n");
    for text in ["question", "first words", "ls", "after it", "one step"] {
        assert_eq!(all.matches(text).count(), 1, "{text} in\n{all}");
    }
    assert!(steps[6].contains("one step") && !all.contains("old answer"));
}

#[test]
fn frame_shows_what_is_not_printed_and_everything_when_scrolled() {
    let mut log = TestLog::default();
    log.opened().prompt("question").message("answer");
    log.end(&json!({ "stopReason": "end_turn" })).prompt("next").message("growing");
    let mut reader = TestReader::unanswered(log.events, 1, (60, 8));
    reader.answer_all();
    print(&mut reader);
    reader.happen(5);
    let printed = print(&mut reader).join("\n");
    let has = ["question", "answer", "next", "growing"].map(|it| printed.contains(it));
    assert_eq!(has, [true, true, true, false], "{printed}");
    assert!(reader.text().contains("growing") && !reader.text().contains("answer"));
    reader.act(|it| it.scroll_lines(-3));
    assert!(reader.text().contains("answer"));
    reader.act(crate::session::TranscriptPane::scroll_to_end);
    assert!(!reader.text().contains("answer"));
    // A click is on the line that is drawn there.
    reader.act(|it| it.select_row(1));
    assert_eq!(reader.pane.selected_text().as_deref(), Some("growing"));
}
