//! What a model cannot do here: print its calls at people, go round in circles, drown itself in output,
//! and change what the mode does not let it change.

use super::{
    Desk, must_be_sound,
    script::{asks, choose, offered, results},
};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::json;
use std::fs;

fn choose_mode<M>(desk: &mut Desk<M>, session: &str, mode: &str) {
    let choice = json!({ "sessionId": session, "modeId": mode });
    desk.client.result("session/set_mode", &choice);
}

#[test]
fn a_call_that_is_printed_as_text_is_made_and_not_shown() {
    let printed =
        "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>";
    let model = ScriptedModel::start([Reply::say(printed), Reply::say("It says hello.")]);
    let mut desk = Desk::new(model, &[]);
    fs::write(desk.home.path().join("a.txt"), "hello\n").unwrap();
    let session = desk.open();
    let said = desk.turn(&session, "What does a.txt say?");
    assert_eq!(said, ("It says hello.".to_owned(), "end_turn".to_owned()));
    assert_eq!(results(&desk.model), ["hello\n"]);
    let updates = desk.updates(&session);
    let last = updates.iter().rfind(|it| it["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "completed");
}

#[test]
fn a_model_that_goes_round_in_circles_is_told_so_and_then_stopped() {
    let again = || Reply::call("read", r#"{"path":"a.txt"}"#);
    let mut desk = Desk::new(ScriptedModel::start((0..9).map(|_| again())), &[]);
    fs::write(desk.home.path().join("a.txt"), "hello\n").unwrap();
    let session = desk.open();
    let message = desk.failed_turn(&session, "Read it.").1;
    assert!(message.starts_with("The model made the same call again and again"), "{message}");
    let asked = desk.model.asked();
    assert_eq!(asked.len(), 5);
    let hint = "You made the same call again and it had the same result";
    assert!(asked[3].body["messages"].to_string().contains(hint), "it was told before");
    assert!(!asked[2].body["messages"].to_string().contains(hint), "and not at once");
    must_be_sound(&asked[4].body["messages"]);
}

#[test]
fn a_long_output_is_cut_and_the_model_knows_it() {
    let command = r#"{"command":"seq 1 100000"}"#;
    let model = ScriptedModel::start([Reply::call("shell", command), Reply::say("Many.")]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    let turn = desk.client.send_prompt(&session, "Count.");
    choose(&mut desk, "once");
    assert_eq!(desk.client.answer(turn)["result"]["stopReason"], "end_turn");
    let told = &results(&desk.model)[0];
    assert!(told.len() <= 30_000, "{} bytes", told.len());
    assert!(told.starts_with("1\n2\n") && told.ends_with("100000\n[exit status 0]"));
    assert!(told.contains("characters are left out here: print less"), "the gap is told");
}

#[test]
fn in_a_read_only_session_nothing_is_changed_and_nobody_is_asked() {
    let write = r#"{"path":"new.txt","content":"x"}"#;
    let model = ScriptedModel::start([
        Reply::calls(&[("write", write), ("shell", r#"{"command":"touch new.txt"}"#)]),
        Reply::say("I would write it."),
    ]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    choose_mode(&mut desk, &session, "read-only");
    assert_eq!(desk.turn(&session, "Write it.").1, "end_turn");
    assert_eq!(offered(&desk.model), ["read", "list", "glob", "grep", "todo"]);
    let told = results(&desk.model);
    assert!(told.iter().all(|it| it.starts_with("This session is read-only")), "{told:?}");
    assert_eq!(asks(&desk), 0);
    assert!(!desk.home.path().join("new.txt").exists());
    let updates = desk.updates(&session);
    assert!(updates.iter().all(|it| it["status"] != "in_progress"), "nothing was begun");
}

#[test]
fn in_the_edit_mode_commands_are_asked_for_and_edits_are_not() {
    let write = r#"{"path":"new.txt","content":"x\n"}"#;
    let model = ScriptedModel::start([
        Reply::calls(&[("write", write), ("shell", r#"{"command":"touch other.txt"}"#)]),
        Reply::say("Written."),
    ]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    choose_mode(&mut desk, &session, "edit");
    let turn = desk.client.send_prompt(&session, "Write it.");
    let ask = choose(&mut desk, "reject");
    assert_eq!(ask["toolCall"]["kind"], "execute");
    assert_eq!(fs::read_to_string(desk.home.path().join("new.txt")).unwrap(), "x\n");
    assert_eq!(desk.client.answer(turn)["result"]["stopReason"], "end_turn");
    assert_eq!(asks(&desk), 1);
    assert!(!desk.home.path().join("other.txt").exists());
}
