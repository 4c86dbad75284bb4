//! `jackfield run` with wishes: model, mode, reasoning, more directories, images.

use crate::{
    fake_hub::{FakeHub, error, result, stop},
    home::Home,
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

/// A hub whose agent offers two models, modes in the old way, and levels that depend on the model.
fn hub() -> FakeHub {
    let options = json!([
        option("model", "model", &["small", "large"]),
        option("effort", "thought_level", &["low"])
    ]);
    let ways = json!([{ "id": "ask", "name": "Ask first" }, { "id": "plan", "name": "Only plan" }]);
    let opened = json!({
        "sessionId": "s-new4lnliedxj", "configOptions": options,
        "modes": { "currentModeId": "ask", "availableModes": ways },
    });
    let set = json!([
        option("model", "model", &["large", "small"]),
        option("effort", "thought_level", &["low", "high"]),
    ]);
    let told = json!({
        "protocolVersion": 1, "agentInfo": { "name": "goose", "version": "1.2.3" },
        "agentCapabilities": {
            "promptCapabilities": { "image": true },
            "sessionCapabilities": { "additionalDirectories": {} },
        },
    });
    FakeHub::new()
        .on("initialize", &[result(&told)])
        .on("session/new", &[result(&opened)])
        .on("session/resume", &[result(&opened)])
        .on("session/set_config_option", &[result(&json!({ "configOptions": set }))])
        .on("session/set_mode", &[result(&json!({}))])
        .on("session/prompt", &[stop("end_turn")])
}

fn run(wishes: &[&'static str]) -> Vec<&'static str> {
    [&["run"], wishes, &["hello", "--", "goose", "acp"]].concat()
}

#[test]
fn settings_are_made_before_the_prompt_and_levels_are_those_of_the_model() {
    let home = Home::new();
    let heard = hub().start(&home);
    let did = home.run(&run(&["-m", "Large", "--mode", "only plan", "--reasoning", "high"]));
    assert_eq!(did.code, 0, "{}", did.stderr);
    let made = heard.all("session/set_config_option");
    let params = |it: &Value| it["params"].clone();
    let of = |id: &str, value: &str| json!({ "sessionId": "s-new4lnliedxj", "configId": id, "value": value });
    assert_eq!(params(&made[0]), of("model", "large"));
    assert_eq!(params(&made[1]), of("effort", "high"));
    assert_eq!(heard.all("session/set_mode")[0]["params"]["modeId"], "plan");
    let methods = heard.methods();
    assert_eq!(methods[methods.len() - 2..], ["session/prompt", "session/close"]);
}

#[test]
fn a_session_that_exists_is_asked_what_it_offers() {
    let home = Home::new();
    let heard = hub().start(&home);
    let did = home.run(&["run", "-s", "7f3", "-m", "large", "go on"]);
    assert_eq!(did.code, 0, "{}", did.stderr);
    assert_eq!(heard.all("session/resume")[0]["params"]["sessionId"], "s-7f3abcdefghi");
    let set = &heard.all("session/set_config_option")[0]["params"];
    assert_eq!((&set["sessionId"], &set["value"]), (&json!("s-7f3abcdefghi"), &json!("large")));
    home.run(&["run", "-s", "7f3", "go on"]);
    assert_eq!(heard.all("session/resume").len(), 1, "nobody wants to know");
}

#[test]
fn what_the_agent_does_not_offer_is_2_and_nothing_is_said_to_it() {
    let home = Home::new();
    let heard = hub().start(&home);
    insta::assert_snapshot!("wish_mode", home.run(&run(&["--mode", "yolo"])).told());
    insta::assert_snapshot!("wish_reasoning", home.run(&run(&["--reasoning", "max"])).told());
    insta::assert_snapshot!("wish_model_id", home.run(&run(&["--model=-x"])).told());
    assert!(heard.all("session/prompt").is_empty());
    assert_eq!(heard.all("session/close").len(), 3);
}

#[test]
fn a_model_that_the_agent_refuses_is_2_with_its_words() {
    let home = Home::new();
    let refused =
        error(&json!({ "code": -32602, "message": "Invalid params", "data": "no such model" }));
    let unknown = error(&json!({ "code": -32601, "message": "Method not found" }));
    let heard = hub()
        .on("session/set_config_option", &[refused])
        .on("session/set_model", &[unknown])
        .start(&home);
    insta::assert_snapshot!("wish_model", home.run(&run(&["-m", "huge"])).told());
    assert!(heard.all("session/prompt").is_empty());
}

#[test]
fn an_agent_without_any_choice_is_told_the_model_the_old_way() {
    let home = Home::new();
    let unknown = error(&json!({ "code": -32601, "message": "Method not found" }));
    FakeHub::new().on("session/set_model", &[unknown]).start(&home);
    insta::assert_snapshot!("wish_no_models", home.run(&run(&["-m", "huge"])).told());
    insta::assert_snapshot!("wish_no_modes", home.run(&run(&["--mode", "plan"])).told());
}

#[test]
fn directories_and_images_go_along() {
    let home = Home::new();
    let heard = hub().start(&home);
    let (dir, file) = (home.path().join("bin"), home.path().join("project/ui"));
    fs::write(&file, b"\x89PNG\r\n\x1a\n").unwrap();
    let dir = dir.to_str().unwrap();
    let args = ["run", "--add-dir", dir, "--add-dir", "..", "--image", "ui", "look", "--", "goose"];
    assert_eq!(home.run(&args).code, 0);
    let opened = &heard.all("session/new")[0]["params"];
    let home_dir = fs::canonicalize(home.path()).unwrap();
    assert_eq!(opened["additionalDirectories"], json!([home_dir.join("bin"), home_dir]));
    let prompt = &heard.all("session/prompt")[0]["params"]["prompt"];
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" });
    assert_eq!(*prompt, json!([{ "type": "text", "text": "look" }, image]));
}

#[test]
fn what_the_agent_cannot_do_is_2_before_a_session_is_opened() {
    let home = Home::new();
    let heard = FakeHub::new().start(&home);
    fs::write(home.path().join("project/ui.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    fs::write(home.path().join("project/notes"), "text").unwrap();
    insta::assert_snapshot!("wish_no_images", home.run(&run(&["--image", "ui.png"])).told());
    insta::assert_snapshot!("wish_one_directory", home.run(&run(&["--add-dir", ".."])).told());
    assert!(heard.all("session/new").is_empty());
    insta::assert_snapshot!("wish_no_image", home.run(&run(&["--image", "notes"])).told());
    insta::assert_snapshot!("wish_no_file", home.run(&run(&["--image", "nowhere"])).told());
    let args = ["run", "-s", "7f3", "--add-dir", "..", "go on"];
    insta::assert_snapshot!("wish_late_directory", home.run(&args).told());
    insta::assert_snapshot!(
        "wish_image_alone",
        home.run(&["run", "-i", "--image", "ui.png"]).told()
    );
}

#[test]
fn who_wants_to_know_more_hears_what_can_be_chosen() {
    let home = Home::new();
    hub().start(&home);
    insta::assert_snapshot!("wish_verbose", home.run(&run(&["-v", "-m", "large"])).told());
}
