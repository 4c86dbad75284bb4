//! `jackfield run` with settings: model, mode, reasoning, directories, images.

use crate::{
    fake_hub::{FakeHub, error_response, prompt_response, response},
    home::TestHome,
};
use serde_json::{Value, json};
use std::fs;

fn option(id: &str, category: &str, values: &[&str]) -> Value {
    let values: Vec<Value> = values.iter().map(|it| json!({ "value": it, "name": it })).collect();
    json!({
        "id": id, "name": id, "category": category, "type": "select",
        "currentValue": values[0]["value"], "options": values,
    })
}

/// A hub whose agent offers two models, legacy modes, and reasoning levels that depend on the model.
fn hub() -> FakeHub {
    let options = json!([
        option("model", "model", &["small", "large"]),
        option("effort", "thought_level", &["low"])
    ]);
    let modes =
        json!([{ "id": "ask", "name": "Ask first" }, { "id": "plan", "name": "Only plan" }]);
    let opened = json!({
        "sessionId": "s-new4lnliedxj", "configOptions": options,
        "modes": { "currentModeId": "ask", "availableModes": modes },
    });
    let set = json!([
        option("model", "model", &["large", "small"]),
        option("effort", "thought_level", &["low", "high"]),
    ]);
    let initialized = json!({
        "protocolVersion": 1, "agentInfo": { "name": "goose", "version": "1.2.3" },
        "agentCapabilities": {
            "promptCapabilities": { "image": true },
            "sessionCapabilities": { "additionalDirectories": {} },
        },
    });
    FakeHub::new()
        .on("initialize", &[response(&initialized)])
        .on("session/new", &[response(&opened)])
        .on("session/resume", &[response(&opened)])
        .on("session/set_config_option", &[response(&json!({ "configOptions": set }))])
        .on("session/set_mode", &[response(&json!({}))])
        .on("session/prompt", &[prompt_response("end_turn")])
        .on("session/close", &[response(&json!({ "_meta": { "jackfield": { "closed": true } } }))])
}

