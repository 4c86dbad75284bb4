//! One event of a session's log, as the hub tells it to whoever attaches for facts.

use bytes::Bytes;
use memchr::memmem;
use serde_json::Value;

/// What every line with a fact begins with; the fact's own members follow, and one brace too many.
const BEFORE: &[u8] = br#"{"jsonrpc":"2.0","method":"_jackfield/event","params":{"sessionId":""#;

/// Kept as text: most are only counted or carried on, and some nest deeper than a value may.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// `"seq":7,"at":…,"is":…,…}`
    members: Bytes,
    pub(crate) seq: u64,
}

impl Fact {
    /// The fact in a line of the hub, if there is one.
    pub(crate) fn of_line(line: &Bytes) -> Option<Fact> {
        let rest = line.strip_prefix(BEFORE)?.strip_suffix(b"}")?;
        let members = &rest[memmem::find(rest, br#"","seq":"#)? + br#"","#.len()..];
        let digits = &members[br#""seq":"#.len()..];
        let digits = &digits[..digits.iter().position(|it| !it.is_ascii_digit())?];
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Fact { members: line.slice_ref(members), seq })
    }

    /// As the journal has it, with its number before it.
    pub(crate) fn text(&self) -> String {
        format!("{{{}", String::from_utf8_lossy(&self.members))
    }

    /// `None` if it nests deeper than a value may.
    pub(crate) fn value(&self) -> Option<Value> {
        serde_json::from_str(&self.text()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(members: &str) -> Option<Fact> {
        let before = std::str::from_utf8(BEFORE).unwrap();
        Fact::of_line(&Bytes::from(format!("{before}s-1\",{members}}}}}")))
    }

    #[test]
    fn a_fact_is_read_without_being_parsed() {
        let fact = fact(r#""seq":17,"at":3,"is":"said","turn":1,"frame":{"is":"x"}"#).unwrap();
        assert_eq!(fact.seq, 17);
        let text = r#"{"seq":17,"at":3,"is":"said","turn":1,"frame":{"is":"x"}}"#;
        assert_eq!(fact.text(), text);
        assert_eq!(fact.value().unwrap()["turn"], 1);
    }

    #[test]
    fn what_nests_too_deep_is_still_a_fact() {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let fact = fact(&format!(r#""seq":2,"at":3,"is":"said","frame":{open}{close}"#)).unwrap();
        assert_eq!((fact.seq, fact.value()), (2, None));
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "{}", r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#] {
            assert!(Fact::of_line(&Bytes::from(line)).is_none());
        }
        assert!(fact(r#""at":3"#).is_none());
    }
}
