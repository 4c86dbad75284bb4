//! Placeholders: `"$name"` matches any value the first time and the same value afterwards.

use serde_json::Value;
use std::collections::BTreeMap;

/// A member that allows an object to have others.
const ANY_MEMBERS: &str = "…";

#[derive(Debug, Default)]
pub(super) struct PlaceholderValues(BTreeMap<String, Value>);

impl PlaceholderValues {
    /// Replaces each placeholder that has a value.
    pub(super) fn fill_text(&self, text: &str) -> String {
        let text = expand_bulk(text);
        let mut filled = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find('$') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let end = after.find(|it: char| !it.is_alphanumeric()).unwrap_or(after.len());
            let (name, behind) = after.split_at(end);
            match self.0.get(name) {
                Some(Value::String(inside)) => {
                    filled.push_str(before);
                    filled.push_str(inside);
                    rest = behind;
                }
                Some(value) if before.ends_with('"') && behind.starts_with('"') => {
                    filled.push_str(&before[..before.len() - 1]);
                    filled.push_str(&value.to_string());
                    rest = &behind[1..];
                }
                _ => {
                    filled.push_str(&rest[..=at]);
                    rest = after;
                }
            }
        }
        filled + rest
    }

    /// Whether a received value matches the expected one; stores the values of placeholders.
    pub(super) fn matches(&mut self, expected: &Value, received: &Value) -> bool {
        match (expected, received) {
            (Value::String(name), _) if is_placeholder(name) => {
                let known = self.0.entry(name[1..].to_owned()).or_insert_with(|| received.clone());
                known == received
            }
            (Value::Object(expected), Value::Object(received)) => {
                let open = expected.contains_key(ANY_MEMBERS);
                let mut named = expected.iter().filter(|(key, _)| *key != ANY_MEMBERS);
                let count = expected.len() - usize::from(open);
                named
                    .all(|(key, value)| received.get(key).is_some_and(|it| self.matches(value, it)))
                    && (open || count == received.len())
            }
            (Value::Array(expected), Value::Array(received)) => {
                expected.len() == received.len()
                    && expected.iter().zip(received).all(|(a, b)| self.matches(a, b))
            }
            _ => expected == received,
        }
    }
}

fn is_placeholder(text: &str) -> bool {
    let name = text.strip_prefix('$');
    name.is_some_and(|it| !it.is_empty() && it.chars().all(char::is_alphanumeric))
}

/// `${300k}` becomes that many bytes.
fn expand_bulk(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let Some((size, after)) = rest.split_once("k}") else { return text.to_owned() };
    let size: usize = size.parse().expect("a number of KiB stands between `${` and `k}`");
    format!("{before}{}{}", "x".repeat(size * 1024), expand_bulk(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholder_matches_any_value_once_and_then_the_same() {
        let mut names = PlaceholderValues::default();
        assert!(names.matches(&json!({ "id": "$a", "b": 1 }), &json!({ "id": 7, "b": 1 })));
        assert!(names.matches(&json!(["$a"]), &json!([7])));
        assert!(!names.matches(&json!("$a"), &json!(8)));
        assert_eq!(names.fill_text(r#"{"id":"$a","ab":"$ab"}"#), r#"{"id":7,"ab":"$ab"}"#);
    }

    #[test]
    fn text_placeholder_is_replaced_inside_a_text() {
        let mut names = PlaceholderValues::default();
        assert!(names.matches(&json!("$s"), &json!("s-1")));
        assert_eq!(
            names.fill_text(r#"{"m":"no `$s`","p":"$/x ${0k}"}"#),
            r#"{"m":"no `s-1`","p":"$/x "}"#
        );
    }

    #[test]
    fn other_members_are_allowed_only_with_an_ellipsis() {
        let mut names = PlaceholderValues::default();
        assert!(!names.matches(&json!({ "a": 1 }), &json!({ "a": 1, "b": 2 })));
        assert!(names.matches(&json!({ "a": 1, "…": "…" }), &json!({ "a": 1, "b": 2 })));
        assert!(!names.matches(&json!({ "a": 2, "…": "…" }), &json!({ "a": 1, "b": 2 })));
    }
}
