//! Prompt keys: a prompt that is sent twice with the same key runs once.

use super::Gateway;
use jackfield_protocol::{Frame, is_planted};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

impl Gateway {
    /// Adds a key to a prompt that has none.
    pub(super) fn with_prompt_key(&mut self, prompt: &Frame) -> Frame {
        let meta = jackfield_meta(prompt);
        if meta.as_deref().is_some_and(has_key) {
            return prompt.clone();
        }
        self.next_key += u64::from(!is_planted("gateway-reuses-prompt-key"));
        let key = format!(r#""key":"{:016x}-{}""#, self.config.seed, self.next_key);
        // The other members are preserved byte for byte.
        let rest = meta.as_deref().and_then(|it| it.strip_prefix('{')).unwrap_or("}");
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        prompt.with_meta(&format!("{{{key}{comma}{rest}"))
    }
}

type JsonMembers<'a> = BTreeMap<String, &'a RawValue>;

/// `params._meta.jackfield` as JSON text.
pub(super) fn jackfield_meta(frame: &Frame) -> Option<String> {
    let meta: JsonMembers<'_> = serde_json::from_str(frame.meta()?).ok()?;
    meta.get("jackfield").map(|it| it.get().to_owned())
}

fn has_key(meta: &str) -> bool {
    serde_json::from_str::<JsonMembers<'_>>(meta).is_ok_and(|it| it.contains_key("key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::GatewayConfig;
    use jackfield_hub::Time;

    #[test]
    fn prompt_gets_a_key_and_keeps_all_other_members() {
        let mut gateway =
            Gateway::new(GatewayConfig { seed: 7, ..GatewayConfig::default() }, Time(0));
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
            assert_eq!(gateway.with_prompt_key(&prompt).params(), Some(expected));
        }
    }
}
