//! Cases that the recordings do not cover: commands, dialogs, and differences between versions.

use super::*;
use crate::FailureCause;
use crate::outcome::AdapterTurnOutcome;
use crate::turn_effect::TurnEffect;

fn prompted_dialect() -> (PiDialect, AdapterTurn) {
    let (mut pi, mut turn) = (PiDialect::default(), AdapterTurn::default());
    turn.begin();
    let start = StartContext {
        cwd: "/w",
        agent_session_id: None,
        model: None,
        reasoning: None,
        mode: None,
        is_sandboxed: false,
        mcp_servers: &[],
    };
    pi.on_start(&start, &mut turn);
    pi.on_prompt(&PromptInput { blocks: vec![PromptBlock::Text("Hi".to_owned())] }, &mut turn);
    (pi, turn)
}

fn take_written_lines(turn: &mut AdapterTurn) -> Vec<Value> {
    let effects = std::mem::take(&mut turn.effects).into_iter();
    let lines = effects.filter_map(|it| match it {
        TurnEffect::WriteLine(line) => Some(serde_json::from_str(&line).unwrap()),
        _ => None,
    });
    lines.collect()
}

#[test]
fn prompt_is_sent_as_a_command_with_its_images() {
    let (mut pi, mut turn) = prompted_dialect();
    let lines = take_written_lines(&mut turn);
    assert_eq!(lines[0]["type"], "get_state");
    assert_eq!(lines[1], json!({"id": "prompt-1", "type": "prompt", "message": "Hi"}));
    let image = PromptBlock::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() };
    pi.on_prompt(&PromptInput { blocks: vec![image] }, &mut turn);
    assert_eq!(take_written_lines(&mut turn)[0]["images"][0]["mimeType"], "image/png");
}

