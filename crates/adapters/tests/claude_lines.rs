//! Arbitrary lines in arbitrary order: the adapter does not panic, a turn has one outcome, and
//! every tool call is closed.

use crate::support::{EmptyStore, new_adapter};
use jackfield_adapters::AdapterOutput;
use jackfield_agents::AgentExit;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The lines of all recordings of these CLIs.
static LINES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut lines = Vec::new();
    for cli in ["claude/2.1.325", "qwen/0.24.4"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(cli);
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|it| it == "stdout"));
        for path in paths {
            lines.extend(std::fs::read_to_string(path).unwrap().lines().map(str::to_owned));
        }
    }
    lines
});

/// Plays the lines in one turn. Returns the frames for the client.
fn play_lines(name: &str, lines: &[String]) -> Vec<Value> {
    let mut adapter = new_adapter(name, name);
    let prompt = json!([{"type": "text", "text": "go"}]);
    let requests = [
        ("session/new", json!({"cwd": "/w", "mcpServers": []})),
        ("session/prompt", json!({"sessionId": "s", "prompt": prompt})),
    ];
    for (method, params) in requests {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        adapter.on_client_frame(&frame, &mut EmptyStore);
    }
    for line in lines {
        adapter.on_line(1, line, &mut EmptyStore);
    }
    adapter.on_exit(1, &AgentExit { code: Some(0), ..AgentExit::default() }, &mut EmptyStore);
    let mut frames = Vec::new();
    while let Some(output) = adapter.take_output() {
        if let AdapterOutput::SendToClient(frame) = output {
            frames.push(frame);
        }
    }
    frames
}

fn check_frames(frames: &[Value]) {
    let outcomes = frames.iter().filter(|frame| frame["id"] == "session/prompt").count();
    assert_eq!(outcomes, 1);
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for frame in frames {
        if frame["id"] == "session/prompt" {
            // Frames after the turn belong to no prompt.
            break;
        }
        let update = &frame["params"]["update"];
        if let Some(id) = update["toolCallId"].as_str() {
            let closed = open.entry(id).or_default();
            *closed |= matches!(update["status"].as_str(), Some("completed" | "failed"));
        }
    }
    assert!(open.values().all(|closed| *closed), "{open:?}");
}

/// A recorded line, a truncated one, one with a value replaced, or arbitrary text.
fn arbitrary_line() -> impl Strategy<Value = String> {
    let at = any::<prop::sample::Index>();
    let recorded = at.prop_map(|at| at.get(&LINES).clone()).boxed();
    let truncated = (recorded.clone(), any::<prop::sample::Index>())
        .prop_map(|(line, at)| line.chars().take(at.index(line.len().max(1))).collect::<String>());
    let changed = (recorded.clone(), any::<prop::sample::Index>(), arbitrary_value()).prop_map(
        |(line, at, value)| {
            let mut changed: Value = serde_json::from_str(&line).unwrap();
            replace_member(&mut changed, at, value);
            changed.to_string()
        },
    );
    prop_oneof![4 => recorded, 1 => truncated, 3 => changed, 1 => ".{0,40}"]
}

fn arbitrary_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[1, "x"], null])),
        any::<u64>().prop_map(|it| json!(it)),
        ".{0,12}".prop_map(|it| json!(it)),
    ]
}

/// Replaces one member somewhere in the value.
fn replace_member(value: &mut Value, at: prop::sample::Index, replacement: Value) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let index = at.index(members.len());
            let member = members.values_mut().nth(index).unwrap();
            replace_member(member, at, replacement);
        }
        Value::Array(items) if !items.is_empty() => {
            let index = at.index(items.len());
            replace_member(&mut items[index], at, replacement);
        }
        other => *other = replacement,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn arbitrary_lines_give_one_outcome(lines in prop::collection::vec(arbitrary_line(), 0..60)) {
        for name in ["claude", "amp", "qwen"] {
            check_frames(&play_lines(name, &lines));
        }
    }
}
