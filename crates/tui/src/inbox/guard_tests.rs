//! Property tests of the guard: keys that were typed before or while a request appears answer nothing.

use crate::{
    hub::{HubRequest, HubUpdate, OpenRequest},
    inbox::{RequestKey, guard::QUIET_MS, key_of},
    page::{ActivePage, AppEffect, AppInput},
    test_data::{TestApp, demo_requests, demo_rows},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;

/// One thing that happens.
#[derive(Debug, Clone)]
enum GuardStep {
    Key(KeyCode),
    Paste,
    Wait(u64),
    Draw,
    /// The request with this position appears, or changes.
    Request(usize, bool),
    /// The hub confirms or refuses all answers.
    Outcome(bool),
    Resize(u16, u16),
}

/// Keys that could answer, and keys that change the page or the request.
fn any_key() -> impl Strategy<Value = KeyCode> {
    let codes = prop_oneof![
        prop::sample::select("ynaN123456789oq?! iw/".chars().collect::<Vec<_>>())
            .prop_map(KeyCode::Char),
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::F(2),
            KeyCode::F(2),
            KeyCode::Down,
            KeyCode::Right,
            KeyCode::PageDown,
        ]),
    ];
    codes.boxed()
}

fn any_step() -> impl Strategy<Value = GuardStep> {
    prop_oneof![
        6 => any_key().prop_map(GuardStep::Key),
        1 => Just(GuardStep::Paste),
        3 => (0..900_u64).prop_map(GuardStep::Wait),
        4 => Just(GuardStep::Draw),
        2 => (0..4_usize, any::<bool>()).prop_map(|(index, changes)| GuardStep::Request(index, changes)),
        1 => any::<bool>().prop_map(GuardStep::Outcome),
        1 => (20..120_u16, 3..40_u16).prop_map(|(width, height)| GuardStep::Resize(width, height)),
    ]
}

fn answered(effect: &AppEffect) -> Option<RequestKey> {
    match effect {
        AppEffect::Hub(
            _,
            HubRequest::AnswerOption { session, number, .. }
            | HubRequest::AnswerForm { session, number, .. },
        ) => Some((session.clone(), *number)),
        _ => None,
    }
}

/// What the user could have seen: the request with the focus, and the times of its first frame and of later keys.
#[derive(Default)]
struct SeenRequest {
    shown: Option<OpenRequest>,
    times: Vec<u64>,
}

impl SeenRequest {
    fn follow(&mut self, app: &TestApp) {
        let is_focused = app.state.page == ActivePage::Inbox;
        let shown = app.state.inbox.shown_request().filter(|_| is_focused).cloned();
        if shown != self.shown {
            *self = SeenRequest { shown, times: Vec::new() };
        }
    }

    /// Whether there was a quiet time after the first frame and before the key that was typed last.
    fn was_quiet(&self) -> bool {
        self.times.windows(2).any(|it| QUIET_MS <= it[1] - it[0])
    }
}