fn run(settings: &[&'static str]) -> Vec<&'static str> {
    [&["run"], settings, &["hello", "--", "goose", "acp"]].concat()
}

#[test]
fn settings_are_applied_before_the_prompt_and_model_comes_first() {
    let home = TestHome::new();
    let received = hub().start(&home);
    let outcome = home.run(&run(&["-m", "Large", "--mode", "only plan", "--reasoning", "high"]));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let changes = received.with_method("session/set_config_option");
    let params = |it: &Value| it["params"].clone();
    let option_params = |id: &str, value: &str| json!({ "sessionId": "s-new4lnliedxj", "configId": id, "value": value });
    assert_eq!(params(&changes[0]), option_params("model", "large"));
    assert_eq!(params(&changes[1]), option_params("effort", "high"));
    assert_eq!(received.with_method("session/set_mode")[0]["params"]["modeId"], "plan");
    let methods = received.methods();
    assert_eq!(methods[methods.len() - 2..], ["session/prompt", "session/close"]);
}

#[test]
fn settings_of_an_existing_session_are_loaded_when_needed() {
    let home = TestHome::new();
    let received = hub().start(&home);
    let outcome = home.run(&["run", "-s", "7f3", "-m", "large", "go on"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(received.with_method("session/resume")[0]["params"]["sessionId"], "s-7f3abcdefghi");
    let set = &received.with_method("session/set_config_option")[0]["params"];
    assert_eq!((&set["sessionId"], &set["value"]), (&json!("s-7f3abcdefghi"), &json!("large")));
    home.run(&["run", "-s", "7f3", "go on"]);
    assert_eq!(received.with_method("session/resume").len(), 1, "not needed without settings");
}

#[test]
fn unavailable_setting_is_exit_code_2_and_no_prompt_is_sent() {
    let home = TestHome::new();
    let received = hub().start(&home);
    insta::assert_snapshot!("setting_mode", home.run(&run(&["--mode", "yolo"])).to_snapshot());
    insta::assert_snapshot!(
        "setting_reasoning",
        home.run(&run(&["--reasoning", "max"])).to_snapshot()
    );
    insta::assert_snapshot!("setting_model_id", home.run(&run(&["--model=-x"])).to_snapshot());
    assert!(received.with_method("session/prompt").is_empty());
    assert_eq!(received.with_method("session/close").len(), 3);
    let removed = received.with_method("session/delete");
    assert_eq!(removed.len(), 3, "a session that was opened for the prompt is removed");
    assert_eq!(removed[0]["params"]["sessionId"], "s-new4lnliedxj");
}

#[test]
fn unavailable_setting_removes_no_session_that_existed_or_is_used() {
    let home = TestHome::new();
    let received = hub().start(&home);
    assert_eq!(home.run(&["run", "-s", "7f3", "--mode", "yolo", "go on"]).code, 2);
    assert!(received.with_method("session/delete").is_empty());
    let home = TestHome::new();
    let used = response(&json!({ "_meta": { "jackfield": { "closed": false } } }));
    let received = hub().on("session/close", &[used]).start(&home);
    assert_eq!(home.run(&run(&["--mode", "yolo"])).code, 2);
    assert_eq!(received.with_method("session/close").len(), 1);
    assert!(received.with_method("session/delete").is_empty());
}

#[test]
fn rejected_model_is_exit_code_2_with_the_agents_error() {
    let home = TestHome::new();
    let refused = error_response(
        &json!({ "code": -32602, "message": "Invalid params", "data": "no such model" }),
    );
    let unknown = error_response(&json!({ "code": -32601, "message": "Method not found" }));
    let received = hub()
        .on("session/set_config_option", &[refused])
        .on("session/set_model", &[unknown])
        .start(&home);
    insta::assert_snapshot!("setting_model", home.run(&run(&["-m", "huge"])).to_snapshot());
    assert!(received.with_method("session/prompt").is_empty());
}

#[test]
fn agent_without_config_options_receives_session_set_model() {
    let home = TestHome::new();
    let unknown = error_response(&json!({ "code": -32601, "message": "Method not found" }));
    FakeHub::new().on("session/set_model", &[unknown]).start(&home);
    insta::assert_snapshot!("setting_no_models", home.run(&run(&["-m", "huge"])).to_snapshot());
    insta::assert_snapshot!("setting_no_modes", home.run(&run(&["--mode", "plan"])).to_snapshot());
}

#[test]
fn directories_and_images_are_sent() {
    let home = TestHome::new();
    let received = hub().start(&home);
    let (dir, file) = (home.path().join("bin"), home.path().join("project/ui"));
    fs::write(&file, b"\x89PNG\r\n\x1a\n").unwrap();
    let dir = dir.to_str().unwrap();
    let args = ["run", "--add-dir", dir, "--add-dir", "..", "--image", "ui", "look", "--", "goose"];
    assert_eq!(home.run(&args).code, 0);
    let opened = &received.with_method("session/new")[0]["params"];
    let home_dir = fs::canonicalize(home.path()).unwrap();
    assert_eq!(opened["additionalDirectories"], json!([home_dir.join("bin"), home_dir]));
    let prompt = &received.with_method("session/prompt")[0]["params"]["prompt"];
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" });
    assert_eq!(*prompt, json!([{ "type": "text", "text": "look" }, image]));
}

#[test]
fn missing_capability_is_exit_code_2_before_a_session_is_opened() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    fs::write(home.path().join("project/ui.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(home.path().join("project/notes"), "text").unwrap();
    insta::assert_snapshot!(
        "setting_no_images",
        home.run(&run(&["--image", "ui.png"])).to_snapshot()
    );
    insta::assert_snapshot!(
        "setting_one_directory",
        home.run(&run(&["--add-dir", ".."])).to_snapshot()
    );
    assert!(received.with_method("session/new").is_empty());
    insta::assert_snapshot!(
        "setting_no_image",
        home.run(&run(&["--image", "notes"])).to_snapshot()
    );
    insta::assert_snapshot!(
        "setting_no_file",
        home.run(&run(&["--image", "nowhere"])).to_snapshot()
    );
    let args = ["run", "-s", "7f3", "--add-dir", "..", "go on"];
    insta::assert_snapshot!("setting_late_directory", home.run(&args).to_snapshot());
    insta::assert_snapshot!(
        "setting_image_alone",
        home.run(&["run", "-i", "--image", "ui.png"]).to_snapshot()
    );
}

#[test]
fn verbose_run_prints_the_available_settings() {
    let home = TestHome::new();
    hub().start(&home);
    insta::assert_snapshot!(
        "setting_verbose",
        home.run(&run(&["-v", "-m", "large"])).to_snapshot()
    );
}
