//! Properties that hold for every recording.

use super::player::PlaybackResult;
use super::recording::Recording;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A validator for one definition of ACP's schema.
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
static INITIALIZE_RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator("InitializeResponse"));

pub(crate) fn check_properties(recording: &Recording, played: &PlaybackResult) {
    let name = format!("{}/{}", recording.cli, recording.case);
    for frame in frames(played) {
        check_schema(&name, frame);
    }
    check_tool_calls(&name, played);
    check_responses(&name, played);
    check_sentences(recording, &name, played);
}

fn frames(played: &PlaybackResult) -> impl Iterator<Item = &Value> {
    played.frames.iter().filter(|(channel, _)| *channel == "client").map(|(_, frame)| frame)
}

fn check_schema(name: &str, frame: &Value) {
    let (validator, value) = match (frame["method"].as_str(), frame["id"].as_str()) {
        (Some("session/update"), _) => (&NOTIFICATION, &frame["params"]),
        (Some("session/request_permission"), _) => (&PERMISSION, &frame["params"]),
        (None, _) if frame["error"].is_object() => return,
        (None, Some("session/prompt")) => (&PROMPT_RESPONSE, &frame["result"]),
        (None, Some("session/new")) => (&NEW_RESPONSE, &frame["result"]),
        (None, Some("initialize")) => (&INITIALIZE_RESPONSE, &frame["result"]),
        _ => return,
    };
    if let Err(error) = validator.validate(value) {
        panic!("{name}: {error} at {}\n{frame}", error.instance_path());
    }
}

/// Every tool call is created once and closed once.
fn check_tool_calls(name: &str, played: &PlaybackResult) {
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for frame in frames(played) {
        let update = &frame["params"]["update"];
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let is_final = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if update["sessionUpdate"] == "tool_call" {
            assert_eq!(open.insert(id, is_final), None, "{name}: {id} was created twice");
        } else {
            let closed = open.get_mut(id).unwrap_or_else(|| panic!("{name}: {id} is unknown"));
            assert!(!(*closed && is_final), "{name}: {id} was closed twice");
            *closed |= is_final;
        }
    }
    let left: Vec<&&str> = open.iter().filter(|(_, closed)| !**closed).map(|(id, _)| id).collect();
    assert!(left.is_empty(), "{name}: still open at the end: {left:?}");
}

/// Every prompt has one response.
fn check_responses(name: &str, played: &PlaybackResult) {
    let responses = frames(played).filter(|frame| frame["id"] == "session/prompt").count();
    assert_eq!(u64::try_from(responses).unwrap(), played.prompts, "{name}: responses to prompts");
}

/// The fake model of the recordings uses a few sentences: each is sent at most once per turn, and
/// none is lost.
fn check_sentences(recording: &Recording, name: &str, played: &PlaybackResult) {
    let text: String = frames(played)
        .filter(|frame| frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|frame| frame["params"]["update"]["content"]["text"].as_str())
        .collect();
    let stdout = String::from_utf8_lossy(&recording.stdout);
    for sentence in ["Hello from the fake model.", "The tool answered:", "I will run a tool."] {
        let count = text.matches(sentence).count();
        let turns = usize::try_from(played.prompts).unwrap();
        assert!(
            count <= turns,
            "{name}: `{sentence}` was sent {count} times in {turns} turns:\n{text}"
        );
        if stdout.contains(sentence) && !recording.is_cancelled() {
            assert!(0 < count, "{name}: `{sentence}` was lost:\n{text}");
        }
    }
}
