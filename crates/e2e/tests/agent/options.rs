//! What a user chooses in a session, types instead of a prompt, and never notices: modes, options,
//! commands, and the window that fills.

use super::{Desk, must_be_sound};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};

fn models() -> Value {
    json!({ "data": [{ "id": "small" }, { "id": "large", "context_length": 9000 }] })
}

fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    options.as_array().unwrap().iter().find(|it| it["id"] == id).unwrap()
}

impl<M> Desk<M> {
    /// Chooses; all options as they are then.
    fn choose(&mut self, session: &str, option: &str, value: &str) -> Value {
        let params = json!({ "sessionId": session, "configId": option, "value": value });
        self.client.result("session/set_config_option", &params)["configOptions"].clone()
    }
}

#[test]
fn what_a_user_chooses_reaches_the_model_and_outlives_the_process() {
    let model = ScriptedModel::start([Reply::say("One."), Reply::say("Two.")]);
    model.serve_models(&models());
    let mut desk = Desk::new(model, &[("OPENAI_MODEL", "small")]);
    let new = json!({ "cwd": desk.home.path(), "mcpServers": [] });
    let opened = desk.client.result("session/new", &new);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let options = &opened["configOptions"];
    let offered: Vec<&Value> = option(options, "model")["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["value"])
        .collect();
    assert_eq!(offered, ["small", "large"]);
    let is_now = |options: &Value, model: &str, mode: &str, effort: &str| {
        let now = ["model", "mode", "effort"].map(|it| option(options, it)["currentValue"].clone());
        assert_eq!(now, [model, mode, effort]);
    };
    is_now(options, "small", "ask", "default");
    desk.turn(&session, "Hello");
    desk.choose(&session, "effort", "high");
    desk.choose(&session, "mode", "read-only");
    is_now(&desk.choose(&session, "model", "large"), "large", "read-only", "high");
    desk.restart();
    let place = desk.place(&session);
    let loaded = desk.client.result("session/load", &place);
    is_now(&loaded["configOptions"], "large", "read-only", "high");
    assert_eq!(loaded["modes"]["currentModeId"], "read-only");
    desk.turn(&session, "Hello");
    let asked = desk.model.asked();
    let tools = |at: usize| asked[at].body["tools"].to_string();
    assert_eq!(
        (&asked[0].body["model"], asked[0].body.get("reasoning_effort")),
        (&json!("small"), None)
    );
    assert!(tools(0).contains("\"write\"") && tools(0).contains("\"shell\""));
    assert_eq!(
        (&asked[1].body["model"], &asked[1].body["reasoning_effort"]),
        (&json!("large"), &json!("high"))
    );
    assert!(tools(1).contains("\"read\"") && !tools(1).contains("\"write\""), "{}", tools(1));
    assert!(!tools(1).contains("\"shell\""));
    // The window is the one of the model that was chosen.
    let updates = desk.updates(&session);
    let usage = updates.iter().find(|it| it["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!(usage["size"], 9000);
}

#[test]
fn a_mode_can_be_set_by_clients_that_know_no_options_and_no_other_can() {
    let mut desk = Desk::new(ScriptedModel::start([]), &[]);
    let session = desk.open();
    let set = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    desk.client.result("session/set_mode", &set("edit"));
    let is_mode = |it: &Value| it["sessionUpdate"] == "current_mode_update";
    let updates = desk.updates(&session);
    assert_eq!(updates.iter().find(|it| is_mode(it)).unwrap()["currentModeId"], "edit");
    let error = desk.client.ask("session/set_mode", &set("anything-goes"))["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error.to_string().contains("choose one of ask, edit, read-only"), "{error}");
    for (option, value) in [("effort", "enormous"), ("colour", "red"), ("model", "")] {
        let params = json!({ "sessionId": session, "configId": option, "value": value });
        let error = desk.client.ask("session/set_config_option", &params)["error"].clone();
        assert_eq!(error["code"], -32602, "{option}: {error}");
    }
}

#[test]
fn commands_are_offered_and_answered_without_the_model() {
    let mut desk = Desk::new(ScriptedModel::start([Reply::say("As you like.")]), &[]);
    desk.model.serve_models(&models());
    let session = desk.open();
    let is_offer =
        |it: &Value| it["params"]["update"]["sessionUpdate"] == "available_commands_update";
    let offer = desk.client.until("the commands", is_offer);
    let commands = offer["params"]["update"]["availableCommands"].as_array().unwrap().clone();
    let help = desk.turn(&session, "/help").0;
    assert_eq!(commands.len(), 3);
    for command in commands {
        let name = command["name"].as_str().unwrap();
        assert!(help.contains(&format!("`/{name}")), "{help}");
    }
    assert_eq!(desk.turn(&session, "/model").0, "The model is `gpt-4o`.");
    assert_eq!(desk.turn(&session, "/model large").0, "The model is `large` from now on.");
    let updates = desk.updates(&session);
    let told = updates.iter().find(|it| it["sessionUpdate"] == "config_option_update").unwrap();
    assert_eq!(option(&told["configOptions"], "model")["currentValue"], "large");
    assert!(desk.model.asked().is_empty());
    desk.turn(&session, "/etc/hosts is a path");
    let asked = desk.model.asked();
    assert_eq!(asked[0].body["model"], "large");
    let messages = asked[0].body["messages"].to_string();
    assert!(messages.contains("/etc/hosts is a path") && !messages.contains("/help"), "{messages}");
}

#[test]
fn a_conversation_is_summed_up_when_the_user_says_so() {
    let model = ScriptedModel::start(["Blue.", "They like BLUE.", "Still blue."].map(Reply::say));
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    desk.turn(&session, "Which colour?");
    assert_eq!(desk.turn(&session, "/compact").0, "The conversation was summarized.");
    desk.restart();
    let place = desk.place(&session);
    desk.client.result("session/load", &place);
    assert_eq!(desk.client.text(), "Blue.", "people see the conversation, not its summary");
    desk.turn(&session, "And now?");
    let asked = desk.model.asked();
    let messages = |at: usize| asked[at].body["messages"].to_string();
    assert!(
        messages(1).contains("Which colour?") && messages(1).contains("Sum up"),
        "{}",
        messages(1)
    );
    assert!(asked[1].body.get("tools").is_none(), "a summary needs no tools");
    assert!(messages(2).contains("They like BLUE.") && messages(2).contains("And now?"));
    assert!(!messages(2).contains("\"Blue.\""), "{}", messages(2));
    asked.iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
}

#[test]
fn a_conversation_is_summed_up_when_the_window_is_nearly_full() {
    let replies = ["One.", "Two.", "SHORT", "Three.", "Four."];
    let model = ScriptedModel::start(replies.map(Reply::say));
    let mut desk = Desk::new(model, &[("OPENAI_CONTEXT_WINDOW", "200")]);
    let session = desk.open();
    desk.turn(&session, "FIRST prompt");
    desk.turn(&session, "SECOND prompt");
    // About 190 tokens with the 15 that the server counted.
    let long = format!("THIRD prompt {}", "word ".repeat(140));
    assert_eq!(desk.turn(&session, &long).0, "Three.", "nobody hears the summary");
    assert_eq!(desk.turn(&session, "FOURTH prompt").0, "Four.");
    let asked = desk.model.asked();
    assert_eq!(asked.len(), 5);
    for at in [3, 4] {
        let messages = asked[at].body["messages"].to_string();
        assert!(messages.contains("SHORT") && messages.contains("THIRD"), "{messages}");
        assert!(!messages.contains("FIRST") && !messages.contains("SECOND"), "{messages}");
    }
    assert!(asked[4].body["messages"].to_string().contains("FOURTH"));
    asked.iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
}

#[test]
fn a_conversation_is_summed_up_when_the_server_says_that_it_is_too_long() {
    let body = r#"{"error":{"message":"maximum context length is 4096 tokens","code":"context_length_exceeded"}}"#;
    let steps = [
        Reply::say("One."),
        Reply::status(400).body(body),
        Reply::say("SHORT"),
        Reply::say("Two."),
    ];
    let mut desk = Desk::new(ScriptedModel::start(steps), &[]);
    let session = desk.open();
    desk.turn(&session, "FIRST prompt");
    assert_eq!(desk.turn(&session, "SECOND prompt").0, "Two.");
    let last = desk.model.asked().last().unwrap().body["messages"].to_string();
    assert!(last.contains("SHORT") && last.contains("SECOND") && !last.contains("FIRST"), "{last}");
}
