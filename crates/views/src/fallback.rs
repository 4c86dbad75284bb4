//! Agents and launch variants that were tried before the one that serves a session, as sentences.

use serde_json::Value;

/// One sentence for each entry of `fallback`: what failed, and why.
pub fn describe_fallback(fallback: &Value) -> Vec<String> {
    let entries = fallback.as_array().into_iter().flatten();
    let describe = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let (agent, why) = (text("agent"), text("why"));
        match entry["variant"].as_str() {
            Some(variant) => {
                format!("launch variant `{variant}` of {agent} is not used: {why}")
            }
            None => format!("agent {agent} is not used: {why}"),
        }
    };
    entries.map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failed_variant_is_named_with_its_agent() {
        let fallback = json!([
            { "agent": "gemini", "variant": "acp", "why": "unknown argument" },
            { "agent": "gemini", "why": "exit status 1" },
        ]);
        assert_eq!(
            describe_fallback(&fallback),
            [
                "launch variant `acp` of gemini is not used: unknown argument",
                "agent gemini is not used: exit status 1"
            ]
        );
        assert_eq!(describe_fallback(&Value::Null), [""; 0]);
    }
}
