//! One event of a session's log, as the hub sends it to clients that attach with `facts`.

use bytes::Bytes;
use jackfield_events::{EventKind, ReceivedEvent};
use memchr::memmem;
use serde_json::Value;

/// The start of every line with an event. The line ends with one more brace than the params.
const LINE_PREFIX: &[u8] = br#"{"jsonrpc":"2.0","method":"_jackfield/event","params":"#;
const SESSION_MEMBER: &[u8] = br#"{"sessionId":""#;
const SEQ_MEMBER: &[u8] = br#","seq":"#;
const KIND_MEMBER: &[u8] = br#","is":""#;

/// An event as text. Most events are only counted or forwarded, and some nest too deep to be parsed.
#[derive(Debug, Clone)]
pub(crate) struct EventLine {
    /// `{"sessionId":…,"seq":7,"at":…,"is":…,…}`
    params: Bytes,
    /// The offset of the first member after the session id.
    members_start: usize,
    pub(crate) seq: u64,
}

impl EventLine {
    /// Parses a line of the hub; `None` if it is not an event.
    pub(crate) fn parse(line: &Bytes) -> Option<EventLine> {
        let params = line.strip_prefix(LINE_PREFIX)?.strip_suffix(b"}")?;
        params.strip_prefix(SESSION_MEMBER)?;
        let comma = memmem::find(params, SEQ_MEMBER)?;
        let digits = &params[comma + SEQ_MEMBER.len()..];
        let digits = &digits[..digits.iter().position(|it| !it.is_ascii_digit())?];
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(EventLine { params: line.slice_ref(params), members_start: comma + 1, seq })
    }

    /// The kind of the event, read without parsing the rest; `None` for an unknown kind of a newer daemon.
    pub(crate) fn kind(&self) -> Option<EventKind> {
        let rest = &self.params[self.members_start..];
        let rest = &rest[memmem::find(rest, KIND_MEMBER)? + KIND_MEMBER.len()..];
        let name = &rest[..memchr::memchr(b'"', rest)?];
        EventKind::from_name(std::str::from_utf8(name).ok()?)
    }

    /// Parses the event; `None` if it nests too deep or is of an unknown kind of a newer daemon.
    pub(crate) fn to_event(&self) -> Option<ReceivedEvent> {
        ReceivedEvent::from_value(self.to_value()?).ok()
    }

    /// Whether the event contains this text anywhere.
    pub(crate) fn contains(&self, text: &str) -> bool {
        memmem::find(&self.params, text.as_bytes()).is_some()
    }

    /// The event as the journal stores it, with its sequence number first.
    pub(crate) fn to_journal_text(&self) -> String {
        format!("{{{}", String::from_utf8_lossy(&self.params[self.members_start..]))
    }

    /// The event with its session id; `None` if it nests too deep to be parsed.
    pub(crate) fn to_value(&self) -> Option<Value> {
        serde_json::from_slice(&self.params).ok()
    }
}

#[cfg(test)]
impl EventLine {
    /// Builds an event line from `{"seq":1,…}`.
    pub(crate) fn from_json(event: &Value) -> EventLine {
        let members = event.to_string();
        let params = format!(r#"{{"sessionId":"s-abcdefghijkl",{}"#, &members[1..]);
        let line = [LINE_PREFIX, params.as_bytes(), b"}"].concat();
        EventLine::parse(&line.into()).expect("an event")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn event_line_is_read_without_parsing() {
        let event = json!({ "seq": 17, "at": 3, "is": "said", "turn": 1, "frame": { "is": "x" } });
        let line = EventLine::from_json(&event);
        assert_eq!((line.seq, line.kind()), (17, Some(EventKind::Said)));
        assert_eq!(line.to_journal_text(), event.to_string());
        let value = line.to_value().unwrap();
        assert_eq!((&value["turn"], &value["sessionId"]), (&json!(1), &json!("s-abcdefghijkl")));
        assert!(line.contains("frame") && !line.contains("prompt"));
    }

    #[test]
    fn deeply_nested_event_is_still_an_event_line() {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let params =
            format!(r#"{{"sessionId":"s-1","seq":2,"at":3,"is":"said","frame":{open}{close}}}"#);
        let line =
            EventLine::parse(&[LINE_PREFIX, params.as_bytes(), b"}"].concat().into()).unwrap();
        assert_eq!((line.seq, line.kind(), line.to_value()), (2, Some(EventKind::Said), None));
    }

    #[test]
    fn other_lines_are_not_events() {
        for line in ["", "{}", r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#] {
            assert!(EventLine::parse(&Bytes::from(line)).is_none());
        }
        let without = [LINE_PREFIX, br#"{"sessionId":"s-1","at":3}}"#].concat();
        assert!(EventLine::parse(&without.into()).is_none());
    }
}
