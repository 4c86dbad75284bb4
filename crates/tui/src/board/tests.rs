//! Tests of the board through the whole interface.

use crate::{
    hub::{HubRequest, HubUpdate, RequestNumber, SessionRow, SessionState},
    page::{ActivePage, AppEffect, AppInput},
    session::SessionView,
    test_data::{TestApp, control_key, demo_agents, demo_rows, session_row},
};
use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use serde_json::json;

fn app_with(rows: Vec<SessionRow>) -> TestApp {
    TestApp::with_lists((80, 24), rows, Vec::new())
}

fn demo_app() -> TestApp {
    app_with(demo_rows())
}

/// The requests that an input sent.
fn requests(effects: &[AppEffect]) -> Vec<HubRequest> {
    let request = |it: &AppEffect| match it {
        AppEffect::Hub(_, request) => Some(request.clone()),
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

fn last_number(effects: &[AppEffect]) -> RequestNumber {
    let number = |it: &AppEffect| match it {
        AppEffect::Hub(number, _) => Some(*number),
        _ => None,
    };
    effects.iter().rev().find_map(number).expect("a request was sent")
}

/// The line with the mark of the selection.
fn selected(app: &mut TestApp) -> String {
    let frame = app.draw();
    frame.lines().find(|it| it.starts_with('›')).unwrap_or_default().to_owned()
}

fn notice(app: &TestApp) -> &str {
    app.state.notice.as_ref().map_or("", |it| &it.0)
}

#[test]
fn selection_stays_on_the_session_when_rows_change() {
    let mut app = demo_app();
    app.press(KeyCode::Down);
    assert!(selected(&mut app).contains("Write property tests"));
    let asks = |id: &str| SessionRow {
        state: SessionState::Asks,
        title: Some("First of all".into()),
        ..session_row(id)
    };
    app.change_rows(vec![asks("s-new"), asks("s-new2")]);
    assert!(selected(&mut app).contains("Write property tests"));
    app.hub(HubUpdate::Lists { sessions: demo_rows(), requests: Vec::new() });
    assert!(selected(&mut app).contains("Write property tests"));
}

#[test]
fn line_at_the_place_of_a_removed_session_is_selected() {
    let mut app = demo_app();
    app.press(KeyCode::Down);
    app.hub(HubUpdate::Changes {
        sessions: Vec::new(),
        requests: Vec::new(),
        removed: vec!["s-91c2".into()],
        answered: Vec::new(),
    });
    assert!(selected(&mut app).contains("Explain the grammar"));
}

#[test]
fn selection_is_visible_in_every_size() {
    let row = |it: usize| SessionRow {
        cwd: format!("/p{}", it / 3),
        ..session_row(&format!("s-{it:02}"))
    };
    let mut app = app_with((0..60).map(row).collect());
    for (keys, code) in
        [(70, KeyCode::Down), (70, KeyCode::Up), (5, KeyCode::PageDown), (3, KeyCode::PageUp)]
    {
        for _ in 0..keys {
            app.press(code);
            assert_ne!(selected(&mut app), "");
        }
        for height in [24, 3, 4, 13, 14, 24] {
            app.send(AppInput::Resize { width: 80, height });
            assert_ne!(selected(&mut app), "", "height {height}");
        }
    }
    app.press(KeyCode::End);
    assert!(app.draw().lines().any(|it| it.starts_with('›')));
}

#[test]
fn enter_opens_the_selected_session() {
    let mut app = demo_app();
    app.press(KeyCode::Enter);
    assert_eq!(app.state.page, ActivePage::Session);
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-7f3a");
}

#[test]
fn best_match_of_the_filter_is_selected_and_opened() {
    let mut app = demo_app();
    app.type_text("/cluster");
    assert!(selected(&mut app).contains("Plan the move"));
    app.press(KeyCode::Enter);
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-d001");
}

#[test]
fn keys_of_actions_are_text_in_the_filter() {
    let mut app = demo_app();
    let effects = app.type_text("/qdn?");
    assert_eq!(requests(&effects), []);
    assert!(!effects.contains(&AppEffect::Quit));
    assert!(app.draw().contains("Filter: qdn?"));
    app.press(KeyCode::Esc);
    assert!(!app.draw().contains("Filter"));
}

#[test]
fn deletion_can_be_taken_back_for_five_seconds() {
    let mut app = demo_app();
    let effects = app.type_text("d");
    assert_eq!(requests(&effects), []);
    assert!(effects.contains(&AppEffect::WakeAt(app.now.plus(5_000))));
    assert!(!app.draw().contains("! Fix"));
    app.pass_ms(4_999);
    let effects = app.type_text("u");
    assert_eq!(requests(&effects), []);
    assert!(selected(&mut app).contains("Fix the lexer"));
    assert_eq!(requests(&app.pass_ms(10_000)), []);
    app.type_text("u");
    assert_eq!(notice(&app), "No deletion can be taken back");
}

#[test]
fn session_is_deleted_after_five_seconds_and_stays_hidden() {
    let mut app = demo_app();
    app.type_text("d");
    let effects = app.pass_ms(5_000);
    assert_eq!(requests(&effects), [HubRequest::DeleteSession { session: "s-7f3a".into() }]);
    app.change_rows(demo_rows());
    assert!(!app.draw().contains("Fix the lexer"));
    let number = last_number(&effects);
    app.hub(HubUpdate::Outcome { number, result: Err("the session is in use".into()) });
    assert_eq!(
        notice(&app),
        "“Fix the lexer for nested comments” was not deleted: the session is in use"
    );
    app.pass_ms(10_000);
    assert!(app.draw().contains("Fix the lexer"));
}

#[test]
fn quitting_sends_pending_deletions_first() {
    for quit in [control_key('q'), control_key('c')] {
        let mut app = demo_app();
        app.type_text("d");
        let effects = app.send(quit);
        assert_eq!(requests(&effects), [HubRequest::DeleteSession { session: "s-7f3a".into() }]);
        assert_eq!(effects.last(), Some(&AppEffect::Quit));
    }
}

#[test]
fn escape_does_not_end_the_interface() {
    let mut app = demo_app();
    assert!(!app.press(KeyCode::Esc).contains(&AppEffect::Quit));
    assert_eq!(notice(&app), "Press ctrl-q to quit; sessions keep running");
    assert!(app.type_text("q").contains(&AppEffect::Quit));
}

#[test]
fn new_session_starts_and_is_opened() {
    let mut app = demo_app();
    let effects = app.type_text("n");
    let cwd = "/user/me/src/parser".to_owned();
    assert_eq!(requests(&effects), [HubRequest::NewSession { agent: None, cwd }]);
    let result = Ok(json!({ "sessionId": "s-new" }));
    app.hub(HubUpdate::Outcome { number: last_number(&effects), result });
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-new");
}

#[test]
fn new_session_does_not_take_the_focus_from_another_page() {
    let mut app = demo_app();
    let number = last_number(&app.type_text("n"));
    app.type_text("?");
    app.hub(HubUpdate::Outcome { number, result: Ok(json!({ "sessionId": "s-new" })) });
    assert_eq!(app.state.page, ActivePage::Help);
    assert_eq!(notice(&app), "Session started");
}

#[test]
fn agents_are_listed_only_for_a_user_without_sessions() {
    let mut app = TestApp::new(80, 24);
    let lists = |sessions| HubUpdate::Lists { sessions, requests: Vec::new() };
    assert_eq!(requests(&app.hub(lists(Vec::new()))), [HubRequest::ListAgents]);
    app.hub(HubUpdate::Agents(demo_agents(&["claude"])));
    assert!(app.state.board.overview().is_some());
    app.change_rows(vec![session_row("s-1")]);
    assert_eq!(app.state.board.overview(), None);
    assert_eq!(requests(&app.hub(lists(demo_rows()))), []);
}

#[test]
fn agent_and_directory_of_a_new_session_are_chosen() {
    let mut app = demo_app();
    let effects = app.type_text("N");
    assert_eq!(requests(&effects), [HubRequest::ListAgents]);
    app.hub(HubUpdate::Agents(demo_agents(&["claude", "codex"])));
    app.press(KeyCode::Down);
    app.press(KeyCode::Down);
    app.press(KeyCode::Down);
    app.type_text("/sub");
    let effects = app.press(KeyCode::Enter);
    let cwd = "/user/me/src/parser/sub".to_owned();
    assert_eq!(requests(&effects), [HubRequest::NewSession { agent: Some("codex".into()), cwd }]);
    let number = last_number(&effects);
    app.hub(HubUpdate::Outcome { number, result: Err("no such directory".into()) });
    assert_eq!(notice(&app), "The session was not started: no such directory");
}

#[test]
fn working_session_is_closed_only_after_a_confirmation() {
    let mut app = demo_app();
    assert_eq!(requests(&app.type_text("cx")), []);
    let effects = app.type_text("cy");
    assert_eq!(requests(&effects), [HubRequest::CloseSession { session: "s-7f3a".into() }]);
    app.press(KeyCode::Down);
    app.press(KeyCode::Down);
    let effects = app.type_text("c");
    assert_eq!(requests(&effects), [HubRequest::CloseSession { session: "s-b204".into() }]);
}

#[test]
fn session_is_renamed_forked_and_its_id_copied() {
    let mut app = demo_app();
    app.type_text("r");
    app.send(control_key('u'));
    app.type_text(" parser fix ");
    let effects = app.press(KeyCode::Enter);
    let name = "parser fix".to_owned();
    assert_eq!(requests(&effects), [HubRequest::RenameSession { session: "s-7f3a".into(), name }]);
    let effects = app.type_text("f");
    assert_eq!(
        requests(&effects),
        [HubRequest::ForkSession { session: "s-7f3a".into(), at: None }]
    );
    assert!(app.type_text("y").contains(&AppEffect::Copy("s-7f3a".into())));
}

#[test]
fn click_selects_a_session_and_opens_the_selected_one() {
    let mut app = demo_app();
    let click = |row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        AppInput::Mouse(MouseEvent { kind, column: 5, row, modifiers: KeyModifiers::NONE })
    };
    let frame = app.draw();
    let row = frame.lines().position(|it| it.contains("Write property tests")).unwrap();
    let row = u16::try_from(row).unwrap();
    app.send(click(row));
    assert!(selected(&mut app).contains("Write property tests"));
    assert_eq!(app.state.page, ActivePage::Board);
    app.send(click(row));
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-91c2");
}

#[test]
fn collapsed_project_is_selected_and_opened_with_the_same_key() {
    let mut app = demo_app();
    app.type_text(" ");
    assert!(selected(&mut app).starts_with("›▸ ~/src/parser !1 ●1 ○1 ·1"));
    assert!(!app.draw().contains("Fix the lexer"));
    app.press(KeyCode::Enter);
    assert!(selected(&mut app).contains("Fix the lexer"));
}

#[test]
fn ten_thousand_sessions_cost_as_much_as_the_page_shows() {
    let row = |it: usize| SessionRow {
        title: Some(format!("Task {it}")),
        cwd: format!("/p/{}", it / 100),
        state: SessionState::Working,
        ..session_row(&format!("s-{it:05}"))
    };
    let mut app = app_with((0..10_000).map(row).collect());
    assert_eq!(app.state.board.list().lines.len(), 10_100);
    assert_eq!(app.state.board.visible_lines().len(), 21);
    let builds = app.state.board.list_builds;
    // A change of what a session does is one row; moving and drawing need no new list.
    for index in 0..100 {
        let doing = Some(format!("no output for {index} s"));
        app.change_rows(vec![SessionRow { doing, ..row(index) }]);
        app.press(KeyCode::PageDown);
    }
    assert_eq!(app.state.board.list_builds, builds);
    app.type_text("/9999");
    assert_eq!(app.state.board.list_builds, builds + 4);
    assert!(selected(&mut app).contains("Task 9999"));
}

#[test]
fn session_that_was_named_at_the_start_is_opened() {
    for (wanted, opened) in [
        ("s-91c2", Some("s-91c2")),
        ("s-91", Some("s-91c2")),
        ("release notes", Some("s-b2aa")),
        ("s-", None),
    ] {
        let mut app = TestApp::new(80, 24);
        app.state.options.session = Some(wanted.into());
        app.hub(HubUpdate::Lists { sessions: demo_rows(), requests: Vec::new() });
        assert_eq!(app.state.session.as_ref().map(SessionView::session_id), opened, "{wanted}");
    }
}
