//! CLIs with an adapter. The snapshots of `crates/adapters` have the ACP messages that the dialects make
//! of recorded output; these tests read them. So the output of a CLI is followed to the agent event that it
//! becomes, without the dialects.

use crate::{log_recorder::LogRecorder, session_log::SessionLog, snapshot_text};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const CLIS: [&str; 14] = [
    "amp",
    "claude",
    "codex",
    "copilot",
    "cursor",
    "fast-agent",
    "gemini",
    "grok",
    "hermes",
    "kilo",
    "kimi",
    "opencode",
    "pi",
    "qwen",
];

fn adapters_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters")
}

/// The recordings of all CLIs as logs, by CLI and case.
pub(crate) fn load_translated() -> BTreeMap<&'static str, Vec<(String, SessionLog)>> {
    let folder = adapters_dir().join("tests/transcripts/snapshots");
    let mut all: BTreeMap<&str, Vec<(String, SessionLog)>> = BTreeMap::new();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let name = name.strip_prefix("main__transcripts__").unwrap();
        let cli = CLIS.iter().find(|it| name.starts_with(&format!("{it}-"))).unwrap();
        let case = &name[cli.len() + 1..];
        all.entry(cli).or_default().push((case.to_owned(), read_snapshot(&file, case)));
    }
    all
}

/// The messages of the adapter to its client, with the client's side as the tests of `crates/adapters` play it.
fn read_snapshot(snapshot: &Path, case: &str) -> SessionLog {
    let text = fs::read_to_string(snapshot).unwrap();
    let lines = text.lines().filter_map(|it| it.split_once(' '));
    let lines: Vec<(&str, Value)> = lines
        .filter(|(sender, _)| ["client", "stdin", "start"].contains(sender))
        .map(|(sender, message)| (sender, serde_json::from_str(message).unwrap()))
        .collect();
    let is_outcome = |message: &Value| message["id"] == "session/prompt";
    let mut turns = lines.iter().filter(|(_, it)| is_outcome(it)).count();
    let (mut recorder, mut at, mut is_running) = (LogRecorder::new(), 1_000_000, false);
    recorder.on_client_message(at, &json!({ "id": "session/new", "method": "session/new" }));
    for (sender, message) in lines {
        at += 10;
        if sender != "client" {
            if !is_running && turns != 0 {
                let prompt = json!([{ "type": "text", "text": "(prompt)" }]);
                let params = json!({ "sessionId": "session-1", "prompt": prompt });
                let frame = json!({ "id": "session/prompt", "method": "session/prompt",
                                    "params": params });
                recorder.on_client_message(at, &frame);
                is_running = true;
            }
            continue;
        }
        recorder.on_agent_message(at, &message);
        if is_outcome(&message) {
            (is_running, turns) = (false, turns - 1);
        } else if message["method"] == "session/request_permission" {
            recorder.on_client_message(at, &answer_request(&message, case));
        }
    }
    recorder.into_log()
}

fn answer_request(request: &Value, case: &str) -> Value {
    let wanted = if case.contains("den") { "reject_once" } else { "allow_once" };
    let options = request["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|it| it["kind"] == wanted).unwrap();
    let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
    json!({ "id": request["id"], "result": { "outcome": outcome } })
}

#[test]
fn every_adapter_recording_matches_its_snapshot() {
    let translated = load_translated();
    assert_eq!(translated.len(), CLIS.len(), "some snapshots are missing");
    for (cli, cases) in translated {
        let mut text = String::new();
        for (case, log) in cases {
            writeln!(text, "== {case}\n{}", snapshot_text::render_views(&log)).unwrap();
        }
        insta::assert_snapshot!(format!("cli-{cli}"), text);
    }
}

/// One recording: the output of the CLI, and the agent events it became.
pub(crate) struct CliRecording {
    pub(crate) stdout: String,
    pub(crate) events: Vec<Value>,
}

impl CliRecording {
    pub(crate) fn load(cli: &str, case: &str) -> CliRecording {
        let snapshot = format!("tests/transcripts/snapshots/main__transcripts__{cli}-{case}.snap");
        let log = read_snapshot(&adapters_dir().join(snapshot), case);
        let versions = fs::read_dir(adapters_dir().join("fixtures").join(cli)).unwrap();
        let mut stdout = versions.map(|it| it.unwrap().path().join(format!("{case}.stdout")));
        let stdout = stdout.find(|it| it.exists()).unwrap();
        CliRecording { stdout: fs::read_to_string(stdout).unwrap(), events: log.agent_events() }
    }

    /// The lines of stdout that are JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
    }

    /// The joined texts at a JSON pointer in these lines.
    pub(crate) fn joined_texts(&self, is_match: impl Fn(&Value) -> bool, pointer: &str) -> String {
        let lines = self.json_lines();
        let texts = lines.iter().filter(|it| is_match(it));
        texts.filter_map(|it| it.pointer(pointer)?.as_str()).collect()
    }

    /// The joined deltas of the events of this type.
    pub(crate) fn joined_deltas(&self, kind: &str) -> String {
        self.events_of_type(kind).iter().filter_map(|it| it["delta"].as_str()).collect()
    }

    pub(crate) fn events_of_type(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|it| it["type"] == kind).collect()
    }

    pub(crate) fn has_status(&self, label: &str) -> bool {
        self.events_of_type("status").iter().any(|it| it["label"] == label)
    }

    /// The last reported usage.
    pub(crate) fn usage(&self) -> &Value {
        &self.events_of_type("usage").last().unwrap()["usage"]
    }
}
