//! Idempotency keys: a prompt that is sent twice with the same key runs once, a `session/new` opens one session.

use super::frame_fields::{JsonMembers, jackfield_meta};
use jackfield_protocol::{Frame, is_planted};

/// Creates keys that no other request has.
#[derive(Debug)]
pub struct RequestKeys {
    /// Random for each process.
    seed: u64,
    last_number: u64,
}

impl RequestKeys {
    pub fn new(seed: u64) -> RequestKeys {
        RequestKeys { seed, last_number: 0 }
    }

    /// Adds a key to a request that has none.
    #[must_use]
    pub fn add_key(&mut self, request: &Frame) -> Frame {
        let meta = jackfield_meta(request);
        if meta.as_deref().is_some_and(|it| find_key(it).is_some()) {
            return request.clone();
        }
        self.last_number += u64::from(!is_planted("gateway-reuses-prompt-key"));
        let key = format!(r#""key":"{:016x}-{}""#, self.seed, self.last_number);
        // The other members are preserved byte for byte.
        let rest = meta.as_deref().and_then(|it| it.strip_prefix('{')).unwrap_or("}");
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        request.with_meta(&format!("{{{key}{comma}{rest}"))
    }

    /// Whether a frame of the hub carries a key that was created here.
    pub fn has_own_key(&self, frame: &Frame) -> bool {
        let key = jackfield_meta(frame).and_then(|it| find_key(&it));
        key.is_some_and(|it| it.starts_with(&format!("\"{:016x}-", self.seed)))
    }
}

/// The member `key` of `_meta.jackfield`, as JSON text.
fn find_key(meta: &str) -> Option<String> {
    let members = serde_json::from_str::<JsonMembers<'_>>(meta).ok()?;
    members.get("key").map(|it| it.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_gets_a_key_and_keeps_all_other_members() {
        let mut keys = RequestKeys::new(7);
        for (params, expected) in [
            ("{}", r#"{"_meta":{"jackfield":{"key":"0000000000000007-1"}}}"#),
            (
                r#"{"_meta":{"a":1,"jackfield":{ "x" : 1.50}}}"#,
                r#"{"_meta":{"a":1,"jackfield":{"key":"0000000000000007-2", "x" : 1.50}}}"#,
            ),
            (
                r#"{"_meta":{"jackfield":null}}"#,
                r#"{"_meta":{"jackfield":{"key":"0000000000000007-3"}}}"#,
            ),
            (r#"{"_meta":{"jackfield":{"key":"k"}}}"#, r#"{"_meta":{"jackfield":{"key":"k"}}}"#),
        ] {
            let prompt = Frame::request("1", "session/prompt", params);
            let keyed = keys.add_key(&prompt);
            assert_eq!(keyed.params(), Some(expected));
            assert_eq!(keys.has_own_key(&keyed), !expected.contains(r#""k""#));
        }
    }
}
