//! The text of content blocks.

use serde_json::Value;

/// The text of a block or of several blocks; `None` if there is no text.
pub(crate) fn content_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().filter_map(content_text).collect();
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
    fn text_is_read_from_a_string_a_block_or_several() {
        assert_eq!(content_text(&json!("a")).as_deref(), Some("a"));
        assert_eq!(content_text(&json!({ "type": "text", "text": "a" })).as_deref(), Some("a"));
        assert_eq!(content_text(&json!([{ "text": "a" }, 1, "b"])).as_deref(), Some("ab"));
        assert_eq!(content_text(&json!({ "type": "image", "data": "" })), None);
        assert_eq!(content_text(&json!(null)), None);
    }
}
