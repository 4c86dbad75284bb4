//! One event of a session's log, as the hub sends it to clients that attach with `facts`.

use bytes::Bytes;
use jackfield_events::{EventKind, ReceivedEvent};
use jackfield_protocol::acp::Method;
use memchr::memmem;
use serde_json::Value;

/// An event line is this, the method, the params and a brace.
const LINE_START: &[u8] = br#"{"jsonrpc":"2.0","method":""#;
const PARAMS_MEMBER: &[u8] = br#"","params":"#;
const SESSION_MEMBER: &[u8] = br#"{"sessionId":""#;
const SEQ_MEMBER: &[u8] = br#","seq":"#;
const KIND_MEMBER: &[u8] = br#","is":""#;

/// An event as text. Most events are only counted or forwarded, and some nest too deep to be parsed.
#[derive(Debug, Clone)]
pub struct EventLine {
    /// `{"sessionId":…,"seq":7,"at":…,"is":…,…}`
    params: Bytes,
    /// The offset of the first member after the session id.
    members_start: usize,
    pub seq: u64,
}

impl EventLine {
    /// Parses a line of the hub; `None` if it is not an event.
    pub fn parse(line: &Bytes) -> Option<EventLine> {
        let rest = line.strip_prefix(LINE_START)?;
        let rest = rest.strip_prefix(Method::ControlEvent.name().as_bytes())?;
        let params = rest.strip_prefix(PARAMS_MEMBER)?.strip_suffix(b"}")?;
        params.strip_prefix(SESSION_MEMBER)?;
        let comma = memmem::find(params, SEQ_MEMBER)?;
        let digits = &params[comma + SEQ_MEMBER.len()..];
        let digits = &digits[..digits.iter().position(|it| !it.is_ascii_digit())?];
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(EventLine { params: line.slice_ref(params), members_start: comma + 1, seq })
    }

    /// Whether the event belongs to this session.
    pub fn belongs_to(&self, session: &str) -> bool {
        // Ids need no escapes. Quotes stand around them, and a comma follows.
        let id = self.params.get(SESSION_MEMBER.len()..self.members_start - 2);
        id == Some(session.as_bytes())
    }

    /// The kind of the event, read without parsing the rest; `None` for an unknown kind of a newer daemon.
    pub fn kind(&self) -> Option<EventKind> {
        let rest = &self.params[self.members_start..];
        let rest = &rest[memmem::find(rest, KIND_MEMBER)? + KIND_MEMBER.len()..];
        let name = &rest[..memchr::memchr(b'"', rest)?];
        EventKind::from_name(std::str::from_utf8(name).ok()?)
    }

    /// Parses the event; `None` if it nests too deep or is of an unknown kind of a newer daemon.
    pub fn to_event(&self) -> Option<ReceivedEvent> {
        ReceivedEvent::from_value(self.to_value()?).ok()
    }

    /// Whether the event contains this text anywhere.
    pub fn contains(&self, text: &str) -> bool {
        memmem::find(&self.params, text.as_bytes()).is_some()
    }

    /// The event with its session id, as JSON.
    pub fn json(&self) -> &[u8] {
        &self.params
    }

    /// The event as the journal stores it, with its sequence number first.
    pub fn to_journal_text(&self) -> String {
        format!("{{{}", String::from_utf8_lossy(&self.params[self.members_start..]))
    }

    /// The event with its session id; `None` if it nests too deep to be parsed.
    pub fn to_value(&self) -> Option<Value> {
        serde_json::from_slice(&self.params).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_protocol::Frame;
    use serde_json::json;

    const METHOD: &str = Method::ControlEvent.name();

    #[test]
    fn event_line_is_read_without_parsing() {
        let event = r#""seq":17,"at":3,"is":"said","turn":1,"frame":{"is":"x"}}"#;
        let frame = Frame::notification(METHOD, &format!(r#"{{"sessionId":"s-1",{event}"#));
        let line = EventLine::parse(frame.bytes()).unwrap();
        assert_eq!((line.seq, line.kind()), (17, Some(EventKind::Said)));
        assert_eq!(line.to_journal_text(), format!("{{{event}"));
        let value = line.to_value().unwrap();
        assert_eq!((&value["turn"], &value["sessionId"]), (&json!(1), &json!("s-1")));
        assert!(line.contains("frame") && !line.contains("prompt"));
        assert!(line.belongs_to("s-1") && !line.belongs_to("s-12") && !line.belongs_to("s-"));
    }

    #[test]
    fn deeply_nested_event_is_still_an_event_line() {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let params =
            format!(r#"{{"sessionId":"s-1","seq":2,"at":3,"is":"said","frame":{open}{close}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","method":"{METHOD}","params":{params}}}"#);
        let line = EventLine::parse(&line.into()).unwrap();
        assert_eq!((line.seq, line.kind(), line.to_value()), (2, Some(EventKind::Said), None));
    }

    #[test]
    fn other_lines_are_not_events() {
        let without_seq = Frame::notification(METHOD, r#"{"sessionId":"s-1","at":3}"#);
        let other_method = Frame::notification("session/update", r#"{"sessionId":"s-1","seq":3}"#);
        for line in ["", "{}", without_seq.text(), other_method.text()] {
            assert!(EventLine::parse(&Bytes::from(line.to_owned())).is_none());
        }
    }
}
