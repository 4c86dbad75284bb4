//! A chunk of a message costs the same for a short and a long message.

use super::TestReader;
use crate::transcript::test_log::TestLog;
use serde_json::json;

/// The blocks and lines that are rendered for each of 500 chunks of a message that has `chunks` already.
fn rendered_per_chunk(chunks: usize, chunk: impl Fn(usize) -> String) -> (f64, f64) {
    let mut log = TestLog::default();
    log.prompt("x").call("1", json!({ "title": "ls", "status": "completed" }));
    for it in 0..chunks + 500 {
        log.message(&chunk(it));
    }
    let mut reader = TestReader::unanswered(log.events, 2 + chunks, (100, 40));
    reader.answer_all();
    let before = reader.pane.cache.rendered;
    for _ in 0..500 {
        reader.happen(1);
    }
    let after = reader.pane.cache.rendered;
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    let average = |after: usize, before: usize| (after - before) as f64 / 500.0;
    (average(after.0, before.0), average(after.1, before.1))
}

#[test]
fn chunk_renders_only_the_last_block_of_its_message() {
    let words = |it: usize| {
        let end = if it % 20 == 19 { "\n\n" } else { " " };
        format!("word{it}{end}")
    };
    let (short, long) = (rendered_per_chunk(100, words), rendered_per_chunk(3000, words));
    assert!(short.0 < 1.2 && long.0 < 1.2, "blocks per chunk: {} and {}", short.0, long.0);
    assert!(long.1 < 30.0, "lines per chunk: {}", long.1);
}

#[test]
fn chunk_of_long_code_renders_only_the_end_of_the_code() {
    let code = |it: usize| match it {
        0 => "```rust\n".to_owned(),
        it => format!("let a{it} = {it};\n"),
    };
    let (_, lines) = rendered_per_chunk(3000, code);
    assert!(lines < 500.0, "lines per chunk: {lines}");
}

#[test]
fn many_events_at_once_are_laid_out_once() {
    let mut log = TestLog::default();
    log.prompt("x");
    for it in 0..1000 {
        log.message(&format!("word{it} "));
    }
    let mut reader = TestReader::unanswered(log.events, 1, (100, 40));
    reader.answer_all();
    let before = reader.pane.cache.rendered.0;
    reader.happen(1000);
    assert!(reader.pane.cache.rendered.0 - before < 20);
    let rendered = reader.pane.cache.rendered.0;
    reader.layout();
    reader.layout();
    assert_eq!(reader.pane.cache.rendered.0, rendered);
}
