//! What keys and messages of the hub do in a session.

use crate::{
    demo_settings::demo_queue,
    hub::{
        HubRequest, HubUpdate, PromptDelivery, RequestNumber, SessionRow, SessionState,
        SettingValue,
    },
    keymap::{KeyChord, KeyContext},
    page::{ActivePage, AppEffect, AppInput},
    test_data::{TestApp, open_session, session_row},
    transcript::test_log::TestLog,
};
use serde_json::{Value, json};

fn idle() -> TestApp {
    open_session((80, 24), session_row("s-1"), &TestLog::default())
}

fn working() -> TestApp {
    let row = SessionRow { state: SessionState::Working, ..session_row("s-1") };
    open_session((80, 24), row, &TestLog::default())
}

fn press(app: &mut TestApp, key: &str) -> Vec<AppEffect> {
    app.send(AppInput::Key(KeyChord::parse(key).unwrap().to_event()))
}

fn set_queue(app: &mut TestApp) {
    app.hub(HubUpdate::Queue { session: "s-1".to_owned(), prompts: demo_queue() });
}

fn requests(effects: &[AppEffect]) -> Vec<HubRequest> {
    let request = |it: &AppEffect| match it {
        AppEffect::Hub(_, request) => Some(request.clone()),
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

fn number(effects: &[AppEffect]) -> RequestNumber {
    let number = |it: &AppEffect| match it {
        AppEffect::Hub(number, _) => Some(*number),
        _ => None,
    };
    effects.iter().find_map(number).unwrap()
}

fn prompt(blocks: Value, delivery: PromptDelivery) -> HubRequest {
    let Value::Array(blocks) = blocks else { panic!("not a list") };
    HubRequest::Prompt { session: "s-1".to_owned(), blocks, delivery }
}

fn draft(app: &TestApp) -> String {
    app.state.session.as_ref().unwrap().composer().editor().text()
}

fn focus(app: &TestApp) -> KeyContext {
    app.state.session.as_ref().unwrap().focus()
}

#[test]
fn enter_sends_the_prompt_and_other_keys_break_the_line() {
    let mut app = idle();
    app.type_text("one");
    press(&mut app, "alt-enter");
    app.type_text("two");
    press(&mut app, "ctrl-j");
    app.type_text("three\\");
    assert!(requests(&press(&mut app, "enter")).is_empty());
    app.type_text("four");
    let sent = requests(&press(&mut app, "enter"));
    let text = json!([{ "type": "text", "text": "one\ntwo\nthree\nfour" }]);
    assert_eq!(sent, [prompt(text, PromptDelivery::Queue)]);
    assert_eq!(draft(&app), "");
    assert!(requests(&press(&mut app, "enter")).is_empty());
}

#[test]
fn prompt_that_was_not_sent_returns_to_the_field() {
    let mut app = idle();
    app.type_text("first");
    let number = number(&press(&mut app, "alt-s"));
    app.type_text("second");
    app.hub(HubUpdate::Outcome { number, result: Err("the hub is gone".to_owned()) });
    assert_eq!(draft(&app), "first\nsecond");
    assert!(app.draw().contains("The prompt was not sent: the hub is gone"));
}

#[test]
fn steering_replaces_the_turn() {
    let mut app = working();
    app.type_text("stop");
    let sent = requests(&press(&mut app, "alt-s"));
    let text = json!([{ "type": "text", "text": "stop" }]);
    assert_eq!(sent, [prompt(text, PromptDelivery::Steer)]);
}

#[test]
fn long_paste_is_sent_in_full() {
    let mut app = idle();
    let pasted = "x\n".repeat(50);
    app.send(AppInput::Paste(pasted.clone()));
    assert!(app.draw().contains("[pasted 50 lines]"));
    let sent = requests(&press(&mut app, "enter"));
    let text = json!([{ "type": "text", "text": pasted }]);
    assert_eq!(sent, [prompt(text, PromptDelivery::Queue)]);
}

#[test]
fn chosen_file_is_sent_as_a_link() {
    let mut app = idle();
    let effects = app.type_text("See @a");
    let find = AppEffect::FindFiles {
        session: "s-1".to_owned(),
        directories: ["/user/me/src/parser", "/user/me/src/lexer"].map(str::to_owned).to_vec(),
        query: "a".to_owned(),
    };
    assert!(effects.contains(&find), "{effects:?}");
    let files = |query: &str, path: &str| AppInput::Files {
        session: "s-1".to_owned(),
        query: query.to_owned(),
        paths: vec![path.to_owned()],
    };
    app.send(files("b", "late.rs"));
    assert!(!app.draw().contains("late.rs"));
    app.send(files("a", "src/a.rs"));
    press(&mut app, "tab");
    assert_eq!(draft(&app), "See @src/a.rs ");
    let sent = requests(&press(&mut app, "enter"));
    let blocks = json!([
        { "type": "text", "text": "See " },
        { "type": "resource_link", "uri": "file:///user/me/src/parser/src/a.rs", "name": "src/a.rs" },
        { "type": "text", "text": " " },
    ]);
    assert_eq!(sent, [prompt(blocks, PromptDelivery::Queue)]);
}

#[test]
fn command_is_completed_then_sent() {
    let mut app = idle();
    app.type_text("/comp");
    press(&mut app, "enter");
    assert_eq!(draft(&app), "/compact ");
    assert_eq!(requests(&press(&mut app, "enter")).len(), 1);
    app.type_text("/init");
    assert_eq!(requests(&press(&mut app, "enter")).len(), 1, "a complete command is sent at once");
    app.type_text("/x");
    press(&mut app, "backspace");
    press(&mut app, "esc");
    assert_eq!(focus(&app), KeyContext::Composer, "the first Esc closes the menu");
    press(&mut app, "esc");
    assert_eq!(focus(&app), KeyContext::Session);
}

#[test]
fn cancel_clears_the_text_then_asks_if_prompts_wait() {
    let mut app = working();
    app.type_text("text");
    assert!(requests(&press(&mut app, "ctrl-c")).is_empty());
    assert_eq!(draft(&app), "");
    let cancel = HubRequest::Cancel { session: "s-1".to_owned() };
    assert_eq!(requests(&press(&mut app, "ctrl-c")), std::slice::from_ref(&cancel));
    set_queue(&mut app);
    assert!(requests(&press(&mut app, "ctrl-c")).is_empty());
    assert!(app.draw().contains("Cancel the turn and withdraw 2 prompts"));
    press(&mut app, "down");
    assert!(requests(&press(&mut app, "enter")).is_empty(), "the turn is kept");
    press(&mut app, "ctrl-c");
    assert_eq!(requests(&press(&mut app, "enter")), [cancel]);
}

#[test]
fn cancel_of_an_idle_session_names_the_key_that_quits() {
    let mut app = idle();
    assert!(requests(&press(&mut app, "ctrl-c")).is_empty());
    assert!(app.draw().contains("No turn is running; ctrl-q ends the program"));
}

#[test]
fn queue_is_changed_with_keys() {
    let mut app = working();
    press(&mut app, "alt-q");
    assert_eq!(focus(&app), KeyContext::Composer, "the queue is empty");
    set_queue(&mut app);
    press(&mut app, "alt-q");
    let session = || "s-1".to_owned();
    let moved = HubRequest::MovePrompt { session: session(), prompt: 4, before: None };
    assert_eq!(requests(&press(&mut app, "J")), [moved]);
    let withdrawn = HubRequest::WithdrawPrompt { session: session(), prompt: 4 };
    assert_eq!(requests(&press(&mut app, "d")), [withdrawn]);
    press(&mut app, "G");
    let run = HubRequest::RunHeldPrompt { session: session(), prompt: 7 };
    assert_eq!(requests(&press(&mut app, "r")), [run]);
    let edited = HubRequest::WithdrawPrompt { session: session(), prompt: 7 };
    assert_eq!(requests(&press(&mut app, "e")), [edited]);
    assert_eq!((draft(&app).as_str(), focus(&app)), ("Open a pull request", KeyContext::Composer));
}

#[test]
fn focus_leaves_a_queue_that_became_empty() {
    let mut app = working();
    set_queue(&mut app);
    press(&mut app, "alt-q");
    app.hub(HubUpdate::Queue { session: "s-1".to_owned(), prompts: Vec::new() });
    assert_eq!(focus(&app), KeyContext::Composer);
}

#[test]
fn settings_are_chosen_from_lists() {
    let change = |value| HubRequest::ChangeSetting { session: "s-1".to_owned(), value };
    let mut app = idle();
    press(&mut app, "alt-o");
    app.type_text("haiku");
    let model = SettingValue::Model("haiku-5".to_owned());
    assert_eq!(requests(&press(&mut app, "enter")), [change(model)]);
    press(&mut app, "alt-t");
    press(&mut app, "up");
    let low = SettingValue::Reasoning("low".to_owned());
    assert_eq!(requests(&press(&mut app, "enter")), [change(low)]);
    let auto = SettingValue::Mode("auto".to_owned());
    assert_eq!(requests(&press(&mut app, "shift-tab")), [change(auto)]);
}

#[test]
fn missing_setting_is_reported() {
    let mut app = idle();
    let settings = Box::default();
    app.hub(HubUpdate::Settings { session: "s-1".to_owned(), settings });
    press(&mut app, "alt-o");
    assert!(app.draw().contains("The agent offers no choice of model"));
}

#[test]
fn session_is_renamed_and_forked() {
    let mut app = idle();
    press(&mut app, "alt-r");
    app.type_text("lexer");
    let rename = HubRequest::RenameSession { session: "s-1".to_owned(), name: "lexer".to_owned() };
    assert_eq!(requests(&press(&mut app, "enter")), [rename]);
    press(&mut app, "esc");
    let forked = press(&mut app, "f");
    let fork = HubRequest::ForkSession { session: "s-1".to_owned(), at: None };
    assert_eq!(requests(&forked), [fork]);
    let result = Ok(json!({ "sessionId": "s-2" }));
    app.hub(HubUpdate::Outcome { number: number(&forked), result });
    assert_eq!(app.state.session.as_ref().unwrap().session_id(), "s-2");
}

#[test]
fn text_is_edited_in_another_program() {
    let mut app = idle();
    app.type_text("draft");
    let opened = press(&mut app, "ctrl-g");
    assert_eq!(opened, [AppEffect::EditExternally("draft".to_owned())]);
    app.send(AppInput::EditedText(None));
    assert_eq!(draft(&app), "draft");
    app.send(AppInput::EditedText(Some("edited\ntext\n".to_owned())));
    assert_eq!(draft(&app), "edited\ntext");
    press(&mut app, "ctrl-x");
    let opened = press(&mut app, "ctrl-e");
    assert_eq!(opened, [AppEffect::EditExternally("edited\ntext".to_owned())]);
}

#[test]
fn prompts_of_the_log_are_the_history() {
    let mut log = TestLog::default();
    log.opened().prompt("first").prompt("second");
    let mut app = open_session((80, 24), session_row("s-1"), &log);
    app.type_text("draft");
    press(&mut app, "up");
    assert_eq!(draft(&app), "second");
    press(&mut app, "up");
    assert_eq!(draft(&app), "first");
    press(&mut app, "down");
    press(&mut app, "down");
    assert_eq!(draft(&app), "draft");
}

#[test]
fn events_that_change_the_queue_or_the_settings_cause_reads() {
    let mut app = idle();
    let mut log = TestLog::default();
    log.prompt("go").update("current_mode_update", json!({ "currentModeId": "plan" }));
    let effects = app.hub(HubUpdate::LogEvents { session: "s-1".to_owned(), events: log.events });
    let sent = requests(&effects);
    assert!(sent.contains(&HubRequest::ReadQueue { session: "s-1".to_owned() }), "{sent:?}");
    assert!(sent.contains(&HubRequest::ReadSettings { session: "s-1".to_owned() }), "{sent:?}");
}

#[test]
fn other_sessions_have_no_effect() {
    let mut app = idle();
    let mut log = TestLog::default();
    log.prompt("go");
    let effects = app.hub(HubUpdate::LogEvents { session: "s-9".to_owned(), events: log.events });
    assert!(requests(&effects).is_empty());
    app.hub(HubUpdate::Queue { session: "s-9".to_owned(), prompts: demo_queue() });
    assert!(!app.draw().contains("prompts wait"));
}

#[test]
fn escape_leads_back_to_the_board() {
    let mut app = idle();
    press(&mut app, "esc");
    assert_eq!((focus(&app), app.state.page), (KeyContext::Session, ActivePage::Session));
    press(&mut app, "esc");
    assert_eq!(app.state.page, ActivePage::Board);
}

#[test]
fn draft_keeps_a_request_from_taking_the_focus() {
    let mut app = idle();
    assert!(!app.state.session.as_ref().unwrap().has_draft());
    app.type_text("x");
    assert!(app.state.session.as_ref().unwrap().has_draft());
}

#[test]
fn draft_is_there_again_when_the_session_is_opened_again() {
    let mut app = idle();
    app.hub(HubUpdate::Lists {
        sessions: vec![session_row("s-1"), session_row("s-2")],
        requests: Vec::new(),
    });
    app.type_text("not finished");
    let open = |app: &mut TestApp, id: &str| {
        let forked = press(app, "f");
        let result = Ok(json!({ "sessionId": id }));
        app.hub(HubUpdate::Outcome { number: number(&forked), result });
        press(app, "esc");
    };
    press(&mut app, "esc");
    open(&mut app, "s-2");
    assert_eq!(draft(&app), "");
    open(&mut app, "s-1");
    assert_eq!(draft(&app), "not finished");
}

#[test]
fn queue_and_settings_are_read_again_after_a_lost_connection() {
    let mut app = idle();
    let lists = HubUpdate::Lists { sessions: vec![session_row("s-1")], requests: Vec::new() };
    let sent = requests(&app.hub(lists));
    assert!(sent.contains(&HubRequest::ReadQueue { session: "s-1".to_owned() }), "{sent:?}");
    assert!(sent.contains(&HubRequest::ReadSettings { session: "s-1".to_owned() }), "{sent:?}");
}
