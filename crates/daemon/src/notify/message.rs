//! What is told: one JSON object about one event of one session.

use super::settings::Event;
use jackfield_events::SessionSummary;
use jackfield_hub::{Note, SessionId, Time, rfc3339};
use jackfield_protocol::redact::Redactor;
use serde_json::{Value, json};

/// The message, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) event: Event,
    pub(super) session: SessionId,
    /// On one line.
    pub(super) json: String,
}

/// The session that a note is about, if people are told of such notes.
pub(super) fn about(note: &Note) -> Option<(Event, &SessionId)> {
    match note {
        Note::AskOpened { session, .. } => Some((Event::NeedsYou, session)),
        Note::TurnEnded { reason: Some(reason), .. } if reason == "cancelled" => None,
        Note::TurnEnded { session, how: "stopped", .. } => Some((Event::Done, session)),
        Note::TurnEnded { session, .. } => Some((Event::Failed, session)),
        _ => None,
    }
}

impl Message {
    pub(super) fn new(
        note: &Note,
        state: Option<&SessionSummary>,
        now: Time,
        redactor: &Redactor,
    ) -> Option<Message> {
        let (event, session) = about(note)?;
        let shown = |text: &str| redactor.redact(text);
        let title = state.and_then(|it| it.title.as_deref().or(it.hint.as_deref()));
        let mut json = json!({
            "event": event.as_str(),
            "sessionId": &**session,
            "agent": state.map(|it| &*it.agent),
            "title": title.map(shown),
            "cwd": state.map(|it| shown(&it.cwd)),
        });
        match note {
            Note::AskOpened { ask, what, call, .. } => {
                json["ask"] = (*ask).into();
                json["what"] = shown(what).into();
                let call = call.as_ref().map(|it| shown(it.as_str()));
                if let Some(call) = call.and_then(|it| serde_json::from_str(&it).ok()) {
                    json["call"] = call;
                }
            }
            Note::TurnEnded { turn, how, reason, .. } => {
                json["turn"] = (*turn).into();
                let outcome = reason.as_deref().map_or_else(|| (*how).to_owned(), shown);
                json["outcome"] = Value::String(outcome);
            }
            _ => {}
        }
        json["at"] = rfc3339(now.0).into();
        Some(Message { event, session: session.clone(), json: json.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_events::RawJson;

    fn message(note: &Note) -> Option<Value> {
        let state = SessionSummary {
            agent: "claude".into(),
            cwd: "/work".into(),
            hint: Some("use sk-proj-12345678 and s3cr3t-value".into()),
            ..SessionSummary::default()
        };
        let redactor = Redactor::new(&[("A_KEY".to_owned(), "s3cr3t-value".to_owned())]);
        let message = Message::new(note, Some(&state), Time(0), &redactor)?;
        assert!(!message.json.contains('\n'));
        Some(serde_json::from_str(&message.json).unwrap())
    }

    fn ended(how: &'static str, reason: Option<&str>) -> Note {
        Note::TurnEnded { session: "s-1".into(), turn: 3, how, reason: reason.map(str::to_owned) }
    }

    #[test]
    fn an_ask_names_what_is_asked_and_secrets_are_hidden() {
        let what = "run curl -H 'Authorization: Bearer abc.def'\nnow".to_owned();
        let call = Some(RawJson::trusted(r#"{"commands":["rm s3cr3t-value"]}"#));
        let note = Note::AskOpened { session: "s-1".into(), ask: 2, what, call };
        let expected = json!({
            "event": "needs_you", "sessionId": "s-1", "agent": "claude",
            "title": "use sk-*** and ***", "cwd": "/work", "ask": 2,
            "what": "run curl -H 'Authorization: Bearer ***'\nnow",
            "call": { "commands": ["rm ***"] }, "at": "1970-01-01T00:00:00.000Z",
        });
        assert_eq!(message(&note), Some(expected));
    }

    #[test]
    fn a_turn_is_done_or_failed_and_a_cancelled_one_is_no_news() {
        let event = |note: &Note| {
            message(note).map(|it| format!("{} {}", it["event"], it["outcome"]).replace('"', ""))
        };
        assert_eq!(event(&ended("stopped", Some("end_turn"))).as_deref(), Some("done end_turn"));
        assert_eq!(event(&ended("failed", None)).as_deref(), Some("failed failed"));
        assert_eq!(event(&ended("interrupted", None)).as_deref(), Some("failed interrupted"));
        assert_eq!(event(&ended("stopped", Some("cancelled"))), None);
        assert_eq!(event(&Note::TurnStarted { session: "s-1".into(), turn: 3 }), None);
    }
}
