//! Snapshots of transcripts on screens of all sizes.

use crate::{
    hub::{LogPage, LogRange},
    session::TranscriptPane,
    text::{ColorDepth, ViewTheme},
    transcript::test_log::TestLog,
};
use jackfield_events::Time;
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

/// A transcript, and what the reader does with it.
struct DrawnTranscript {
    log: TestLog,
    act: fn(&mut TranscriptPane),
}

/// The text of the screen without trailing spaces.
fn draw(scene: &DrawnTranscript, width: u16, height: u16) -> String {
    let theme = ViewTheme::new(ColorDepth::None);
    let end = scene.log.events.len() as u64;
    let (mut pane, _) = TranscriptPane::new("s-1".to_owned(), end, theme);
    pane.resize(width, height);
    let events = scene.log.events.clone();
    let session = "s-1".to_owned();
    pane.on_page(LogPage { session, range: LogRange::End, events, bounds: Some((1, end)), end });
    let now = Time((end + 42) * 1000);
    pane.layout(now);
    (scene.act)(&mut pane);
    pane.layout(now);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| pane.draw(frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let rows: Vec<String> = (0..height).map(|y| row(y).trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

fn conversation() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.opened().prompt("Please fix the parser.\nIt fails on empty input.");
    log.message("I will look at the **parser** first.\n\n1. read `parse.rs`\n2. write a test\n\n");
    log.message("```rust\nfn parse(text: &str) -> Option<Tree> {\n    todo!()\n}\n```\n");
    let cost = json!({ "amount": 0.0421, "currency": "USD" });
    log.update("usage_update", json!({ "used": 24_000, "size": 200_000, "cost": cost }));
    let usage = json!({ "inputTokens": 12_345, "outputTokens": 678, "cachedReadTokens": 9000 });
    log.end(&json!({ "stopReason": "end_turn", "usage": usage }));
    DrawnTranscript { log, act: |_| {} }
}

fn calls() -> TestLog {
    let mut log = TestLog::default();
    log.prompt("Run everything.");
    let input = json!({ "command": "cargo test --workspace --all-features" });
    log.call("1", json!({ "title": "cargo test --workspace --all-features", "kind": "execute", "rawInput": input }));
    log.call_update("1", json!({ "status": "completed", "rawOutput": "running 3 tests\n\u{1b}[32mok\u{1b}[0m\n3 passed" }));
    let diff = json!({ "type": "diff", "path": "/user/project/src/parse.rs",
        "oldText": "fn parse() {\n    todo!()\n}\n", "newText": "fn parse() {\n    None\n}\n// end\n" });
    log.call("2", json!({ "title": "Edit src/parse.rs", "kind": "edit", "status": "completed", "content": [diff] }));
    log.call("3", json!({ "title": "Read missing.txt", "kind": "read", "status": "failed", "rawOutput": "no such file" }));
    log.call("4", json!({ "title": "Search the web", "kind": "fetch", "status": "cancelled" }));
    let task = json!({ "query": "all uses of parse", "limit": 20 });
    log.call("5", json!({ "title": "Look for uses", "kind": "search", "status": "in_progress", "rawInput": task }));
    let parent = json!({ "jackfield": { "parentToolCallId": "5" } });
    log.call("6", json!({ "title": "Read lib.rs", "kind": "read", "_meta": parent }));
    log
}

fn folded_calls() -> DrawnTranscript {
    DrawnTranscript { log: calls(), act: |_| {} }
}

fn expanded_calls() -> DrawnTranscript {
    DrawnTranscript { log: calls(), act: TranscriptPane::toggle_all_items }
}

fn plan_and_thoughts() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.prompt("Think about it.").thought("**Where to begin**\n\nThe parser is the oldest part.");
    log.plan(&[
        ("Read the parser and all of its tests, also those of the lexer", "completed"),
        ("Write a test for empty input", "in_progress"),
        ("Fix it", "pending"),
    ]);
    log.message("The plan is ready.").thought("Now I have to think again, and for longer.");
    DrawnTranscript { log, act: |_| {} }
}

fn expanded_thought() -> DrawnTranscript {
    let mut scene = plan_and_thoughts();
    scene.act = |pane| {
        pane.scroll_to_start();
        pane.select_next();
        pane.select_next();
        pane.toggle_item();
    };
    scene
}

fn requests() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.prompt("Clean up.");
    let call = json!({ "toolCallId": "1", "title": "rm -rf target" });
    log.ask(&call).answer("yes").event("learned", json!({ "ask": 1, "rule": {} }));
    log.ask(&json!({ "toolCallId": "2", "title": "git push --force" })).answer("no");
    log.ask(
        &json!({ "toolCallId": "3", "title": "Write /etc/hosts, which is outside of the project" }),
    );
    DrawnTranscript { log, act: |_| {} }
}