fn run(app: &mut TestApp, watched: &mut SeenRequest, step: &GuardStep) -> Vec<AppEffect> {
    match step {
        GuardStep::Wait(ms) => app.pass_ms(*ms),
        GuardStep::Draw => {
            if watched.shown.is_some() && watched.times.is_empty() {
                watched.times.push(app.now.0);
            }
            app.send(AppInput::Drawn)
        }
        GuardStep::Key(_) | GuardStep::Paste => {
            if !watched.times.is_empty() {
                watched.times.push(app.now.0);
            }
            match step {
                GuardStep::Key(code) => {
                    app.send(AppInput::Key(KeyEvent::new(*code, KeyModifiers::NONE)))
                }
                _ => app.send(AppInput::Paste("y1\n".to_owned())),
            }
        }
        GuardStep::Request(index, changes) => {
            let mut request = demo_requests().remove(*index);
            if *changes {
                request.what = Some(format!("changed at {}", app.now.0));
            }
            app.add_requests(vec![request])
        }
        GuardStep::Outcome(is_accepted) => {
            let number = app.state.last_request;
            let result =
                if *is_accepted { Ok(serde_json::Value::Null) } else { Err("no".to_owned()) };
            app.hub(HubUpdate::Outcome { number, result })
        }
        GuardStep::Resize(width, height) => {
            app.send(AppInput::Resize { width: *width, height: *height })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every answer is for the request that had the focus, was drawn, and then saw a quiet time.
    #[test]
    fn answer_needs_focus_a_frame_and_a_quiet_time(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut app = TestApp::with_lists((80, 24), demo_rows(), Vec::new());
        let mut watched = SeenRequest::default();
        for step in &steps {
            let effects = run(&mut app, &mut watched, step);
            for key in effects.iter().filter_map(answered) {
                let shown = watched.shown.as_ref().map(key_of);
                prop_assert_eq!(shown, Some(key), "another request was answered");
                prop_assert!(watched.was_quiet(), "{:?}", watched.times);
            }
            watched.follow(&app);
        }
    }

    /// No keys that are typed before a request appears, or faster than the quiet time after it, answer anything.
    #[test]
    fn keys_around_the_appearance_answer_nothing(
        before in prop::collection::vec(any_key(), 0..12),
        index in 0..4_usize,
        after in prop::collection::vec((any_key(), 0..QUIET_MS, any::<bool>()), 0..40),
    ) {
        let mut app = TestApp::with_lists((80, 24), demo_rows(), Vec::new());
        app.press(KeyCode::F(2));
        for code in before {
            app.press(code);
        }
        app.add_requests(vec![demo_requests().remove(index)]);
        for (code, wait_ms, is_drawn) in after {
            if is_drawn {
                app.send(AppInput::Drawn);
            }
            app.now = app.now.plus(wait_ms);
            let effects = app.press(code);
            prop_assert_eq!(effects.iter().find_map(answered), None);
        }
    }
}

#[test]
fn request_is_answered_after_the_quiet_time() {
    let mut app = TestApp::with_lists((80, 24), demo_rows(), demo_requests());
    app.press(KeyCode::F(2));
    app.send(AppInput::Drawn);
    app.pass_ms(QUIET_MS - 1);
    assert_eq!(app.type_text("y").iter().find_map(answered), None);
    app.pass_ms(QUIET_MS - 1);
    assert_eq!(app.type_text("y").iter().find_map(answered), None);
    app.pass_ms(QUIET_MS);
    let key = key_of(&demo_requests()[0]);
    assert_eq!(app.type_text("y").iter().find_map(answered), Some(key));
}

#[test]
fn request_that_was_not_drawn_is_never_answered() {
    let mut app = TestApp::with_lists((80, 24), demo_rows(), demo_requests());
    app.press(KeyCode::F(2));
    app.pass_ms(60_000);
    assert_eq!(app.type_text("y1").iter().find_map(answered), None);
}

#[test]
fn second_key_of_a_double_press_does_not_answer_the_next_request() {
    let mut app = TestApp::with_lists((80, 24), demo_rows(), demo_requests());
    app.press(KeyCode::F(2));
    app.send(AppInput::Drawn);
    app.pass_ms(QUIET_MS);
    let effects = app.type_text("y");
    assert!(effects.iter().find_map(answered).is_some());
    let number = app.state.last_request;
    app.hub(HubUpdate::Outcome { number, result: Ok(serde_json::Value::Null) });
    app.send(AppInput::Drawn);
    assert_eq!(app.type_text("y").iter().find_map(answered), None);
}

#[test]
fn new_request_does_not_take_the_focus() {
    let mut app = TestApp::with_lists((80, 24), demo_rows(), Vec::new());
    app.press(KeyCode::Enter);
    app.add_requests(demo_requests());
    assert_eq!(app.state.page, ActivePage::Session);
    assert!(app.draw().contains("f2: answer 4"));
}

#[cfg(planted_bugs)]
#[test]
fn planted_bugs_are_found() {
    use crate::planted_tests::assert_found;
    assert_found("answer-without-quiet-time", keys_around_the_appearance_answer_nothing);
    assert_found("keep-guard-of-other-request", answer_needs_focus_a_frame_and_a_quiet_time);
}
