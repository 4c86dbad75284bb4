//! Foreign CLIs, retold. Their lines became ACP in `crates/adapters`, whose snapshots are what the real
//! dialects made of the recordings: this reads those on. So a line of a CLI is followed to the event
//! that it becomes, and the views need not know the dialects.

use crate::{log::Log, scribe::Scribe, shown};
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

fn adapt() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters")
}

/// The recordings of all CLIs as logs, by CLI and case.
pub(crate) fn translated() -> BTreeMap<&'static str, Vec<(String, Log)>> {
    let folder = adapt().join("tests/transcripts/snapshots");
    let mut all: BTreeMap<&str, Vec<(String, Log)>> = BTreeMap::new();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let name = name.strip_prefix("main__transcripts__").unwrap();
        let cli = CLIS.iter().find(|it| name.starts_with(&format!("{it}-"))).unwrap();
        let case = &name[cli.len() + 1..];
        all.entry(cli).or_default().push((case.to_owned(), read(&file, case)));
    }
    all
}

/// What the adapter told its client, with the client's part as `crates/adapters` plays it.
fn read(snapshot: &Path, case: &str) -> Log {
    let text = fs::read_to_string(snapshot).unwrap();
    let lines = text.lines().filter_map(|it| it.split_once(' '));
    let lines: Vec<(&str, Value)> = lines
        .filter(|(who, _)| ["client", "stdin", "start"].contains(who))
        .map(|(who, what)| (who, serde_json::from_str(what).unwrap()))
        .collect();
    let is_outcome = |what: &Value| what["id"] == "session/prompt";
    let mut turns = lines.iter().filter(|(_, it)| is_outcome(it)).count();
    let (mut scribe, mut at, mut runs) = (Scribe::new(), 1_000_000, false);
    scribe.client_says(at, &json!({ "id": "session/new", "method": "session/new" }));
    for (who, what) in lines {
        at += 10;
        if who != "client" {
            if !runs && turns != 0 {
                let prompt = json!([{ "type": "text", "text": "(prompt)" }]);
                let params = json!({ "sessionId": "session-1", "prompt": prompt });
                let frame = json!({ "id": "session/prompt", "method": "session/prompt",
                                    "params": params });
                scribe.client_says(at, &frame);
                runs = true;
            }
            continue;
        }
        scribe.agent_says(at, &what);
        if is_outcome(&what) {
            (runs, turns) = (false, turns - 1);
        } else if what["method"] == "session/request_permission" {
            scribe.client_says(at, &answer(&what, case));
        }
    }
    scribe.into_log()
}

fn answer(ask: &Value, case: &str) -> Value {
    let wanted = if case.contains("den") { "reject_once" } else { "allow_once" };
    let options = ask["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|it| it["kind"] == wanted).unwrap();
    let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
    json!({ "id": ask["id"], "result": { "outcome": outcome } })
}

#[test]
fn what_every_foreign_cli_printed_is_retold() {
    let translated = translated();
    assert_eq!(translated.len(), CLIS.len(), "the snapshots are there");
    for (cli, cases) in translated {
        let mut shown = String::new();
        for (case, log) in cases {
            writeln!(shown, "== {case}\n{}", shown::both(&log)).unwrap();
        }
        insta::assert_snapshot!(format!("foreign-{cli}"), shown);
    }
}

/// One recording: what the CLI printed, line by line, and the events it became.
pub(crate) struct Followed {
    pub(crate) printed: String,
    pub(crate) events: Vec<Value>,
}

impl Followed {
    pub(crate) fn of(cli: &str, case: &str) -> Followed {
        let snapshot = format!("tests/transcripts/snapshots/main__transcripts__{cli}-{case}.snap");
        let log = read(&adapt().join(snapshot), case);
        let versions = fs::read_dir(adapt().join("fixtures").join(cli)).unwrap();
        let mut stdout = versions.map(|it| it.unwrap().path().join(format!("{case}.stdout")));
        let stdout = stdout.find(|it| it.exists()).unwrap();
        Followed { printed: fs::read_to_string(stdout).unwrap(), events: log.events() }
    }

    /// The lines that are JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.printed.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
    }

    /// The texts at a place of those lines, as one.
    pub(crate) fn texts(&self, which: impl Fn(&Value) -> bool, place: &str) -> String {
        let lines = self.lines();
        let texts = lines.iter().filter(|it| which(it));
        texts.filter_map(|it| it.pointer(place)?.as_str()).collect()
    }

    /// All pieces of a kind of event, as one.
    pub(crate) fn deltas(&self, kind: &str) -> String {
        self.all(kind).iter().filter_map(|it| it["delta"].as_str()).collect()
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|it| it["type"] == kind).collect()
    }

    pub(crate) fn has_status(&self, label: &str) -> bool {
        self.all("status").iter().any(|it| it["label"] == label)
    }

    /// The last usage, without what is not there.
    pub(crate) fn usage(&self) -> &Value {
        &self.all("usage").last().unwrap()["usage"]
    }
}
