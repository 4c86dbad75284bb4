//! What a scripted model saw of its agent, and what a user says who is asked.

use super::{Desk, must_be_sound};
use jackfield_test_support::scripted_model::ScriptedModel;
use serde_json::{Value, json};

/// The results of all calls, as the last request has them. Every request must have been sound.
pub(super) fn results(model: &ScriptedModel) -> Vec<String> {
    let asked = model.asked();
    for request in &asked {
        must_be_sound(&request.body["messages"]);
    }
    let messages = asked.last().expect("it was asked").body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|it| it["role"] == "tool");
    results.map(|it| it["content"].as_str().unwrap().to_owned()).collect()
}

/// The names of the tools that the model was offered last.
pub(super) fn offered(model: &ScriptedModel) -> Vec<String> {
    let asked = model.asked();
    let tools = asked.last().expect("it was asked").body["tools"].as_array().unwrap();
    tools.iter().map(|it| it["function"]["name"].as_str().unwrap().to_owned()).collect()
}

pub(super) fn is_ask(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

/// How often the user was asked.
pub(super) fn asks<M>(desk: &Desk<M>) -> usize {
    desk.client.heard.iter().filter(|it| is_ask(it)).count()
}

/// Waits until the user is asked, and chooses this option.
pub(super) fn choose<M>(desk: &mut Desk<M>, option: &str) -> Value {
    let ask = desk.client.until("the question", is_ask);
    answer(desk, &ask, option);
    ask["params"].clone()
}

pub(super) fn answer<M>(desk: &mut Desk<M>, ask: &Value, option: &str) {
    let outcome = json!({ "outcome": "selected", "optionId": option });
    desk.client.respond(ask, &json!({ "outcome": outcome }));
}
