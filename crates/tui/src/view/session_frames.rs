//! Snapshots of a session in several sizes.

use crate::{
    demo_settings::demo_queue,
    hub::{HubUpdate, SessionRow, SessionState},
    keymap::{EditingKeys, KeyBindings, KeyChord},
    page::{AppEffect, AppInput},
    test_data::{TestApp, frame_tests, open_session, open_session_with_keys, session_row},
    transcript::test_log::TestLog,
};
use crossterm::event::KeyCode;
use jackfield_views::UsageCost;
use serde_json::json;
use std::collections::BTreeMap;

fn idle_row() -> SessionRow {
    SessionRow { title: Some("Fix the lexer for nested comments".to_owned()), ..session_row("s-1") }
}

fn working_row() -> SessionRow {
    SessionRow {
        state: SessionState::Working,
        doing: Some("shell command `cargo test -p parser` running 1 min 4 s".to_owned()),
        cost: Some(UsageCost { amount: 0.4213, currency: "USD".to_owned() }),
        clients: 2,
        client_names: ["jackfield-tui", "zed"].map(str::to_owned).to_vec(),
        ..idle_row()
    }
}

fn demo_log() -> TestLog {
    let mut log = TestLog::default();
    log.opened().prompt("Why does the lexer fail on nested comments?");
    log.message("It ends a comment at the first `*/`. A counter of open comments fixes that.");
    log.update("usage_update", json!({ "used": 168_000, "size": 200_000 }));
    log.end(&json!({ "stopReason": "end_turn" }));
    log
}

fn idle(size: (u16, u16)) -> TestApp {
    open_session(size, idle_row(), &TestLog::default())
}

fn working(size: (u16, u16)) -> TestApp {
    open_session(size, working_row(), &demo_log())
}

/// Presses keys such as `ctrl-c` one after the other.
fn press(mut app: TestApp, keys: &[&str]) -> TestApp {
    for key in keys {
        app.send(AppInput::Key(KeyChord::parse(key).unwrap().to_event()));
    }
    app
}

fn type_text(mut app: TestApp, text: &str) -> TestApp {
    app.type_text(text);
    app
}

fn paste(mut app: TestApp, text: &str) -> TestApp {
    app.send(AppInput::Paste(text.to_owned()));
    app
}

fn with_queue(mut app: TestApp) -> TestApp {
    app.hub(HubUpdate::Queue { session: "s-1".to_owned(), prompts: demo_queue() });
    app
}

fn with_files(mut app: TestApp) -> TestApp {
    app.type_text("Compare @src");
    let paths = ["src/lexer.rs", "src/lexer/comments.rs", "src/日本語/テスト.rs", "docs/src.md"];
    app.send(AppInput::Files {
        session: "s-1".to_owned(),
        query: "src".to_owned(),
        paths: paths.map(str::to_owned).into(),
    });
    app
}

fn with_vi(size: (u16, u16)) -> TestApp {
    let keymap = KeyBindings::from_config(EditingKeys::Vi, &BTreeMap::new()).unwrap();
    open_session_with_keys(size, idle_row(), &TestLog::default(), keymap)
}

/// The prompt was refused while another one was typed.
fn with_refused_prompt(size: (u16, u16)) -> TestApp {
    let mut app = type_text(idle(size), "Explain the grammar");
    let effects = app.press(KeyCode::Enter);
    let sent = effects.iter().find_map(|it| match it {
        AppEffect::Hub(number, crate::hub::HubRequest::Prompt { .. }) => Some(*number),
        _ => None,
    });
    app.type_text("and tests");
    let result = Err("the agent `claude` ended before it answered".to_owned());
    app.hub(HubUpdate::Outcome { number: sent.unwrap(), result });
    app
}

const LONG_TEXT: &str = "The counter must survive a chunk boundary: 入れ子のコメントは途中で切れることがあります 👨‍👩‍👧 and \
    the lexer is restarted there.";

frame_tests! {
    session_without_events: idle,
    session_working: working,
    session_focus_on_transcript: |size| press(working(size), &["esc"]),
    session_typing: |size| type_text(idle(size), LONG_TEXT),
    session_typing_many_lines: |size| {
        let lines: Vec<_> = (1..=8).map(|it| format!("line {it}")).collect();
        press(paste(paste(idle(size), &lines.join("\n")), "\n9\n10\n11\n12\n13\n14"), &["up", "up"])
    },
    session_pasted_block: |size| {
        type_text(paste(type_text(idle(size), "Fix this: "), &"log line\n".repeat(120)), " please")
    },
    session_command_menu: |size| press(type_text(idle(size), "/"), &["down"]),
    session_command_menu_filtered: |size| type_text(idle(size), "/rev"),
    session_file_menu: |size| press(with_files(idle(size)), &["down", "down"]),
    session_queue: |size| with_queue(working(size)),
    session_queue_focused: |size| press(with_queue(working(size)), &["alt-q", "down", "down"]),
    session_mode_picker: |size| press(idle(size), &["alt-m"]),
    session_model_picker_filtered: |size| type_text(press(idle(size), &["alt-o"]), "us"),
    session_picker_without_match: |size| type_text(press(idle(size), &["alt-t"]), "xyz"),
    session_cancel_question: |size| press(with_queue(working(size)), &["ctrl-c"]),
    session_rename: |size| type_text(press(idle(size), &["alt-r"]), " 🚀"),
    session_find_line: |size| type_text(press(working(size), &["ctrl-s"]), "comments"),
    session_clients: |size| press(working(size), &["alt-u"]),
    session_vi_normal: |size| press(type_text(with_vi(size), "edit me"), &["esc", "0"]),
    session_refused_prompt: with_refused_prompt,
    session_asleep: |size| {
        let row = SessionRow { state: SessionState::Asleep, host: Some("build-1".to_owned()), ..idle_row() };
        open_session(size, row, &TestLog::default())
    },
    session_hostile_texts: |size| {
        let row = SessionRow {
            title: Some("\u{1b}]0;title\u{7}\u{202e}reversed".to_owned()),
            agent: "cla\u{1b}[31mude\nsecond".to_owned(),
            doing: Some("\u{1b}[2Jcleared\r\n".to_owned()),
            state: SessionState::Working,
            ..session_row("s-1")
        };
        paste(open_session(size, row, &TestLog::default()), "\u{1b}[2J\u{9b}1mpasted\u{7}")
    },
}
