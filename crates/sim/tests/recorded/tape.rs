//! A recording: what one client and one real agent said to each other, line by line.

use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Where the recordings are, one folder an agent.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Answer,
}

/// One message.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its file and its number in it, for complaints.
    pub(crate) place: String,
    /// Milliseconds since the agent was started.
    pub(crate) at: u64,
    pub(crate) from: Side,
    pub(crate) kind: Kind,
    /// As it was recorded, to the byte.
    pub(crate) text: String,
    pub(crate) said: Value,
}

impl Line {
    fn new(place: String, line: &str) -> Option<Line> {
        let row: BTreeMap<&str, &RawValue> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        let Some(message) = row.get("msg") else {
            assert!(row.contains_key("eof"), "{place}: what an agent prints is a message");
            return None;
        };
        let text = message.get().to_owned();
        let said: Value = serde_json::from_str(&text).expect("a raw value is a value");
        let kind = match (said.get("method"), said.get("id")) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) => Kind::Answer,
        };
        let from = if row["dir"].get() == r#""client""# { Side::Client } else { Side::Agent };
        let at = row["t"].get().parse().expect("milliseconds");
        Some(Line { place, at, from, kind, text, said })
    }

    pub(crate) fn method(&self) -> &str {
        self.said["method"].as_str().unwrap_or_default()
    }

    /// The id, spelled as it was.
    pub(crate) fn id(&self) -> String {
        self.said["id"].to_string()
    }

    /// Which kind of `session/update` it is, if it is one.
    pub(crate) fn update(&self) -> &str {
        self.said["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.said["params"]["sessionId"].as_str()
    }

    /// The text with another id.
    pub(crate) fn with_id(&self, id: &str) -> String {
        with_id(&self.text, &self.id(), id)
    }

    /// The text with `to` for the session it names.
    pub(crate) fn with_session(&self, to: &str) -> String {
        match self.session() {
            Some(from) => with_session(&self.text, from, to),
            None => self.text.clone(),
        }
    }
}

/// Recorded objects have their id near the front, save for answers that have it at the very end.
pub(crate) fn with_id(text: &str, from: &str, to: &str) -> String {
    let last = format!(r#""id": {from}}}"#);
    if let Some(head) = text.strip_suffix(&last) {
        return format!(r#"{head}"id": {to}}}"#);
    }
    let first = format!(r#""id": {from},"#);
    assert!(text.contains(&first), "no id {from} in {text}");
    text.replacen(&first, &format!(r#""id": {to},"#), 1)
}

pub(crate) fn with_session(text: &str, from: &str, to: &str) -> String {
    let from = format!(r#""sessionId": "{from}""#);
    assert_eq!(text.matches(&from).count(), 1, "which one is the session's name? {text}");
    text.replacen(&from, &format!(r#""sessionId": "{to}""#), 1)
}

/// A recording.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) lines: Vec<Line>,
}

impl Tape {
    /// Reads a recording by its name: `goose/main`.
    pub(crate) fn read(name: &str) -> Tape {
        let path = folder().join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let numbered = (1..).zip(text.lines());
        let lines =
            numbered.filter_map(|(number, line)| Line::new(format!("{name}:{number}"), line));
        Tape { lines: lines.collect() }
    }

    /// The agent's own name of the session, if it ever opened one.
    pub(crate) fn session(&self) -> Option<String> {
        let opened = self.lines.iter().find_map(|it| it.said["result"]["sessionId"].as_str());
        let named = || self.lines.iter().find_map(Line::session);
        opened.or_else(named).map(str::to_owned)
    }

    pub(crate) fn agent(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|it| it.from == Side::Agent)
    }
}
