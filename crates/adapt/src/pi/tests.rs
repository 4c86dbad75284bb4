//! What the recordings do not show: commands, dialogs, and versions that speak a little differently.

use super::*;
use crate::Cause;
use crate::outcome::Outcome;
use crate::turn::Effect;

fn running() -> (Pi, Turn) {
    let (mut pi, mut turn) = (Pi::default(), Turn::default());
    turn.begin();
    let start =
        Start { cwd: "/w", native: None, model: None, reasoning: None, mode: None, mcp: &[] };
    pi.open(&start, &mut turn);
    pi.prompt(&Prompt { blocks: vec![Block::Text("Hi".to_owned())] }, &mut turn);
    (pi, turn)
}

fn written(turn: &mut Turn) -> Vec<Value> {
    let effects = std::mem::take(&mut turn.effects).into_iter();
    let lines = effects.filter_map(|it| match it {
        Effect::Write(line) => Some(serde_json::from_str(&line).unwrap()),
        _ => None,
    });
    lines.collect()
}

#[test]
fn a_prompt_is_a_command_and_its_images_come_along() {
    let (mut pi, mut turn) = running();
    let lines = written(&mut turn);
    assert_eq!(lines[0]["type"], "get_state");
    assert_eq!(lines[1], json!({"id": "prompt-1", "type": "prompt", "message": "Hi"}));
    let image = Block::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() };
    pi.prompt(&Prompt { blocks: vec![image] }, &mut turn);
    assert_eq!(written(&mut turn)[0]["images"][0]["mimeType"], "image/png");
}

#[test]
fn a_session_is_one_only_after_the_first_answer() {
    let (mut pi, mut turn) = running();
    let state = r#"{"type":"response","id":"state","command":"get_state","success":true,"data":{"sessionId":"s","sessionFile":"/f"}}"#;
    pi.line(state, &mut turn);
    let native = Effect::Native("s".to_owned());
    assert!(!turn.effects.contains(&native));
    pi.line(r#"{"type":"message_end","message":{"role":"assistant","content":[]}}"#, &mut turn);
    assert!(turn.effects.contains(&native));
}

#[test]
fn a_confirmation_is_asked_and_answered() {
    for (answer, reply) in [
        (Answer::Chosen("yes"), json!({"confirmed": true})),
        (Answer::Chosen("no"), json!({"confirmed": false})),
        (Answer::Cancelled, json!({"cancelled": true})),
    ] {
        let (mut pi, mut turn) = running();
        let ask = r#"{"type":"extension_ui_request","id":"u","method":"confirm","title":"Sure?","message":"rm"}"#;
        pi.line(ask, &mut turn);
        assert!(turn.effects.iter().any(|it| matches!(it, Effect::Ask { key, .. } if key == "u")));
        written(&mut turn);
        pi.answer("u", answer, &mut turn);
        let line = written(&mut turn).remove(0);
        let mut wanted = json!({"type": "extension_ui_response", "id": "u"});
        wanted.as_object_mut().unwrap().extend(reply.as_object().unwrap().clone());
        assert_eq!(line, wanted);
    }
}

#[test]
fn a_choice_is_sent_as_its_words_and_what_needs_a_keyboard_is_dismissed() {
    let (mut pi, mut turn) = running();
    let select = r#"{"type":"extension_ui_request","id":"u","method":"select","params":{"title":"Which?","options":["Allow","Block it"]}}"#;
    pi.line(select, &mut turn);
    let kinds = turn.effects.iter().find_map(|it| match it {
        Effect::Ask { options, .. } => Some(options.iter().map(|it| it.kind).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(kinds, Some(vec!["allow_once", "reject_once"]));
    pi.answer("u", Answer::Chosen("1"), &mut turn);
    pi.line(r#"{"type":"extension_ui_request","id":"v","method":"input"}"#, &mut turn);
    pi.line(r#"{"type":"extension_ui_request","id":"w","method":"setStatus"}"#, &mut turn);
    let lines = written(&mut turn);
    assert_eq!((&lines[2]["value"], &lines[3]["cancelled"]), (&json!("Block it"), &json!(true)));
    assert_eq!(lines.len(), 4);
}

#[test]
fn cancelling_aborts_and_dismisses_what_was_asked() {
    let (mut pi, mut turn) = running();
    pi.line(r#"{"type":"extension_ui_request","id":"u","method":"confirm"}"#, &mut turn);
    turn.on_cancel();
    assert!(pi.cancel(&mut turn));
    assert!(turn.effects.contains(&Effect::Unask { key: "u".to_owned() }));
    let lines = written(&mut turn);
    assert_eq!((&lines[2]["cancelled"], &lines[3]["type"]), (&json!(true), &json!("abort")));
    pi.line(r#"{"type":"response","id":"abort","command":"abort","success":true}"#, &mut turn);
    assert_eq!(turn.outcome, Some(Outcome::Done(Stop::Cancelled)));
}

#[test]
fn an_aborted_agent_ends_its_turn_itself() {
    let (mut pi, mut turn) = running();
    pi.line(r#"{"type":"agent_start"}"#, &mut turn);
    turn.on_cancel();
    pi.cancel(&mut turn);
    pi.line(r#"{"type":"response","id":"abort","command":"abort","success":true}"#, &mut turn);
    assert_eq!(turn.outcome, None);
    pi.line(r#"{"type":"turn_end","message":{"stopReason":"aborted"}}"#, &mut turn);
    pi.line(r#"{"type":"agent_end","messages":[],"willRetry":false}"#, &mut turn);
    pi.line(r#"{"type":"agent_settled"}"#, &mut turn);
    assert_eq!(turn.outcome, Some(Outcome::Done(Stop::Cancelled)));
}

#[test]
fn older_versions_have_one_end_and_a_rejected_prompt_has_none() {
    let (mut pi, mut turn) = running();
    pi.line(r#"{"type":"turn_end","message":{"stopReason":"length"}}"#, &mut turn);
    pi.line(r#"{"type":"agent_end","messages":[]}"#, &mut turn);
    assert_eq!(turn.outcome, Some(Outcome::Done(Stop::MaxTokens)));
    let (mut pi, mut turn) = running();
    let rejected = r#"{"type":"response","id":"prompt-1","command":"prompt","success":false,"error":"No API key found"}"#;
    pi.line(rejected, &mut turn);
    let Some(Outcome::Failed(failure)) = turn.outcome else { panic!() };
    assert_eq!(
        (failure.cause, failure.message.as_str()),
        (Cause::Auth, "prompt rejected: No API key found")
    );
}

#[test]
fn settings_change_without_a_new_program_where_pi_can() {
    let (mut pi, mut turn) = running();
    written(&mut turn);
    assert!(pi.set(Setting::Model("anthropic/claude/x"), &mut turn));
    assert!(pi.set(Setting::Reasoning("high"), &mut turn));
    assert!(!pi.set(Setting::Model("default"), &mut turn));
    assert!(!pi.set(Setting::Reasoning("default"), &mut turn));
    let lines = written(&mut turn);
    assert_eq!(
        (&lines[0]["provider"], &lines[0]["modelId"]),
        (&json!("anthropic"), &json!("claude/x"))
    );
    assert_eq!(lines[1]["level"], "high");
}
