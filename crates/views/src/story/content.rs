//! Content blocks as text.

use serde_json::Value;

/// The text of a block, or of several; nothing if it is no text at all.
pub(crate) fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
            (!texts.is_empty()).then(|| texts.concat())
        }
        Value::Object(block) => block.get("text")?.as_str().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_a_string_a_block_or_several() {
        assert_eq!(text_of(&json!("a")).as_deref(), Some("a"));
        assert_eq!(text_of(&json!({ "type": "text", "text": "a" })).as_deref(), Some("a"));
        assert_eq!(text_of(&json!([{ "text": "a" }, 1, "b"])).as_deref(), Some("ab"));
        assert_eq!(text_of(&json!({ "type": "image", "data": "" })), None);
        assert_eq!(text_of(&json!(null)), None);
    }
}
