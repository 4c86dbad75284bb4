//! Reads the log of a session: the existing events, then new ones.

use crate::{EventLine, HubClientError, HubResponse};
use serde_json::{Value, json};

/// The params of `_jackfield/attach` for a client that reads the log after this event and takes no
/// part in the session.
pub fn attach_params(session: &str, after: u64) -> Value {
    json!({ "sessionId": session, "after": after, "observe": true, "facts": true })
}

/// Checks that the events of one session arrive in order and without gaps.
#[derive(Debug)]
pub struct SessionReplay {
    session: String,
    /// The id of the attach request. Its response follows the existing events.
    attach_id: u64,
    /// The event after which the replay starts.
    after: u64,
    /// The sequence number of the next event, once one has arrived.
    next: Option<u64>,
}

impl SessionReplay {
    pub fn new(session: &str, after: u64, attach_id: u64) -> SessionReplay {
        SessionReplay { session: session.to_owned(), attach_id, after, next: None }
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// Accepts an event; `None` if it belongs to another session.
    pub fn on_event(&mut self, event: EventLine) -> Result<Option<EventLine>, HubClientError> {
        if !event.belongs_to(&self.session) {
            return Ok(None);
        }
        // A start position after the end of the log means the end.
        let expected = self.next.unwrap_or(event.seq.min(self.after.saturating_add(1)));
        if event.seq != expected {
            return Err(self.missing_event(expected));
        }
        self.next = Some(event.seq + 1);
        Ok(Some(event))
    }

    /// Accepts a response. Returns the result of the attach request, after which new events follow;
    /// `None` if it is the response to another request.
    pub fn on_response(&mut self, response: HubResponse) -> Result<Option<Value>, HubClientError> {
        let is_attach = response.id == self.attach_id;
        let result = response.into_result()?;
        if !is_attach {
            return Ok(None);
        }
        let next = self.next.unwrap_or(self.after.saturating_add(1));
        if next <= result["head"].as_u64().unwrap_or(0) {
            return Err(self.missing_event(next));
        }
        Ok(Some(result))
    }

    fn missing_event(&self, seq: u64) -> HubClientError {
        HubClientError::MissingEvent { session: self.session.clone(), seq }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HubMessage;
    use jackfield_protocol::{Fault, Frame, acp::Method};

    fn event(session: &str, seq: u64) -> EventLine {
        let params = json!({ "sessionId": session, "seq": seq, "at": 1, "is": "said" });
        let frame = Frame::notification(Method::ControlEvent.name(), &params.to_string());
        EventLine::parse(frame.bytes()).unwrap()
    }

    fn response(frame: Frame) -> HubResponse {
        let message = HubMessage::parse(frame.into_bytes());
        let Some(HubMessage::Response(response)) = message else { panic!("{message:?}") };
        response
    }

    fn attached_at(head: u64) -> HubResponse {
        response(Frame::result_for("1", &json!({ "head": head }).to_string()))
    }

    fn seq_of(replay: &mut SessionReplay, session: &str, seq: u64) -> Option<u64> {
        replay.on_event(event(session, seq)).unwrap().map(|it| it.seq)
    }

    fn error_text<T: std::fmt::Debug>(result: Result<T, HubClientError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn existing_events_are_followed_by_the_response_and_new_events() {
        let mut replay = SessionReplay::new("s-1", 2, 1);
        assert_eq!(seq_of(&mut replay, "s-1", 3), Some(3));
        assert_eq!(seq_of(&mut replay, "s-2", 9), None);
        assert_eq!(seq_of(&mut replay, "s-1", 4), Some(4));
        let other = response(Frame::result_for("2", "{}"));
        assert!(replay.on_response(other).unwrap().is_none());
        assert_eq!(replay.on_response(attached_at(4)).unwrap(), Some(json!({ "head": 4 })));
        assert_eq!(seq_of(&mut replay, "s-1", 5), Some(5));
    }

    #[test]
    fn missing_event_is_an_error() {
        let mut replay = SessionReplay::new("s-1", 0, 1);
        assert_eq!(error_text(replay.on_event(event("s-1", 2))), "event 1 of s-1 is missing");
        let mut replay = SessionReplay::new("s-1", 0, 1);
        assert_eq!(seq_of(&mut replay, "s-1", 1), Some(1));
        assert_eq!(error_text(replay.on_response(attached_at(2))), "event 2 of s-1 is missing");
        let mut replay = SessionReplay::new("s-1", 6, 1);
        assert_eq!(error_text(replay.on_response(attached_at(7))), "event 7 of s-1 is missing");
    }

    #[test]
    fn start_after_the_end_is_the_end() {
        let mut replay = SessionReplay::new("s-1", u64::MAX, 1);
        assert!(replay.on_response(attached_at(4)).unwrap().is_some());
        assert_eq!(seq_of(&mut replay, "s-1", 5), Some(5));
        assert_eq!(error_text(replay.on_event(event("s-1", 7))), "event 6 of s-1 is missing");
    }

    #[test]
    fn refused_request_ends_the_replay() {
        let mut replay = SessionReplay::new("s-1", 0, 1);
        let refused = Frame::error_for("2", &Fault::SessionNotFound { session: "s-1".into() });
        let error = replay.on_response(response(refused)).unwrap_err();
        assert_eq!(
            (error.error_name(), error.to_string().as_str()),
            ("session_not_found", "no session `s-1`")
        );
    }
}
