//! Whatever lines come, in whatever order: no panic, one outcome, no tool call left open.

use jackfield_adapt::{Adapter, Memory, Note, Output, Settings, dialect};
use jackfield_agents::Exit;
use jackfield_catalogue::{Catalogue, Variant};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// Every line of the recordings of these CLIs, once.
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

struct Forgetful;

impl Memory for Forgetful {
    fn new_id(&mut self) -> String {
        "s".to_owned()
    }
    fn remember(&mut self, _session: &str, _note: &Note) {}
    fn recall(&mut self, _session: &str) -> Option<Note> {
        None
    }
}

fn adapter(name: &str) -> Adapter {
    let catalogue = Catalogue::builtin();
    let speaks = |variant: &&Variant| variant.dialect.as_deref() == Some(name);
    let spec = catalogue.iter().find(|spec| spec.launch.iter().any(|it| speaks(&it))).unwrap();
    let variant = spec.launch.iter().find(speaks).unwrap().clone();
    let settings = Settings {
        spec: spec.clone(),
        flags: vec![true; variant.flags.len()],
        variant,
        models: Vec::new(),
        scratch: "/scratch".to_owned(),
    };
    Adapter::new(settings, dialect(name).unwrap())
}

/// Plays the lines into one turn. Returns what the client heard.
fn play(name: &str, lines: &[String]) -> Vec<Value> {
    let mut adapter = adapter(name);
    let prompt = json!([{"type": "text", "text": "go"}]);
    let requests = [
        ("session/new", json!({"cwd": "/w", "mcpServers": []})),
        ("session/prompt", json!({"sessionId": "s", "prompt": prompt})),
    ];
    for (method, params) in requests {
        let frame = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        adapter.on_client(&frame, &mut Forgetful);
    }
    for line in lines {
        adapter.on_line(1, line, &mut Forgetful);
    }
    adapter.on_end(1, &Exit { code: Some(0), ..Exit::default() }, &mut Forgetful);
    let mut heard = Vec::new();
    while let Some(output) = adapter.take_output() {
        if let Output::ToClient(frame) = output {
            heard.push(frame);
        }
    }
    heard
}

fn hold(heard: &[Value]) {
    let outcomes = heard.iter().filter(|frame| frame["id"] == "session/prompt").count();
    assert_eq!(outcomes, 1);
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for frame in heard {
        if frame["id"] == "session/prompt" {
            // What is heard behind the turn belongs to no prompt.
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

/// A line as recorded, cut short, with a value replaced, or junk.
fn line() -> impl Strategy<Value = String> {
    let at = any::<prop::sample::Index>();
    let recorded = at.prop_map(|at| at.get(&LINES).clone()).boxed();
    let cut = (recorded.clone(), any::<prop::sample::Index>())
        .prop_map(|(line, at)| line.chars().take(at.index(line.len().max(1))).collect::<String>());
    let bent =
        (recorded.clone(), any::<prop::sample::Index>(), junk()).prop_map(|(line, at, value)| {
            let mut bent: Value = serde_json::from_str(&line).unwrap();
            replace(&mut bent, at, value);
            bent.to_string()
        });
    prop_oneof![4 => recorded, 1 => cut, 3 => bent, 1 => ".{0,40}"]
}

fn junk() -> impl Strategy<Value = Value> {
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
fn replace(value: &mut Value, at: prop::sample::Index, junk: Value) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let index = at.index(members.len());
            let member = members.values_mut().nth(index).unwrap();
            replace(member, at, junk);
        }
        Value::Array(items) if !items.is_empty() => {
            let index = at.index(items.len());
            replace(&mut items[index], at, junk);
        }
        other => *other = junk,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_lines_give_one_outcome(lines in prop::collection::vec(line(), 0..60)) {
        for name in ["claude", "amp", "qwen"] {
            hold(&play(name, &lines));
        }
    }
}
