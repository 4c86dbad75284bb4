//! Snapshots of the inbox in several sizes.

use crate::{
    hub::{AnsweredRequest, HubUpdate, OpenRequest, RequestOption},
    test_data::{TestApp, demo_requests, demo_rows, diff_page, frame_tests},
};
use crossterm::event::KeyCode;
use serde_json::json;

fn board(size: (u16, u16)) -> TestApp {
    TestApp::with_lists(size, demo_rows(), demo_requests())
}

/// The inbox with some of the requests, after the quiet time.
fn inbox_with(size: (u16, u16), requests: Vec<OpenRequest>) -> TestApp {
    let mut app = TestApp::with_lists(size, demo_rows(), requests);
    app.press(KeyCode::F(2));
    app.be_quiet();
    app
}

fn inbox_at(size: (u16, u16), index: usize) -> TestApp {
    inbox_with(size, vec![demo_requests().remove(index)])
}

fn large_request() -> OpenRequest {
    let options = (1..=12).map(|it| RequestOption {
        option_id: format!("o{it}"),
        name: format!("Option {it}"),
        kind: "allow_once".to_owned(),
    });
    OpenRequest {
        call: Some(json!({
            "kind": "execute",
            "commands": [(1..=30).map(|it| format!("echo line {it}")).collect::<Vec<_>>().join("\n")],
            "paths": ["/srv/日本語/データ", "/tmp/a"],
            "unknown": ["--flag=value"],
            "folders": ["/srv"],
            "isCut": true,
            "why": "the command writes outside of the working directory",
        })),
        options: options.collect(),
        ..demo_requests().remove(0)
    }
}

frame_tests! {
    board_with_requests: board,
    session_with_requests: |size| {
        let mut app = board(size);
        app.press(KeyCode::Enter);
        app
    },
    inbox_empty: |size| inbox_with(size, Vec::new()),
    inbox_first_of_several: |size| inbox_with(size, demo_requests()),
    inbox_before_the_quiet_time: |size| {
        let mut app = board(size);
        app.press(KeyCode::F(2));
        app
    },
    inbox_with_diff: |size| {
        let mut app = inbox_at(size, 1);
        app.hub(HubUpdate::LogPage(diff_page()));
        app
    },
    inbox_with_form: |size| inbox_at(size, 2),
    inbox_with_wrong_form: |size| {
        let mut app = inbox_at(size, 2);
        for _ in 0..5 {
            app.press(KeyCode::Tab);
        }
        app.press(KeyCode::Enter);
        app
    },
    inbox_with_address: |size| inbox_at(size, 3),
    inbox_with_large_request: |size| inbox_with(size, vec![large_request()]),
    inbox_sending: |size| {
        let mut app = inbox_at(size, 0);
        app.type_text("y");
        app
    },
    inbox_answered_elsewhere: |size| {
        let mut app = inbox_with(size, demo_requests());
        app.hub(HubUpdate::Changes {
            sessions: Vec::new(),
            requests: Vec::new(),
            removed: Vec::new(),
            answered: vec![AnsweredRequest {
                session: "s-7f3a".into(),
                number: 1,
                by: Some("phone".into()),
                option: Some("once".into()),
            }],
        });
        app.be_quiet();
        app.pass_ms(5_000);
        app
    },
}