#[test]
fn session_id_is_published_after_the_first_answer() {
    let (mut pi, mut turn) = prompted_dialect();
    let state = r#"{"type":"response","id":"state","command":"get_state","success":true,"data":{"sessionId":"s","sessionFile":"/f"}}"#;
    pi.on_line(state, &mut turn);
    let published = TurnEffect::SetAgentSessionId("s".to_owned());
    assert!(!turn.effects.contains(&published));
    pi.on_line(r#"{"type":"message_end","message":{"role":"assistant","content":[]}}"#, &mut turn);
    assert!(turn.effects.contains(&published));
}

#[test]
fn confirmation_becomes_a_permission_request() {
    for (answer, reply) in [
        (PermissionAnswer::Selected("yes"), json!({"confirmed": true})),
        (PermissionAnswer::Selected("no"), json!({"confirmed": false})),
        (PermissionAnswer::Cancelled, json!({"cancelled": true})),
    ] {
        let (mut pi, mut turn) = prompted_dialect();
        let request = r#"{"type":"extension_ui_request","id":"u","method":"confirm","title":"Sure?","message":"rm"}"#;
        pi.on_line(request, &mut turn);
        assert!(
            turn.effects
                .iter()
                .any(|it| matches!(it, TurnEffect::RequestPermission { key, .. } if key == "u"))
        );
        take_written_lines(&mut turn);
        pi.on_answer("u", answer, &mut turn);
        let line = take_written_lines(&mut turn).remove(0);
        let mut expected = json!({"type": "extension_ui_response", "id": "u"});
        expected.as_object_mut().unwrap().extend(reply.as_object().unwrap().clone());
        assert_eq!(line, expected);
    }
}

#[test]
fn selection_is_sent_as_text_and_input_dialogs_are_dismissed() {
    let (mut pi, mut turn) = prompted_dialect();
    let select = r#"{"type":"extension_ui_request","id":"u","method":"select","params":{"title":"Which?","options":["Allow","Block it"]}}"#;
    pi.on_line(select, &mut turn);
    let kinds = turn.effects.iter().find_map(|it| match it {
        TurnEffect::RequestPermission { options, .. } => {
            Some(options.iter().map(|it| it.kind).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(kinds, Some(vec!["allow_once", "reject_once"]));
    pi.on_answer("u", PermissionAnswer::Selected("1"), &mut turn);
    pi.on_line(r#"{"type":"extension_ui_request","id":"v","method":"input"}"#, &mut turn);
    pi.on_line(r#"{"type":"extension_ui_request","id":"w","method":"setStatus"}"#, &mut turn);
    let lines = take_written_lines(&mut turn);
    assert_eq!((&lines[2]["value"], &lines[3]["cancelled"]), (&json!("Block it"), &json!(true)));
    assert_eq!(lines.len(), 4);
}

#[test]
fn cancel_aborts_the_agent_and_dismisses_dialogs() {
    let (mut pi, mut turn) = prompted_dialect();
    pi.on_line(r#"{"type":"extension_ui_request","id":"u","method":"confirm"}"#, &mut turn);
    turn.mark_cancelled();
    assert!(pi.on_cancel(&mut turn));
    assert!(turn.effects.contains(&TurnEffect::WithdrawRequest { key: "u".to_owned() }));
    let lines = take_written_lines(&mut turn);
    assert_eq!((&lines[2]["cancelled"], &lines[3]["type"]), (&json!(true), &json!("abort")));
    pi.on_line(r#"{"type":"response","id":"abort","command":"abort","success":true}"#, &mut turn);
    assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::Cancelled)));
}

#[test]
fn aborted_agent_ends_the_turn_itself() {
    let (mut pi, mut turn) = prompted_dialect();
    pi.on_line(r#"{"type":"agent_start"}"#, &mut turn);
    turn.mark_cancelled();
    pi.on_cancel(&mut turn);
    pi.on_line(r#"{"type":"response","id":"abort","command":"abort","success":true}"#, &mut turn);
    assert_eq!(turn.outcome, None);
    pi.on_line(r#"{"type":"turn_end","message":{"stopReason":"aborted"}}"#, &mut turn);
    pi.on_line(r#"{"type":"agent_end","messages":[],"willRetry":false}"#, &mut turn);
    pi.on_line(r#"{"type":"agent_settled"}"#, &mut turn);
    assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::Cancelled)));
}

#[test]
fn older_versions_report_one_end_and_a_rejected_prompt_fails() {
    let (mut pi, mut turn) = prompted_dialect();
    pi.on_line(r#"{"type":"turn_end","message":{"stopReason":"length"}}"#, &mut turn);
    pi.on_line(r#"{"type":"agent_end","messages":[]}"#, &mut turn);
    assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::MaxTokens)));
    let (mut pi, mut turn) = prompted_dialect();
    let rejected = r#"{"type":"response","id":"prompt-1","command":"prompt","success":false,"error":"No API key found"}"#;
    pi.on_line(rejected, &mut turn);
    let Some(AdapterTurnOutcome::Failed(failure)) = turn.outcome else { panic!() };
    assert_eq!(
        (failure.cause, failure.message.as_str()),
        (FailureCause::Auth, "prompt rejected: No API key found")
    );
}

#[test]
fn settings_that_pi_supports_are_applied_without_a_restart() {
    let (mut pi, mut turn) = prompted_dialect();
    take_written_lines(&mut turn);
    assert!(pi.on_setting(ProgramSetting::Model("anthropic/claude/x"), &mut turn));
    assert!(pi.on_setting(ProgramSetting::Reasoning("high"), &mut turn));
    assert!(!pi.on_setting(ProgramSetting::Model("default"), &mut turn));
    assert!(!pi.on_setting(ProgramSetting::Reasoning("default"), &mut turn));
    let lines = take_written_lines(&mut turn);
    assert_eq!(
        (&lines[0]["provider"], &lines[0]["modelId"]),
        (&json!("anthropic"), &json!("claude/x"))
    );
    assert_eq!(lines[1]["level"], "high");
}
