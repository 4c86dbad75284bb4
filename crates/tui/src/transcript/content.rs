//! Content blocks of ACP as parts of a message. Agents send blocks of any shape.

use super::MessagePart;
use serde_json::Value;

/// A text member of an object; empty if it is something else.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A list member of an object; empty if it is something else.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

impl MessagePart {
    pub(super) fn from_block(block: &Value) -> MessagePart {
        let owned = |value: &Value, name: &str| text(value, name).to_owned();
        match text(block, "type") {
            "text" => MessagePart::Text(owned(block, "text")),
            "image" => MessagePart::Image {
                mime_type: owned(block, "mimeType"),
                // Base64 has four characters for three bytes.
                bytes: text(block, "data").trim_end_matches('=').len() * 3 / 4,
            },
            "resource_link" => {
                let names = ["title", "name", "uri"].map(|it| text(block, it));
                let name = names.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
                MessagePart::Link { uri: owned(block, "uri"), name: name.to_owned() }
            }
            "resource" => {
                let resource = &block["resource"];
                MessagePart::File { uri: owned(resource, "uri"), text: owned(resource, "text") }
            }
            "" => MessagePart::Other("content".to_owned()),
            other => MessagePart::Other(other.to_owned()),
        }
    }

    pub(super) fn is_empty_text(&self) -> bool {
        matches!(self, MessagePart::Text(text) if text.is_empty())
    }
}

/// Adds a part. Text is joined with the text before it.
pub(super) fn add_part(parts: &mut Vec<MessagePart>, part: MessagePart) {
    match (parts.last_mut(), part) {
        (Some(MessagePart::Text(last)), MessagePart::Text(added)) => last.push_str(&added),
        (_, part) => parts.push(part),
    }
}

/// The texts of a message, joined.
pub(crate) fn parts_text(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|it| match it {
        MessagePart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
