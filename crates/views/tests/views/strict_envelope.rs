//! A strict reader of the session protocol: an unknown kind of envelope, an unknown member or a missing one is
//! an error. Every recorded session passes it.

use crate::{
    adapters::load_translated,
    recorded::load_recordings,
    session_log::{SESSION, SessionLog},
};
use jackfield_views::{Envelope, EnvelopeView};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictEnvelope {
    id: String,
    time: u64,
    role: StrictRole,
    turn: Option<String>,
    subagent: Option<String>,
    ev: StrictEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StrictRole {
    User,
    Agent,
}

/// All kinds of the protocol; a kind without members is a struct, because serde would ignore the members of a
/// unit variant.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case", deny_unknown_fields)]
#[expect(dead_code, reason = "the members are only checked")]
enum StrictEvent {
    TurnStart {},
    TurnEnd {
        status: StrictStatus,
    },
    Text {
        text: String,
        thinking: Option<bool>,
    },
    Service {
        text: String,
    },
    ToolCallStart {
        call: String,
        name: String,
        title: String,
        description: String,
        args: Map<String, Value>,
    },
    ToolCallEnd {
        call: String,
    },
    File {
        #[serde(rename = "ref")]
        reference: String,
        name: String,
        size: u64,
    },
    Start {
        title: Option<String>,
    },
    Stop {},
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StrictStatus {
    Completed,
    Failed,
    Cancelled,
}

/// Reads an envelope as it is sent, or says what the protocol does not allow.
fn read_strictly(sent: &Value) -> Result<StrictEnvelope, String> {
    let envelope: StrictEnvelope =
        serde_json::from_value(sent.clone()).map_err(|error| error.to_string())?;
    let call = match &envelope.ev {
        StrictEvent::ToolCallStart { call, .. } | StrictEvent::ToolCallEnd { call } => Some(call),
        _ => None,
    };
    let ids = [Some(&envelope.id), envelope.turn.as_ref(), envelope.subagent.as_ref(), call];
    if let Some(id) = ids.into_iter().flatten().find(|it| !is_cuid(it)) {
        return Err(format!("`{id}` is not a cuid2"));
    }
    let is_turn_boundary =
        matches!(envelope.ev, StrictEvent::TurnStart {} | StrictEvent::TurnEnd { .. });
    if is_turn_boundary && envelope.turn.is_none() {
        return Err("the start or end of a turn has no turn".to_owned());
    }
    let is_by_user = matches!(envelope.ev, StrictEvent::Text { .. } | StrictEvent::File { .. });
    if envelope.role == StrictRole::User && !is_by_user {
        return Err("a user sends only text and files".to_owned());
    }
    Ok(envelope)
}

fn is_cuid(id: &str) -> bool {
    let is_digit = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    (2..=32).contains(&id.len()) && id.bytes().all(is_digit)
}

/// The first envelope that the reader refuses, with the reason.
fn find_refused(envelopes: &[Envelope]) -> Option<String> {
    let mut time = 0;
    envelopes.iter().find_map(|it| {
        let sent = serde_json::to_value(it).unwrap();
        match read_strictly(&sent) {
            Ok(read) if time < read.time => {
                time = read.time;
                None
            }
            Ok(_) => Some(format!("the time does not increase: {sent}")),
            Err(why) => Some(format!("{why}: {sent}")),
        }
    })
}

fn recorded_sessions() -> Vec<(String, SessionLog)> {
    let recorded = load_recordings().into_iter();
    let translated = load_translated().into_iter().map(|(name, logs)| (name.to_owned(), logs));
    let named = |(agent, logs): (String, Vec<(String, SessionLog)>)| {
        logs.into_iter().map(move |(name, log)| (format!("{agent}/{name}"), log))
    };
    recorded.chain(translated).flat_map(named).collect()
}

#[test]
fn every_recorded_session_passes_a_strict_reader() {
    let sessions = recorded_sessions();
    assert!(60 <= sessions.len(), "some recordings are missing: {}", sessions.len());
    let mut envelopes_read = 0;
    for (name, log) in &sessions {
        for view in [EnvelopeView::new(SESSION), EnvelopeView::joining_chunks(SESSION)] {
            let envelopes = log.fold_envelopes(view);
            assert_eq!(find_refused(&envelopes), None, "{name}");
            envelopes_read += envelopes.len();
        }
    }
    assert!(1000 <= envelopes_read, "{envelopes_read}");
}

#[test]
fn additions_are_what_a_strict_reader_refuses() {
    let refused = |log: &SessionLog| find_refused(&log.envelopes()).unwrap_or_default();
    let asked = SessionLog::opened().prompted("Hi").tool("c1", "ls").asked("c1");
    assert!(
        refused(&asked).contains("unknown variant `permission-request`"),
        "{}",
        refused(&asked)
    );
    let failed = SessionLog::opened().prompted("Hi").failed("no key");
    assert!(refused(&failed).contains("unknown field `error`"), "{}", refused(&failed));
    let answer =
        json!({ "stopReason": "end_turn", "usage": { "inputTokens": 3, "outputTokens": 4 } });
    let used = SessionLog::opened().prompted("Hi").ended("stopped", &answer);
    assert!(refused(&used).contains("unknown field `usage`"), "{}", refused(&used));
    for log in [&asked, &failed, &used] {
        assert_eq!(find_refused(&log.fold_envelopes(EnvelopeView::new(SESSION))), None);
    }
}

#[test]
fn permission_requests_and_responses_add_nothing_by_default() {
    let log =
        SessionLog::opened().prompted("Hi").text("I ").asked("c1").answered("yes").text("will");
    let kinds = |view| -> Vec<Value> {
        let envelopes = log.fold_envelopes(view);
        envelopes.iter().map(|it| serde_json::to_value(&it.ev).unwrap()["t"].take()).collect()
    };
    assert_eq!(kinds(EnvelopeView::new(SESSION)), ["text", "turn-start", "text", "text"]);
    assert_eq!(kinds(EnvelopeView::joining_chunks(SESSION)), ["text", "turn-start", "text"]);
}
