//! One event of a session's log, as the hub tells it to whoever attaches for facts.

use bytes::Bytes;
use jackfield_events::{EventKind, ReceivedEvent};
use memchr::memmem;
use serde_json::Value;

/// What every line with a fact begins with; one brace too many ends it.
const BEFORE: &[u8] = br#"{"jsonrpc":"2.0","method":"_jackfield/event","params":"#;
const SESSION: &[u8] = br#"{"sessionId":""#;
const SEQ: &[u8] = br#","seq":"#;
const IS: &[u8] = br#","is":""#;

/// Kept as text: most are only counted or carried on, and some nest deeper than a value may.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// `{"sessionId":…,"seq":7,"at":…,"is":…,…}`
    params: Bytes,
    /// Where its own members begin, without the comma.
    own: usize,
    pub(crate) seq: u64,
}

impl Fact {
    /// The fact in a line of the hub, if there is one.
    pub(crate) fn of_line(line: &Bytes) -> Option<Fact> {
        let params = line.strip_prefix(BEFORE)?.strip_suffix(b"}")?;
        params.strip_prefix(SESSION)?;
        let comma = memmem::find(params, SEQ)?;
        let digits = &params[comma + SEQ.len()..];
        let digits = &digits[..digits.iter().position(|it| !it.is_ascii_digit())?];
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Fact { params: line.slice_ref(params), own: comma + 1, seq })
    }

    /// The kind of the event, read without parsing the rest; `None` for a kind of a newer daemon.
    pub(crate) fn kind(&self) -> Option<EventKind> {
        let rest = &self.params[self.own..];
        let rest = &rest[memmem::find(rest, IS)? + IS.len()..];
        let name = &rest[..memchr::memchr(b'"', rest)?];
        EventKind::from_name(std::str::from_utf8(name).ok()?)
    }

    /// The event itself; `None` if it nests deeper than a value may, or is of a newer daemon.
    pub(crate) fn event(&self) -> Option<ReceivedEvent> {
        ReceivedEvent::from_value(self.value()?).ok()
    }

    /// Whether this text is in it, wherever.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        memmem::find(&self.params, text.as_bytes()).is_some()
    }

    /// As the journal has it, with its number before it.
    pub(crate) fn text(&self) -> String {
        format!("{{{}", String::from_utf8_lossy(&self.params[self.own..]))
    }

    /// With the session's name; `None` if it nests deeper than a value may.
    pub(crate) fn value(&self) -> Option<Value> {
        serde_json::from_slice(&self.params).ok()
    }
}

#[cfg(test)]
impl Fact {
    /// The fact that a test writes as `{"seq":1,…}`.
    pub(crate) fn of(fact: &Value) -> Fact {
        let own = fact.to_string();
        let params = format!(r#"{{"sessionId":"s-abcdefghijkl",{}"#, &own[1..]);
        let line = [BEFORE, params.as_bytes(), b"}"].concat();
        Fact::of_line(&line.into()).expect("a fact")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fact_is_read_without_being_parsed() {
        let own = json!({ "seq": 17, "at": 3, "is": "said", "turn": 1, "frame": { "is": "x" } });
        let fact = Fact::of(&own);
        assert_eq!((fact.seq, fact.kind()), (17, Some(EventKind::Said)));
        assert_eq!(fact.text(), own.to_string());
        let value = fact.value().unwrap();
        assert_eq!((&value["turn"], &value["sessionId"]), (&json!(1), &json!("s-abcdefghijkl")));
        assert!(fact.mentions("frame") && !fact.mentions("prompt"));
    }

    #[test]
    fn what_nests_too_deep_is_still_a_fact() {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let own =
            format!(r#"{{"sessionId":"s-1","seq":2,"at":3,"is":"said","frame":{open}{close}}}"#);
        let fact = Fact::of_line(&[BEFORE, own.as_bytes(), b"}"].concat().into()).unwrap();
        assert_eq!((fact.seq, fact.kind(), fact.value()), (2, Some(EventKind::Said), None));
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "{}", r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#] {
            assert!(Fact::of_line(&Bytes::from(line)).is_none());
        }
        let without = [BEFORE, br#"{"sessionId":"s-1","at":3}}"#].concat();
        assert!(Fact::of_line(&without.into()).is_none());
    }
}
