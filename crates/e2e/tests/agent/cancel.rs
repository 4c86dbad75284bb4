//! A turn that is cancelled, at any moment: it ends at once, and the next one knows nothing of it.

use super::{Desk, must_be_sound};
use jackfield_e2e::wait_for;
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How soon a turn ends that was cancelled: long for a busy machine; the model would never end it.
const SOON: Duration = Duration::from_secs(4);

fn half_an_answer() -> Reply {
    Reply::stream().delta(&json!({ "content": "Half an answer" })).hang()
}

fn stop_of(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

impl<M> Desk<M> {
    /// Cancels a prompt that runs; it must end so, and soon.
    fn cancelled(&mut self, session: &str, prompt: u64) {
        let begin = Instant::now();
        self.cancel(session);
        let answer = self.client.answer(prompt);
        assert_eq!(stop_of(&answer), "cancelled");
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    }

    fn until_said(&mut self, text: &str) {
        let is_it = |it: &Value| it.pointer("/params/update/content/text") == Some(&json!(text));
        self.client.until(text, is_it);
    }
}

#[test]
fn a_cancelled_turn_ends_at_once_and_the_next_one_knows_nothing_of_it() {
    let model = ScriptedModel::start([half_an_answer(), half_an_answer(), Reply::say("Whole.")]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    for round in 1..=2 {
        let prompt = desk.client.send_prompt(&session, &format!("Prompt {round}"));
        desk.until_said("Half an answer");
        desk.cancelled(&session, prompt);
        assert!(desk.model.wait_gone(round, SOON), "the model goes on answering nobody");
    }
    assert_eq!(desk.turn(&session, "Prompt 3"), ("Whole.".to_owned(), "end_turn".to_owned()));
    let messages = desk.model.asked()[2].body["messages"].clone();
    must_be_sound(&messages);
    assert_eq!(messages[1]["content"], "Prompt 1\nPrompt 2\nPrompt 3");
    assert!(!messages.to_string().contains("Half"), "{messages}");
    // Nor does whoever loads it hear of it.
    let place = desk.place(&session);
    let before = desk.updates(&session).len();
    desk.client.result("session/load", &place);
    let replayed = json!(desk.updates(&session)[before..]).to_string();
    assert!(replayed.contains("Prompt 1") && !replayed.contains("Half"), "{replayed}");
}

#[test]
fn a_model_that_has_not_begun_to_answer_is_left_too() {
    let mut desk = Desk::new(ScriptedModel::start([Reply::stream().hang()]), &[]);
    let session = desk.open();
    let prompt = desk.client.send_prompt(&session, "Hello");
    assert!(desk.model.wait_asked(1, SOON));
    desk.cancelled(&session, prompt);
    assert!(desk.model.wait_gone(1, SOON));
}

#[test]
fn a_turn_that_waits_to_ask_again_is_cancelled_like_any_other() {
    let busy = Reply::status(429).header("retry-after", "25");
    let mut desk = Desk::new(ScriptedModel::start([busy, Reply::say("Hello.")]), &[]);
    let session = desk.open();
    let prompt = desk.client.send_prompt(&session, "Hello");
    assert!(desk.model.wait_asked(1, SOON));
    desk.cancelled(&session, prompt);
    assert_eq!(desk.turn(&session, "Hello").0, "Hello.");
}

#[test]
fn a_slow_answer_stops_where_it_is_and_another_session_goes_on() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let (one, two) = (desk.open(), desk.open());
    let prompt = desk.client.send_prompt(&one, "SLOW");
    let other = desk.client.send_prompt(&two, "SLOW");
    desk.until_said("tick-2 ");
    desk.cancelled(&one, prompt);
    let ticks = |desk: &Desk<FakeModel>, session: &str| {
        let updates = desk.updates(session);
        updates.iter().filter(|it| it["sessionUpdate"] == "agent_message_chunk").count()
    };
    let (stopped, running) = (ticks(&desk, &one), ticks(&desk, &two));
    assert_eq!(desk.turn(&one, "COUNT").0.matches("I see 1 user messages.").count(), 1);
    desk.until_said("tick-6 ");
    assert!(running < ticks(&desk, &two));
    assert_eq!(ticks(&desk, &one), stopped + 5, "nothing of the cancelled answer came later");
    desk.cancelled(&two, other);
}

#[test]
fn a_cancel_with_nothing_to_cancel_does_nothing() {
    let mut desk = Desk::new(ScriptedModel::start([Reply::say("One."), Reply::say("Two.")]), &[]);
    let session = desk.open();
    desk.cancel(&session);
    assert_eq!(desk.turn(&session, "Hello"), ("One.".to_owned(), "end_turn".to_owned()));
    desk.cancel(&session);
    desk.cancel("no-such-session");
    assert_eq!(desk.turn(&session, "Hello"), ("Two.".to_owned(), "end_turn".to_owned()));
}

#[test]
fn a_cancel_right_behind_its_prompt_finds_it() {
    let mut desk = Desk::new(ScriptedModel::start([]), &[]);
    let session = desk.open();
    for id in 1000..1020 {
        // The model may be asked or not, so it has an answer for each.
        desk.model.then(half_an_answer());
        let prompt = json!([{ "type": "text", "text": "Never mind" }]);
        let prompt = json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": { "sessionId": session, "prompt": prompt } });
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel",
            "params": { "sessionId": session } });
        let begin = Instant::now();
        desk.client.send_line(&format!("{prompt}\n{cancel}"));
        assert_eq!(stop_of(&desk.client.answer(id)), "cancelled");
        assert!(begin.elapsed() < SOON);
    }
    while 0 < desk.model.left() {
        let prompt = desk.client.send_prompt(&session, "Use up the script");
        desk.until_said("Half an answer");
        desk.cancelled(&session, prompt);
    }
    desk.model.then(Reply::say("Here."));
    assert_eq!(desk.turn(&session, "Hello").0, "Here.");
    desk.model.asked().iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
}

#[test]
fn a_turn_is_cancelled_in_a_call_and_the_next_one_is_told() {
    let model = ScriptedModel::start([
        Reply::call("shell", r#"{"command":"timeout 30 tail -f /dev/null"}"#),
        Reply::say("What happened?"),
    ]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    let prompt = desk.client.send_prompt(&session, "Wait a while");
    let ask = desk.client.until("a question", |it| it["method"] == "session/request_permission");
    let once = json!({ "outcome": { "outcome": "selected", "optionId": "once" } });
    desk.client.respond(&ask, &once);
    desk.client.until("the call", |it| it["params"]["update"]["status"] == "in_progress");
    desk.cancelled(&session, prompt);
    let updates = desk.updates(&session);
    let last = updates.iter().rfind(|it| it["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "failed", "a call that was begun has an end");
    let agent = desk.child.id();
    wait_for("the command's end", SOON, || desk.home.alive(&[agent]).is_empty().then_some(()));
    assert_eq!(desk.turn(&session, "Go on").0, "What happened?");
    let messages = desk.model.asked()[1].body["messages"].clone();
    must_be_sound(&messages);
    assert!(messages.to_string().contains("This call was interrupted"), "{messages}");
}
