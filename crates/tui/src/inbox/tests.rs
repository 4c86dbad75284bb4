//! Tests of the inbox through the whole interface.

use crate::{
    hub::{AnsweredRequest, HubRequest, HubUpdate, OpenRequest, RequestNumber},
    page::{ActivePage, AppEffect, AppInput},
    test_data::{TestApp, demo_requests, demo_rows},
};
use crossterm::event::KeyCode;
use serde_json::{Value, json};

/// The inbox with one of the requests, after the quiet time.
fn inbox_with(requests: Vec<OpenRequest>) -> TestApp {
    let mut app = TestApp::with_lists((100, 30), demo_rows(), requests);
    app.press(KeyCode::F(2));
    app.be_quiet();
    app
}

fn inbox_at(index: usize) -> TestApp {
    inbox_with(vec![demo_requests().remove(index)])
}

fn answers(effects: &[AppEffect]) -> Vec<(RequestNumber, HubRequest)> {
    let answer = |it: &AppEffect| match it {
        AppEffect::Hub(number, request) if !matches!(request, HubRequest::ReadLog { .. }) => {
            Some((*number, request.clone()))
        }
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn option(session: &str, number: u64, option: &str) -> HubRequest {
    HubRequest::AnswerOption { session: session.into(), number, option: option.into() }
}

fn result_of(effects: &[AppEffect]) -> Value {
    match answers(effects).pop() {
        Some((_, HubRequest::AnswerForm { result, .. })) => result,
        other => panic!("no result of a form: {other:?}"),
    }
}

fn report(app: &mut TestApp, number: u64, by: &str, option: Option<&str>) -> Vec<AppEffect> {
    app.hub(HubUpdate::Changes {
        sessions: Vec::new(),
        requests: Vec::new(),
        removed: Vec::new(),
        answered: vec![AnsweredRequest {
            session: "s-7f3a".into(),
            number,
            by: Some(by.into()),
            option: option.map(str::to_owned),
        }],
    })
}

#[test]
fn every_option_is_chosen_by_its_keys() {
    for (key, chosen) in
        [('1', "once"), ('y', "once"), ('2', "always"), ('a', "always"), ('3', "no"), ('n', "no")]
    {
        let effects = inbox_at(0).type_text(&key.to_string());
        let sent: Vec<_> = answers(&effects).into_iter().map(|it| it.1).collect();
        assert_eq!(sent, [option("s-7f3a", 1, chosen)], "{key}");
    }
    assert_eq!(answers(&inbox_at(0).type_text("4N")), []);
}

#[test]
fn one_answer_is_sent_however_often_a_key_is_pressed() {
    let mut app = inbox_at(0);
    assert_eq!(answers(&app.type_text("yyy1n")).len(), 1);
    assert!(app.draw().contains("Sending “Allow once”…"));
}

#[test]
fn accepted_answer_shows_the_next_request_and_then_returns() {
    let mut app = inbox_with(demo_requests().drain(..2).collect());
    let number = answers(&app.type_text("y"))[0].0;
    app.hub(HubUpdate::Outcome { number, result: Ok(Value::Null) });
    assert_eq!(app.state.page, ActivePage::Inbox);
    assert!(app.draw().contains("Change a file"));
    app.be_quiet();
    let number = answers(&app.type_text("n"))[0].0;
    app.hub(HubUpdate::Outcome { number, result: Ok(Value::Null) });
    assert_eq!(app.state.page, ActivePage::Board);
    assert_eq!(app.state.notice.as_ref().unwrap().0, "Answered: Reject");
}

#[test]
fn report_before_the_outcome_is_the_same_answer() {
    let mut app = inbox_at(0);
    let number = answers(&app.type_text("y"))[0].0;
    report(&mut app, 1, "tui", Some("once"));
    assert_eq!(app.state.notice.as_ref().unwrap().0, "Answered: Allow once");
    app.hub(HubUpdate::Outcome { number, result: Ok(Value::Null) });
    assert_eq!(app.state.page, ActivePage::Board);
}

#[test]
fn answer_of_another_client_is_shown_with_its_name() {
    for (by, option, text) in [
        ("phone", Some("no"), "Answered by phone: Reject"),
        ("policy", Some("once"), "Answered by a rule: Allow once"),
        ("jackfield", None, "Closed without an answer"),
    ] {
        let mut app = inbox_with(demo_requests());
        report(&mut app, 1, by, option);
        let frame = app.draw();
        let first = frame.lines().nth(1).unwrap();
        assert!(first.starts_with(&format!(" {text} (codex: Run a command")), "{frame}");
        assert!(frame.contains("Change a file"), "{frame}");
        assert_eq!(answers(&app.type_text("y")), []);
    }
}

#[test]
fn last_request_answered_elsewhere_leaves_the_inbox_open() {
    let mut app = inbox_at(0);
    report(&mut app, 1, "phone", Some("once"));
    let frame = app.draw();
    assert!(frame.contains("Answered by phone: Allow once"), "{frame}");
    assert!(frame.contains("No agent waits for an answer"), "{frame}");
}

#[test]
fn refused_answer_can_be_given_again() {
    let mut app = inbox_at(0);
    let number = answers(&app.type_text("y"))[0].0;
    app.hub(HubUpdate::Outcome { number, result: Err("the host is away".into()) });
    assert!(app.draw().contains("The answer was not accepted: the host is away"));
    assert_eq!(answers(&app.type_text("y")), []);
    app.be_quiet();
    assert_eq!(answers(&app.type_text("y")).len(), 1);
}

#[test]
fn request_without_a_rejection_is_denied_with_a_cancelled_outcome() {
    let mut request = demo_requests().remove(0);
    request.options.retain(|it| !it.kind.starts_with("reject"));
    let effects = inbox_with(vec![request]).type_text("n");
    assert_eq!(result_of(&effects), json!({ "outcome": { "outcome": "cancelled" } }));
}

#[test]
fn next_and_previous_request_are_shown_in_a_circle() {
    let mut app = inbox_with(demo_requests().drain(..2).collect());
    assert!(app.draw().contains("1 of 2  Run a command"));
    app.press(KeyCode::Tab);
    assert!(app.draw().contains("2 of 2  Change a file"));
    app.press(KeyCode::Tab);
    assert!(app.draw().contains("1 of 2  Run a command"));
    app.press(KeyCode::BackTab);
    assert!(app.draw().contains("2 of 2  Change a file"));
    app.type_text("o");
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-c001");
}

#[test]
fn form_is_filled_in_with_keys() {
    let mut app = inbox_at(2);
    app.type_text("feature/parser");
    app.press(KeyCode::Enter);
    app.type_text("3");
    app.press(KeyCode::Tab);
    app.type_text(" ");
    app.press(KeyCode::Down);
    app.press(KeyCode::Right);
    app.press(KeyCode::Right);
    app.press(KeyCode::Down);
    app.type_text(" ");
    app.press(KeyCode::Enter);
    let effects = app.press(KeyCode::Enter);
    let content = json!({
        "branch": "feature/parser", "reviewers": 3, "draft": true, "merge": "rebase", "labels": ["bug"],
    });
    assert_eq!(result_of(&effects), json!({ "action": "accept", "content": content }));
}

#[test]
fn wrong_value_is_explained_and_nothing_is_sent() {
    let mut app = inbox_at(2);
    for _ in 0..5 {
        app.press(KeyCode::Tab);
    }
    assert_eq!(answers(&app.press(KeyCode::Enter)), []);
    let frame = app.draw();
    assert!(frame.contains("A value is required."), "{frame}");
    assert!(frame.contains("› Branch*"), "{frame}");
}

#[test]
fn form_is_declined_or_cancelled_with_its_buttons() {
    for (tabs, action) in [(6, "decline"), (7, "cancel")] {
        let mut app = inbox_at(2);
        for _ in 0..tabs {
            app.press(KeyCode::Tab);
        }
        assert_eq!(result_of(&app.press(KeyCode::Enter)), json!({ "action": action }));
    }
}

#[test]
fn address_of_a_page_is_shown_and_copied() {
    let mut app = inbox_at(3);
    let frame = app.draw();
    assert!(frame.contains("Host: login.example.org"), "{frame}");
    let url = demo_requests()[3].url.clone().unwrap();
    assert!(app.press(KeyCode::Enter).contains(&AppEffect::Copy(url)));
    app.press(KeyCode::Tab);
    assert_eq!(result_of(&app.press(KeyCode::Enter)), json!({ "action": "accept" }));
}

#[test]
fn pasted_text_goes_into_the_field_only_after_the_quiet_time() {
    let mut app = TestApp::with_lists((100, 30), demo_rows(), vec![demo_requests().remove(2)]);
    app.press(KeyCode::F(2));
    app.send(AppInput::Paste("early".into()));
    app.be_quiet();
    app.send(AppInput::Paste("late\nline".into()));
    let frame = app.draw();
    assert!(frame.contains("late line") && !frame.contains("early"), "{frame}");
}

#[test]
fn diff_of_the_tool_call_is_read_from_the_log() {
    let mut app = TestApp::with_lists((100, 30), demo_rows(), vec![demo_requests().remove(1)]);
    let effects = app.press(KeyCode::F(2));
    let is_read = |it: &AppEffect| matches!(it, AppEffect::Hub(_, HubRequest::ReadLog { .. }));
    assert!(effects.iter().any(is_read));
    app.hub(HubUpdate::LogPage(crate::test_data::diff_page()));
    let frame = app.draw();
    assert!(frame.contains("let limit = 20;") && frame.contains("let limit = 50;"), "{frame}");
}

#[test]
fn hidden_characters_of_a_command_are_visible() {
    let mut request = demo_requests().remove(0);
    request.call = Some(json!({ "commands": ["ls\u{200b}\u{1b}[8m; rm -rf ~"] }));
    let frame = inbox_with(vec![request]).draw();
    assert!(frame.contains(r"$ ls\u{200b}\x1b[8m; rm -rf ~"), "{frame}");
}
