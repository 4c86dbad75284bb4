//! What holds for every recording, whatever the program.

use super::fixture::Fixture;
use super::player::Played;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The protocol's own schema, one definition of it as the root.
fn validator(definition: &str) -> Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/acp-v1.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let root = json!({"$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"]});
    jsonschema::validator_for(&root).unwrap()
}

static NOTIFICATION: LazyLock<Validator> = LazyLock::new(|| validator("SessionNotification"));
static PERMISSION: LazyLock<Validator> = LazyLock::new(|| validator("RequestPermissionRequest"));
static PROMPT_RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator("PromptResponse"));
static NEW_RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator("NewSessionResponse"));
static HELLO: LazyLock<Validator> = LazyLock::new(|| validator("InitializeResponse"));

pub(crate) fn check(fixture: &Fixture, played: &Played) {
    let place = format!("{}/{}", fixture.cli, fixture.case);
    for frame in frames(played) {
        valid(&place, frame);
    }
    every_tool_call_is_created_once_and_closed(&place, played);
    every_prompt_has_one_answer(&place, played);
    no_word_of_the_model_is_said_twice(fixture, &place, played);
}

fn frames(played: &Played) -> impl Iterator<Item = &Value> {
    played.told.iter().filter(|(who, _)| *who == "client").map(|(_, what)| what)
}

fn valid(place: &str, frame: &Value) {
    let (validator, value) = match (frame["method"].as_str(), frame["id"].as_str()) {
        (Some("session/update"), _) => (&NOTIFICATION, &frame["params"]),
        (Some("session/request_permission"), _) => (&PERMISSION, &frame["params"]),
        (None, _) if frame["error"].is_object() => return,
        (None, Some("session/prompt")) => (&PROMPT_RESPONSE, &frame["result"]),
        (None, Some("session/new")) => (&NEW_RESPONSE, &frame["result"]),
        (None, Some("initialize")) => (&HELLO, &frame["result"]),
        _ => return,
    };
    if let Err(error) = validator.validate(value) {
        panic!("{place}: {error} at {}\n{frame}", error.instance_path());
    }
}

fn every_tool_call_is_created_once_and_closed(place: &str, played: &Played) {
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for frame in frames(played) {
        let update = &frame["params"]["update"];
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let ends = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if update["sessionUpdate"] == "tool_call" {
            assert_eq!(open.insert(id, ends), None, "{place}: {id} was created twice");
        } else {
            let closed = open.get_mut(id).unwrap_or_else(|| panic!("{place}: {id} is unknown"));
            assert!(!(*closed && ends), "{place}: {id} was closed twice");
            *closed |= ends;
        }
    }
    let left: Vec<&&str> = open.iter().filter(|(_, closed)| !**closed).map(|(id, _)| id).collect();
    assert!(left.is_empty(), "{place}: still open at the end: {left:?}");
}

fn every_prompt_has_one_answer(place: &str, played: &Played) {
    let answers = frames(played).filter(|frame| frame["id"] == "session/prompt").count();
    assert_eq!(u64::try_from(answers).unwrap(), played.prompts, "{place}: answers to prompts");
}

/// The model of the recordings has a small vocabulary: each of its sentences is said once a turn.
fn no_word_of_the_model_is_said_twice(fixture: &Fixture, place: &str, played: &Played) {
    let text: String = frames(played)
        .filter(|frame| frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|frame| frame["params"]["update"]["content"]["text"].as_str())
        .collect();
    let stdout = String::from_utf8_lossy(&fixture.stdout);
    for sentence in ["Hello from the fake model.", "The tool answered:", "I will run a tool."] {
        let said = text.matches(sentence).count();
        let turns = usize::try_from(played.prompts).unwrap();
        assert!(
            said <= turns,
            "{place}: `{sentence}` was said {said} times in {turns} turns:\n{text}"
        );
        if stdout.contains(sentence) && !fixture.is_cancelled() {
            assert!(0 < said, "{place}: `{sentence}` was lost:\n{text}");
        }
    }
}
