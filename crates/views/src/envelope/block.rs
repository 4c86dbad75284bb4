//! Content blocks as envelope events: text becomes text, a block with bytes a file, a link a link.

use super::EnvelopeEvent;
use crate::timeline::content_text;
use serde_json::Value;

/// Converts a block, whose position in the log is `position`; `None` for empty text.
pub(super) fn block_event(block: &Value, position: &str) -> Option<EnvelopeEvent> {
    let resource = &block["resource"];
    if block["type"] != "resource"
        && let Some(text) = content_text(block)
    {
        return (!text.is_empty()).then_some(EnvelopeEvent::Text { text, thinking: false });
    }
    let uri = block["uri"].as_str().or(resource["uri"].as_str());
    let mime_type = block["mimeType"].as_str().or(resource["mimeType"].as_str());
    let kind = block["type"].as_str().unwrap_or("content");
    let name = block["name"].as_str().or(uri.map(last_segment)).filter(|it| !it.is_empty());
    let name = name.map_or_else(|| default_name(kind, mime_type), str::to_owned);
    let declared = block["size"].as_u64();
    let encoded = block["data"].as_str().or(resource["blob"].as_str()).map(decoded_bytes);
    let text = resource["text"].as_str().map(|it| it.len() as u64);
    let Some(size) = declared.or(encoded).or(text) else {
        // The protocol requires the size of a file, so a block of unknown size becomes text.
        let text = uri.map_or_else(|| format!("[{kind}]"), |uri| format!("[{name}]({uri})"));
        return Some(EnvelopeEvent::Text { text, thinking: false });
    };
    let reference = uri.unwrap_or(position).to_owned();
    Some(EnvelopeEvent::File { reference, name, size, mime_type: mime_type.map(str::to_owned) })
}

fn last_segment(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// `image.png` for an image of type `image/png`.
fn default_name(kind: &str, mime_type: Option<&str>) -> String {
    let subtype = mime_type.and_then(|it| it.split_once('/')).map(|it| it.1);
    subtype.map_or_else(|| kind.to_owned(), |it| format!("{kind}.{it}"))
}

/// The number of bytes that a base64 text encodes.
fn decoded_bytes(text: &str) -> u64 {
    let digits = text.bytes().filter(|it| it.is_ascii_alphanumeric() || b"+/-_".contains(it));
    digits.count() as u64 * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn to_json(block: &Value) -> Value {
        serde_json::to_value(block_event(block, "s-1/7/0")).unwrap()
    }

    #[test]
    fn text_block_is_text_and_empty_text_is_nothing() {
        assert_eq!(
            to_json(&json!({ "type": "text", "text": "a" })),
            json!({ "t": "text", "text": "a" })
        );
        assert_eq!(to_json(&json!({ "type": "text", "text": "" })), json!(null));
    }

    #[test]
    fn image_is_a_file_that_refers_to_the_log() {
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" });
        let file = json!({ "t": "file", "ref": "s-1/7/0", "name": "image.png", "size": 5, "mimeType": "image/png" });
        assert_eq!(to_json(&image), file);
    }

    #[test]
    fn resource_is_a_file_with_its_own_name() {
        let resource = json!({ "uri": "file:///a/b.rs", "text": "fn", "mimeType": "text/rust" });
        let file = json!({ "t": "file", "ref": "file:///a/b.rs", "name": "b.rs", "size": 2, "mimeType": "text/rust" });
        assert_eq!(to_json(&json!({ "type": "resource", "resource": resource })), file);
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A", "size": 9 });
        let file = json!({ "t": "file", "ref": "file:///a", "name": "A", "size": 9 });
        assert_eq!(to_json(&link), file);
    }

    #[test]
    fn link_of_unknown_size_is_text() {
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A" });
        assert_eq!(to_json(&link), json!({ "t": "text", "text": "[A](file:///a)" }));
        assert_eq!(to_json(&json!({ "type": "news" })), json!({ "t": "text", "text": "[news]" }));
        assert_eq!(to_json(&json!(7)), json!({ "t": "text", "text": "[content]" }));
    }
}
