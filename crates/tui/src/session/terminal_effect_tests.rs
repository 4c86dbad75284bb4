//! What a session asks the terminal to do: lines above an inline frame, and syntaxes of code.

use crate::{
    hub::{HubUpdate, LogPage, LogRange},
    page::{AppEffect, AppInput},
    test_data::{TestApp, open_session, session_row},
    text::{CodeSample, SyntaxLoading},
    transcript::test_log::TestLog,
};
use crossterm::event::KeyCode;
use serde_json::json;

fn printed_lines(effects: &[AppEffect]) -> Vec<String> {
    let lines = effects.iter().filter_map(|it| match it {
        AppEffect::PrintAbove(lines) => Some(lines.iter().map(ToString::to_string)),
        _ => None,
    });
    lines.flatten().collect()
}

#[test]
fn finished_answer_is_printed_above_an_inline_frame_while_the_session_is_shown() {
    for is_inline in [true, false] {
        let mut app = open_session((80, 20), session_row("s-1"), &TestLog::default());
        app.state.options.is_inline = is_inline;
        app.pass_ms(1);
        let mut log = TestLog::default();
        log.prompt("question").message("answer").end(&json!({ "stopReason": "end_turn" }));
        app.press(KeyCode::F(1));
        let (session, events) = ("s-1".to_owned(), log.events.clone());
        let effects = app.hub(HubUpdate::LogEvents { session, events });
        assert_eq!(printed_lines(&effects), [""; 0], "the help is shown");
        app.press(KeyCode::Esc);
        let printed = printed_lines(&app.pass_ms(1)).join("\n");
        assert_eq!(printed.contains("question") && printed.contains("answer"), is_inline);
        assert_eq!(printed_lines(&app.pass_ms(1)), [""; 0]);
    }
}

fn needed_syntaxes(effects: Vec<AppEffect>) -> Vec<CodeSample> {
    let needed = effects.into_iter().filter_map(|it| match it {
        AppEffect::LoadSyntax(sample) => Some(sample),
        _ => None,
    });
    needed.collect()
}

/// The number of styles in the line of code.
fn count_styles(app: &TestApp) -> usize {
    let pane = app.state.session.as_ref().unwrap().pane();
    let row = pane.visible_rows().find(|it| it.line.to_string().contains("fn main")).unwrap();
    row.line.spans.iter().filter(|it| !it.content.trim().is_empty()).count()
}

#[test]
fn code_is_drawn_at_once_and_gets_its_colors_when_its_syntax_is_loaded() {
    let mut app = TestApp::with_lists((80, 24), vec![session_row("s-1")], Vec::new());
    app.state.theme.syntax_loading = Some(SyntaxLoading::default());
    app.press(KeyCode::Enter);
    let mut log = TestLog::default();
    log.prompt("x").message("```rust\nfn main() {}\n```\n").end(&json!({}));
    let needed = needed_syntaxes(app.hub(HubUpdate::LogPage(LogPage {
        session: "s-1".to_owned(),
        range: LogRange::End,
        events: log.events.clone(),
        bounds: Some((1, 3)),
        end: 3,
    })));
    assert_eq!((needed.len(), count_styles(&app)), (1, 1));
    assert!(needed_syntaxes(app.pass_ms(1)).is_empty());
    needed[0].load_syntax();
    app.send(AppInput::SyntaxLoaded(needed[0].language.clone()));
    assert!(count_styles(&app) > 1);
}
