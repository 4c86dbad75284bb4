//! Prompt keys: a prompt that is sent twice with the same key runs once.

use super::frame_fields::{JsonMembers, jackfield_meta};
use jackfield_protocol::{Frame, is_planted};

/// Creates keys that no other prompt has.
#[derive(Debug)]
pub(super) struct PromptKeys {
    /// Random for each gateway process.
    seed: u64,
    last_number: u64,
}

impl PromptKeys {
    pub(super) fn new(seed: u64) -> PromptKeys {
        PromptKeys { seed, last_number: 0 }
    }

    /// Adds a key to a prompt that has none.
    pub(super) fn add_key(&mut self, prompt: &Frame) -> Frame {
        let meta = jackfield_meta(prompt);
        if meta.as_deref().is_some_and(has_key) {
            return prompt.clone();
        }
        self.last_number += u64::from(!is_planted("gateway-reuses-prompt-key"));
        let key = format!(r#""key":"{:016x}-{}""#, self.seed, self.last_number);
        // The other members are preserved byte for byte.
        let rest = meta.as_deref().and_then(|it| it.strip_prefix('{')).unwrap_or("}");
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        prompt.with_meta(&format!("{{{key}{comma}{rest}"))
    }
}

fn has_key(meta: &str) -> bool {
    serde_json::from_str::<JsonMembers<'_>>(meta).is_ok_and(|it| it.contains_key("key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_gets_a_key_and_keeps_all_other_members() {
        let mut keys = PromptKeys::new(7);
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
            assert_eq!(keys.add_key(&prompt).params(), Some(expected));
        }
    }
}
