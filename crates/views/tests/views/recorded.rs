//! Snapshots of both views for every recorded agent. `main` is a session from its start; `load` and
//! `resume` start in the middle.

use crate::{log_recorder::LogRecorder, session_log::SessionLog, snapshot_text};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The recorded ACP sessions, by agent.
pub(crate) fn load_recordings() -> Vec<(String, Vec<(String, SessionLog)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let agents = list_dir(&root).into_iter().filter(|it| it.is_dir());
    agents.map(|it| (stem(&it), load_agent(&it))).collect()
}

fn load_agent(folder: &Path) -> Vec<(String, SessionLog)> {
    let recordings = list_dir(folder).into_iter();
    let recordings = recordings.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    recordings.map(|it| (stem(&it), read_recording(&it))).collect()
}

fn list_dir(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    all.sort();
    all
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn read_recording(path: &Path) -> SessionLog {
    let mut recorder = LogRecorder::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (at, message) = (1_000_000 + line["t"].as_u64().unwrap(), &line["msg"]);
        if line["dir"] == "client" {
            recorder.on_client_message(at, message);
        } else if message.is_object() {
            recorder.on_agent_message(at, message);
        }
    }
    recorder.into_log()
}

#[test]
fn every_recorded_session_matches_its_snapshot() {
    let recordings = load_recordings();
    assert!(20 <= recordings.len(), "some recordings are missing");
    for (agent, recordings) in recordings {
        let mut text = String::new();
        for (name, log) in recordings {
            writeln!(text, "== {name}\n{}", snapshot_text::render_views(&log)).unwrap();
        }
        insta::assert_snapshot!(format!("acp-{agent}"), text);
    }
}
