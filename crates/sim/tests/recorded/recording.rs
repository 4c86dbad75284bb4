//! A recording: the messages between one client and one real agent, line by line.

use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// The folder of the recordings, with one folder per agent.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageSide {
    Client,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request,
    Notification,
    Answer,
}

/// One message.
#[derive(Debug)]
pub(crate) struct RecordedLine {
    /// File and line number, for error messages.
    pub(crate) location: String,
    /// Milliseconds since the agent was started.
    pub(crate) at: u64,
    pub(crate) from: MessageSide,
    pub(crate) kind: MessageKind,
    /// The recorded text, to the byte.
    pub(crate) text: String,
    pub(crate) message: Value,
}

impl RecordedLine {
    fn new(location: String, line: &str) -> Option<RecordedLine> {
        let row: BTreeMap<&str, &RawValue> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{location}: {error}"));
        let Some(message) = row.get("msg") else {
            assert!(row.contains_key("eof"), "{location}: what an agent prints is a message");
            return None;
        };
        let text = message.get().to_owned();
        let message: Value = serde_json::from_str(&text).expect("a raw value is a value");
        let kind = match (message.get("method"), message.get("id")) {
            (Some(_), Some(_)) => MessageKind::Request,
            (Some(_), None) => MessageKind::Notification,
            (None, _) => MessageKind::Answer,
        };
        let from = if row["dir"].get() == r#""client""# {
            MessageSide::Client
        } else {
            MessageSide::Agent
        };
        let at = row["t"].get().parse().expect("milliseconds");
        Some(RecordedLine { location, at, from, kind, text, message })
    }

    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// The id as it was spelled.
    pub(crate) fn id(&self) -> String {
        self.message["id"].to_string()
    }

    /// The kind of a `session/update`, or an empty text.
    pub(crate) fn update(&self) -> &str {
        self.message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.message["params"]["sessionId"].as_str()
    }

    /// The text with another id.
    pub(crate) fn with_id(&self, id: &str) -> String {
        with_id(&self.text, &self.id(), id)
    }

    /// The text with `to` in location of the session id.
    pub(crate) fn with_session(&self, to: &str) -> String {
        match self.session() {
            Some(from) => with_session(&self.text, from, to),
            None => self.text.clone(),
        }
    }
}

/// Recorded objects have their id near the start, except for responses that have it at the very end.
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
    assert_eq!(text.matches(&from).count(), 1, "the session id is ambiguous: {text}");
    text.replacen(&from, &format!(r#""sessionId": "{to}""#), 1)
}

/// A recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) lines: Vec<RecordedLine>,
}

impl Recording {
    /// Reads a recording by its name: `goose/main`.
    pub(crate) fn read(name: &str) -> Recording {
        let path = folder().join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let numbered = (1..).zip(text.lines());
        let lines = numbered
            .filter_map(|(number, line)| RecordedLine::new(format!("{name}:{number}"), line));
        Recording { lines: lines.collect() }
    }

    /// The agent's session id, if it ever opened a session.
    pub(crate) fn session(&self) -> Option<String> {
        let opened = self.lines.iter().find_map(|it| it.message["result"]["sessionId"].as_str());
        let named = || self.lines.iter().find_map(RecordedLine::session);
        opened.or_else(named).map(str::to_owned)
    }

    pub(crate) fn agent(&self) -> impl Iterator<Item = &RecordedLine> {
        self.lines.iter().filter(|it| it.from == MessageSide::Agent)
    }
}