fn notices() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.opened();
    let frame = json!({ "method": "session/set_mode", "params": { "modeId": "plan" } });
    log.event("configured", json!({ "frame": frame, "answer": {} })).prompt("Go");
    log.event("leftOut", json!({ "what": "a message", "bytes": 20_000_000, "limit": 16_777_216 }));
    log.event("gone", json!({ "status": "exit status 101", "stderr": "panicked\nat main.rs:3" }));
    log.event("bound", json!({ "restore": "failed", "setup": null }));
    let error = json!({ "message": "interrupted: the agent exited" });
    log.event("ended", json!({ "turn": 1, "how": "interrupted", "answer": error }));
    DrawnTranscript { log, act: |_| {} }
}

fn selected_item() -> DrawnTranscript {
    let mut scene = folded_calls();
    scene.act = |pane| {
        pane.select_previous();
        pane.select_previous();
    };
    scene
}

fn scrolled_up() -> DrawnTranscript {
    let mut log = TestLog::default();
    for turn in 1..40 {
        log.prompt(&format!("Question {turn}")).message(&format!("Answer {turn} with more words."));
        log.end(&json!({ "stopReason": "end_turn" }));
    }
    let act = |pane: &mut TranscriptPane| {
        pane.scroll_pages(-1);
        let mut log = TestLog::default();
        for _ in 0..=117 {
            log.message("new");
        }
        pane.on_events(log.events.split_off(117));
    };
    DrawnTranscript { log, act }
}

fn growing_code() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.prompt("Write code.").message("Here it is:\n\n```python\ndef main():\n    print(\"hel");
    DrawnTranscript { log, act: |_| {} }
}

fn wide_characters() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.prompt("日本語のテキストを折り返してください。とても長い行です。もっと長くします。");
    log.message("👩‍👩‍👧‍👦 family, 🇩🇪 flag, e\u{301} accent\n\n| 列 | 値 |\n|---|---|\n| 一 | 🎉 |\n");
    log.call("1", json!({ "title": "読む ファイル.txt", "kind": "read", "status": "completed" }));
    DrawnTranscript { log, act: |_| {} }
}

fn hostile_text() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.prompt("a\u{1b}[2Jb\u{7}c\u{9b}31md")
        .message("\u{1b}]52;c;ZXZpbA==\u{7}text \u{202e}reversed");
    let title = "title\u{1b}]0;x\u{7}\nsecond line\u{200b}";
    log.call(
        "\u{1b}",
        json!({ "title": title, "kind": "\u{1b}[31m", "rawOutput": "\u{1b}c\u{1b}[Hout" }),
    );
    log.plan(&[("\u{1b}[5mblink", "\u{1b}")]).thought("\u{90}dcs\u{9c}thought");
    DrawnTranscript { log, act: TranscriptPane::toggle_all_items }
}

fn empty_session() -> DrawnTranscript {
    let mut log = TestLog::default();
    log.update("available_commands_update", json!({ "availableCommands": [] }));
    DrawnTranscript { log, act: |_| {} }
}

/// One test for each scene and size.
macro_rules! transcript_snapshots {
    ($($scene:ident),* $(,)?) => {
        $(mod $scene {
            transcript_snapshots!(@sizes $scene:
                small 40 12, narrow 50 30, usual 80 24, large 100 40, wide 132 20, full 200 60);
        })*
    };
    (@sizes $scene:ident: $($size:ident $width:literal $height:literal),*) => {
        $(#[test]
        fn $size() {
            let name = concat!(stringify!($scene), "_", $width, "x", $height);
            let screen = super::draw(&super::$scene(), $width, $height);
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(name, screen);
            });
        })*
    };
}

transcript_snapshots!(
    conversation,
    folded_calls,
    expanded_calls,
    plan_and_thoughts,
    expanded_thought,
    requests,
    notices,
    selected_item,
    scrolled_up,
    growing_code,
    wide_characters,
    hostile_text,
    empty_session,
);
