//! The notification: one JSON object about one event of a session.

use super::settings::NotifyEvent;
use jackfield_events::SessionSummary;
use jackfield_hub::{Note, SessionId, Time, rfc3339, tenant_of};
use jackfield_protocol::redact::SecretRedactor;
use serde_json::{Value, json};

/// The notification, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserNotification {
    pub(super) event: NotifyEvent,
    pub(super) session: SessionId,
    /// The tenant of the session.
    pub(super) tenant: Option<String>,
    /// On one line.
    pub(super) json: String,
}

/// The event and session of a note, if it leads to a notification.
pub(super) fn event_of_note(note: &Note) -> Option<(NotifyEvent, &SessionId)> {
    match note {
        Note::AskOpened { session, .. } => Some((NotifyEvent::NeedsYou, session)),
        Note::TurnEnded { reason: Some(reason), .. } if reason == "cancelled" => None,
        Note::TurnEnded { session, how: "stopped", .. } => Some((NotifyEvent::Done, session)),
        Note::TurnEnded { session, .. } => Some((NotifyEvent::Failed, session)),
        _ => None,
    }
}

impl UserNotification {
    pub(super) fn new(
        note: &Note,
        state: Option<&SessionSummary>,
        now: Time,
        redactor: &SecretRedactor,
    ) -> Option<UserNotification> {
        let (event, session) = event_of_note(note)?;
        let redact = |text: &str| redactor.redact(text);
        let title = state.and_then(|it| it.title.as_deref().or(it.hint.as_deref()));
        let mut json = json!({
            "event": event.as_str(),
            "sessionId": &**session,
            "agent": state.map(|it| &*it.agent),
            "title": title.map(redact),
            "cwd": state.map(|it| redact(&it.cwd)),
        });
        match note {
            Note::AskOpened { ask, what, call, .. } => {
                json["ask"] = (*ask).into();
                json["what"] = redact(what).into();
                let call = call.as_ref().map(|it| redact(it.as_str()));
                if let Some(call) = call.and_then(|it| serde_json::from_str(&it).ok()) {
                    json["call"] = call;
                }
            }
            Note::TurnEnded { turn, how, reason, .. } => {
                json["turn"] = (*turn).into();
                let outcome = reason.as_deref().map_or_else(|| (*how).to_owned(), redact);
                json["outcome"] = Value::String(outcome);
            }
            _ => {}
        }
        json["at"] = rfc3339(now.0).into();
        let tenant = tenant_of(session).map(str::to_owned);
        Some(UserNotification { event, session: session.clone(), tenant, json: json.to_string() })
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
        let redactor = SecretRedactor::new(&[("A_KEY".to_owned(), "s3cr3t-value".to_owned())]);
        let message = UserNotification::new(note, Some(&state), Time(0), &redactor)?;
        assert!(!message.json.contains('\n'));
        Some(serde_json::from_str(&message.json).unwrap())
    }

    fn turn_ended(how: &'static str, reason: Option<&str>) -> Note {
        Note::TurnEnded { session: "s-1".into(), turn: 3, how, reason: reason.map(str::to_owned) }
    }

    #[test]
    fn request_notification_has_details_without_secrets() {
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
    fn cancelled_turn_sends_no_notification() {
        let event = |note: &Note| {
            message(note).map(|it| format!("{} {}", it["event"], it["outcome"]).replace('"', ""))
        };
        assert_eq!(
            event(&turn_ended("stopped", Some("end_turn"))).as_deref(),
            Some("done end_turn")
        );
        assert_eq!(event(&turn_ended("failed", None)).as_deref(), Some("failed failed"));
        assert_eq!(event(&turn_ended("interrupted", None)).as_deref(), Some("failed interrupted"));
        assert_eq!(event(&turn_ended("stopped", Some("cancelled"))), None);
        assert_eq!(event(&Note::TurnStarted { session: "s-1".into(), turn: 3 }), None);
    }
}
