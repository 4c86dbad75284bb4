//! Permission requests: options, answers, withdrawn requests, plan mode and questions.

use super::{RunningDialect, permission_request, tool_result, tool_use};
use crate::{PermissionAnswer, claude::new_claude, turn_effect::TurnEffect};
use serde_json::{Value, json};

#[test]
fn allow_always_returns_the_suggested_rules() {
    let rule = json!({"type": "addRules", "behavior": "allow",
        "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}]});
    let suggestions = json!([rule, {"type": "setMode", "mode": "acceptEdits"}]);
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[permission_request("Bash", json!({"command": "npm test"}), suggestions)]);
    assert_eq!(dialect.options()[1].1, "Always allow Bash(npm test:*)");
    let response = dialect.answer(PermissionAnswer::Selected("allow-always"));
    assert_eq!(response["updatedPermissions"], json!([rule]), "not the mode change");
    assert_eq!(response["updatedInput"]["command"], "npm test");
    dialect.receive(&[permission_request("Bash", json!({"command": "ls"}), Value::Null)]);
    assert_eq!(dialect.options().len(), 2, "without a suggestion");
}

#[test]
fn call_created_by_a_permission_request_is_closed_by_its_result() {
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[
        permission_request("Bash", json!({"command": "ls"}), json!([])),
        tool_result("t", "a.rs", false),
    ]);
    let updates: Vec<&Value> = dialect.updates().iter().map(|it| &it["status"]).collect();
    assert_eq!(updates, ["pending", "completed"]);
}

#[test]
fn permission_request_without_a_call_id_matches_an_equal_call() {
    let input = json!({"command": "ls"});
    let mut request = permission_request("Bash", input.clone(), json!([]));
    request["request"]["tool_use_id"] = Value::Null;
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[tool_use("c", "Bash", input), request]);
    let about = dialect.turn.effects.iter().find_map(|effect| match effect {
        TurnEffect::RequestPermission { tool_call, .. } => Some(&tool_call["toolCallId"]),
        _ => None,
    });
    assert_eq!(about, Some(&json!("c")));
}

#[test]
fn cancelled_request_interrupts_and_a_second_answer_is_ignored() {
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[permission_request("Bash", json!({}), json!([]))]);
    let response = dialect.answer(PermissionAnswer::Cancelled);
    assert_eq!((&response["behavior"], &response["interrupt"]), (&json!("deny"), &json!(true)));
    assert_eq!(dialect.answer(PermissionAnswer::Selected("allow")), Value::Null);
}

#[test]
fn request_cancelled_by_the_program_is_withdrawn() {
    let mut dialect = RunningDialect::new(new_claude);
    let gone = json!({"type": "control_cancel_request", "request_id": "r"});
    dialect.receive(&[permission_request("Bash", json!({}), json!([])), gone.clone(), gone]);
    let withdrawn =
        dialect.turn.effects.iter().filter(|it| matches!(it, TurnEffect::WithdrawRequest { .. }));
    assert_eq!(withdrawn.count(), 1);
    assert_eq!(dialect.answer(PermissionAnswer::Selected("allow")), Value::Null);
}

#[test]
fn pending_request_is_denied_when_the_turn_ends() {
    let mut dialect = RunningDialect::new(new_claude);
    let over = json!({"type": "result", "subtype": "success"});
    dialect.receive(&[permission_request("Bash", json!({}), json!([])), over]);
    assert_eq!(dialect.written_lines()[0]["response"]["response"]["behavior"], "deny");
}

#[test]
fn leaving_plan_mode_offers_the_next_modes() {
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[permission_request("ExitPlanMode", json!({"plan": "1. Read"}), json!([]))]);
    let response = dialect.answer(PermissionAnswer::Selected("acceptEdits"));
    assert_eq!(response["updatedPermissions"][0]["mode"], "acceptEdits");
    assert_eq!(dialect.updates()[0]["currentModeId"], "acceptEdits");
    let status = json!({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"});
    dialect.receive(&[status]);
    assert_eq!(dialect.updates().len(), 1, "the client has the new mode already");
}

#[test]
fn questions_are_sent_one_after_the_other() {
    let question =
        |text: &str| json!({"question": text, "options": [{"label": "red"}, {"label": "blue"}]});
    let input = json!({"questions": [question("Wall?"), question("Door?")]});
    let mut dialect = RunningDialect::new(new_claude);
    dialect.receive(&[permission_request("AskUserQuestion", input, json!([]))]);
    assert_eq!(
        dialect.answer(PermissionAnswer::Selected("answer-1")),
        Value::Null,
        "one question is still open"
    );
    assert_eq!(dialect.options()[0], ("answer-0".to_owned(), "red".to_owned()));
    let response = dialect.answer(PermissionAnswer::Selected("answer-0"));
    assert_eq!(response["updatedInput"]["answers"], json!({"Wall?": "blue", "Door?": "red"}));
}
