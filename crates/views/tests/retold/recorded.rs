//! What real agents said, retold: every recording, in both views, kept as snapshots that people
//! have read. `main` is a session from its beginning; `load` and `resume` begin in the middle.

use crate::{log::Log, scribe::Scribe, shown};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The recordings of conversations in ACP, by agent.
pub(crate) fn tapes() -> Vec<(String, Vec<(String, Log)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let agents = entries(&root).into_iter().filter(|it| it.is_dir());
    agents.map(|it| (stem(&it), of_agent(&it))).collect()
}

fn of_agent(folder: &Path) -> Vec<(String, Log)> {
    let tapes = entries(folder).into_iter();
    let tapes = tapes.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    tapes.map(|it| (stem(&it), read(&it))).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    all.sort();
    all
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn read(tape: &Path) -> Log {
    let mut scribe = Scribe::new();
    for line in fs::read_to_string(tape).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (at, message) = (1_000_000 + line["t"].as_u64().unwrap(), &line["msg"]);
        if line["dir"] == "client" {
            scribe.client_says(at, message);
        } else if message.is_object() {
            scribe.agent_says(at, message);
        }
    }
    scribe.into_log()
}

#[test]
fn what_every_agent_said_is_retold() {
    let tapes = tapes();
    assert!(20 <= tapes.len(), "the recordings are there");
    for (agent, tapes) in tapes {
        let mut shown = String::new();
        for (name, log) in tapes {
            writeln!(shown, "== {name}\n{}", shown::both(&log)).unwrap();
        }
        insta::assert_snapshot!(format!("acp-{agent}"), shown);
    }
}
