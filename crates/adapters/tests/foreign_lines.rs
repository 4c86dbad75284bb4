//! Recorded lines that are truncated, repeated, changed and reordered, and invalid lines: no
//! dialect panics, and every prompt has one response.

use crate::transcripts::{player::play, recording::Recording};
use jackfield_agents::AgentExit;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The CLIs whose recordings are used, and the dialect of each.
const RECORDED_CLIS: &[(&str, &str)] = &[
    ("copilot", "copilot"),
    ("cursor", "cursor"),
    ("gemini", "gemini"),
    ("grok", "grok"),
    ("hermes", "plain"),
    ("kimi", "kimi"),
    ("opencode", "opencode"),
    ("pi", "pi"),
];

/// The recorded lines of each CLI.
static LINES: LazyLock<BTreeMap<&str, Vec<String>>> = LazyLock::new(|| {
    let lines_of = |cli: &str| {
        let recordings = Recording::all(cli).into_iter();
        let texts = recordings.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    RECORDED_CLIS.iter().map(|(cli, _)| (*cli, lines_of(cli))).collect()
});

const INVALID_LINES: &[&str] = &[
    "",
    " ",
    "null",
    "7",
    "[]",
    "{}",
    "{\"type\":1}",
    "{\"type\":\"\"}",
    "\u{1b}[0m",
    "{\"role\"",
];

/// A change of one line.
#[derive(Debug, Clone)]
enum LineChange {
    Unchanged,
    Truncated(prop::sample::Index),
    /// One value in it is replaced.
    ValueReplaced(prop::sample::Index, usize),
    Replaced(usize),
}

fn line_changes() -> impl Strategy<Value = Vec<(prop::sample::Index, LineChange)>> {
    let any_index = any::<prop::sample::Index>;
    let change = prop_oneof![
        3 => Just(LineChange::Unchanged),
        1 => any_index().prop_map(LineChange::Truncated),
        3 => (any_index(), 0..6_usize).prop_map(|(at, with)| LineChange::ValueReplaced(at, with)),
        1 => (0..INVALID_LINES.len()).prop_map(LineChange::Replaced),
    ];
    prop::collection::vec((any_index(), change), 0..30)
}

fn apply_change(line: &str, change: &LineChange) -> String {
    match change {
        LineChange::Unchanged => line.to_owned(),
        LineChange::Replaced(at) => INVALID_LINES[*at].to_owned(),
        LineChange::Truncated(at) => {
            let chars: Vec<char> = line.chars().collect();
            chars[..at.index(chars.len() + 1)].iter().collect()
        }
        LineChange::ValueReplaced(at, with) => {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
            let mut left = at.index(count_values(&value));
            replace_value(&mut value, &mut left, *with);
            value.to_string()
        }
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}

fn count_values(value: &Value) -> usize {
    let mut value = value.clone();
    1 + children(&mut value).into_iter().map(|child| count_values(child)).sum::<usize>()
}

/// Replaces the value after `left` others. Returns whether it was found.
fn replace_value(value: &mut Value, left: &mut usize, with: usize) -> bool {
    if *left == 0 {
        let others =
            [json!(null), json!(-1), json!(u64::MAX), json!(""), json!("é\n{"), json!([{}, []])];
        *value = others[with].clone();
        return true;
    }
    *left -= 1;
    children(value).into_iter().any(|child| replace_value(child, left, with))
}

/// Checks that each prompt has one response, and that each tool call is created and ended once.
fn check_frames(recorded: &[(&'static str, Value)], prompts: u64) {
    let mut responses = 0;
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, frame) in recorded.iter().filter(|(who, _)| *who == "client") {
        responses += u64::from(frame["id"] == "session/prompt");
        let update = &frame["params"]["update"];
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let is_final = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if update["sessionUpdate"] == "tool_call" {
            assert_eq!(open.insert(id, is_final), None, "{id} was created twice");
        } else {
            let ended = open.get_mut(id).unwrap();
            assert!(!(*ended && is_final), "{id} was ended twice");
            *ended |= is_final;
        }
    }
    assert_eq!(responses, prompts);
    assert!(open.values().all(|ended| *ended), "{open:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dialects_survive_changed_lines(changes in line_changes(), code in prop_oneof![Just(0), Just(1), Just(145)]) {
        for (cli, dialect) in RECORDED_CLIS {
            let lines = &LINES[cli];
            let stdout: Vec<String> =
                changes.iter().map(|(at, change)| apply_change(&lines[at.index(lines.len())], change)).collect();
            // The player starts a new turn at this line, but these programs have one turn per
            // process.
            let stdout = stdout.join("\n").replace(r#""type":"system","#, r#""type": "system","#);
            let exit = AgentExit { code: Some(code), ..AgentExit::default() };
            let recording = Recording {
                cli: (*cli).to_owned(),
                case: "changed".to_owned(),
                stdout: stdout.into_bytes(),
                exit,
                prompt: "Say hello".to_owned(),
            };
            let played = play(dialect, &recording);
            check_frames(&played.frames, played.prompts);
        }
    }
}
