//! The `sessionId` beside `params` with which the clients of a bus name a conversation.
//!
//! A bus routes by it, and delivers a line of the agent only if the line has it too. The agent has
//! session ids of its own, so this module remembers which outer id belongs to which request and to
//! which session.

use jackfield_protocol::{Frame, Kind, acp::Method};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct OuterSessions {
    /// The outer id of each pending request, by the id of the request.
    requests: HashMap<String, String>,
    /// The outer id of the last request about each session of the agent.
    sessions: HashMap<String, String>,
    /// The prompt that runs in each session of the agent. Updates belong to it, also
    /// while other requests about the session are pending.
    prompts: HashMap<String, RunningPrompt>,
}

#[derive(Debug)]
struct RunningPrompt {
    request: String,
    outer: String,
}

impl OuterSessions {
    /// Whether no line of the agent needs an outer id.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.sessions.is_empty()
    }

    /// Remembers the outer id of a line of the client.
    pub(super) fn record_incoming(&mut self, frame: &Frame) {
        let session = frame.session_id();
        let Some(outer) = frame.outer_session_id() else {
            if let Some(session) = session {
                self.sessions.remove(&*session);
            }
            return;
        };
        let outer = outer.into_owned();
        if let Some(session) = &session {
            self.sessions.insert(session.to_string(), outer.clone());
        }
        let Some(id) = frame.id().filter(|_| frame.kind() == Kind::Request) else { return };
        if let Some(session) = session
            && frame.is_method(Method::SessionPrompt)
        {
            // A second prompt is refused while the first one runs.
            let prompt = RunningPrompt { request: id.to_owned(), outer: outer.clone() };
            self.prompts.entry(session.into_owned()).or_insert(prompt);
        }
        self.requests.insert(id.to_owned(), outer);
    }

    /// Returns the outer id for a line of the agent.
    pub(super) fn find_outgoing(&mut self, frame: &Frame) -> Option<String> {
        if frame.kind() == Kind::Response {
            let id = frame.id()?;
            let outer = self.requests.remove(id)?;
            self.prompts.retain(|_, it| it.request != id);
            if let Some(opened) = frame.session_id() {
                self.sessions.insert(opened.into_owned(), outer.clone());
            }
            return Some(outer);
        }
        let session = frame.session_id()?;
        let prompt = self.prompts.get(&*session).map(|it| &it.outer);
        prompt.or_else(|| self.sessions.get(&*session)).cloned()
    }
}

/// Adds the outer id to a line, which is a JSON object with at least one member.
pub(super) fn with_outer_id(line: &str, outer: &str) -> Option<String> {
    let members = line.trim_end().strip_suffix('}')?;
    Some(format!("{members},\"sessionId\":{}}}", serde_json::Value::from(outer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Frame {
        Frame::parse_str(text).unwrap()
    }

    fn incoming(outer: &mut OuterSessions, text: &str) {
        outer.record_incoming(&parse(text));
    }

    fn outgoing(outer: &mut OuterSessions, text: &str) -> Option<String> {
        outer.find_outgoing(&parse(text))
    }

    const UPDATE: &str = r#"{"method":"session/update","params":{"sessionId":"c-1"}}"#;

    /// A client of a bus has opened the session `c-1`.
    fn opened() -> OuterSessions {
        let mut outer = OuterSessions::default();
        incoming(&mut outer, r#"{"id":1,"method":"session/new","sessionId":"bus-a","params":{}}"#);
        let answer = r#"{"id":1,"result":{"sessionId":"c-1"}}"#;
        assert_eq!(outgoing(&mut outer, answer).as_deref(), Some("bus-a"));
        assert_eq!(outgoing(&mut outer, answer), None, "it was answered");
        outer
    }

    #[test]
    fn every_line_about_an_opened_session_has_the_outer_id() {
        let mut outer = opened();
        for line in [
            UPDATE,
            r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"c-1"}}"#,
        ] {
            assert_eq!(outgoing(&mut outer, line).as_deref(), Some("bus-a"), "{line}");
        }
        assert_eq!(outgoing(&mut outer, &UPDATE.replace("c-1", "c-2")), None);
    }

    #[test]
    fn updates_belong_to_the_prompt_that_runs() {
        let mut outer = opened();
        let about = r#""params":{"sessionId":"c-1"}"#;
        let prompt = |id: u8, bus: &str| {
            format!(r#"{{"id":{id},"method":"session/prompt","sessionId":"{bus}",{about}}}"#)
        };
        incoming(&mut outer, &prompt(2, "bus-b"));
        incoming(&mut outer, &prompt(3, "bus-c"));
        let refused = r#"{"id":3,"error":{"code":-32600,"message":"busy"}}"#;
        assert_eq!(outgoing(&mut outer, refused).as_deref(), Some("bus-c"));
        assert_eq!(outgoing(&mut outer, UPDATE).as_deref(), Some("bus-b"));
        let answer = r#"{"id":2,"result":{"stopReason":"end_turn"}}"#;
        assert_eq!(outgoing(&mut outer, answer).as_deref(), Some("bus-b"));
        assert_eq!(outgoing(&mut outer, UPDATE).as_deref(), Some("bus-c"));
    }

    #[test]
    fn request_without_an_outer_id_is_answered_without_one() {
        let mut outer = opened();
        let mode = r#"{"id":4,"method":"session/set_mode","params":{"sessionId":"c-1"}}"#;
        incoming(&mut outer, mode);
        assert_eq!(outgoing(&mut outer, r#"{"id":4,"result":{}}"#), None);
        assert_eq!(outgoing(&mut outer, UPDATE), None);
    }

    #[test]
    fn outer_id_is_added_as_the_last_member() {
        let line = with_outer_id(r#"{"id":1,"result":{}}"#, "a\"b").unwrap();
        assert_eq!(line, r#"{"id":1,"result":{},"sessionId":"a\"b"}"#);
    }
}
