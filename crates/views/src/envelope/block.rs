//! Content blocks as envelopes: text is text, what has bytes is a file, a link is a link.

use super::Ev;
use crate::story::text_of;
use serde_json::Value;

/// What a block is; `place` is where it stands in the log. Nothing for empty text.
pub(super) fn ev(block: &Value, place: &str) -> Option<Ev> {
    let resource = &block["resource"];
    if block["type"] != "resource"
        && let Some(text) = text_of(block)
    {
        return (!text.is_empty()).then_some(Ev::Text { text, thinking: false });
    }
    let uri = block["uri"].as_str().or(resource["uri"].as_str());
    let mime_type = block["mimeType"].as_str().or(resource["mimeType"].as_str());
    let kind = block["type"].as_str().unwrap_or("content");
    let name = block["name"].as_str().or(uri.map(last_part)).filter(|it| !it.is_empty());
    let name = name.map_or_else(|| unnamed(kind, mime_type), str::to_owned);
    let told = block["size"].as_u64();
    let encoded = block["data"].as_str().or(resource["blob"].as_str()).map(decoded_bytes);
    let text = resource["text"].as_str().map(|it| it.len() as u64);
    let Some(size) = told.or(encoded).or(text) else {
        // A file of unknown size is none in this protocol.
        let text = uri.map_or_else(|| format!("[{kind}]"), |uri| format!("[{name}]({uri})"));
        return Some(Ev::Text { text, thinking: false });
    };
    let reference = uri.unwrap_or(place).to_owned();
    Some(Ev::File { reference, name, size, mime_type: mime_type.map(str::to_owned) })
}

fn last_part(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// `image.png` for an image of type `image/png`.
fn unnamed(kind: &str, mime_type: Option<&str>) -> String {
    let subtype = mime_type.and_then(|it| it.split_once('/')).map(|it| it.1);
    subtype.map_or_else(|| kind.to_owned(), |it| format!("{kind}.{it}"))
}

/// How many bytes a text in base64 stands for.
fn decoded_bytes(text: &str) -> u64 {
    let digits = text.bytes().filter(|it| it.is_ascii_alphanumeric() || b"+/-_".contains(it));
    digits.count() as u64 * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(block: &Value) -> Value {
        serde_json::to_value(ev(block, "s-1/7/0")).unwrap()
    }

    #[test]
    fn text_is_text_and_no_text_is_nothing() {
        assert_eq!(
            told(&json!({ "type": "text", "text": "a" })),
            json!({ "t": "text", "text": "a" })
        );
        assert_eq!(told(&json!({ "type": "text", "text": "" })), json!(null));
    }

    #[test]
    fn an_image_is_a_file_that_stands_in_the_log() {
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" });
        let file = json!({ "t": "file", "ref": "s-1/7/0", "name": "image.png", "size": 5, "mimeType": "image/png" });
        assert_eq!(told(&image), file);
    }

    #[test]
    fn a_resource_is_a_file_under_its_own_name() {
        let resource = json!({ "uri": "file:///a/b.rs", "text": "fn", "mimeType": "text/rust" });
        let file = json!({ "t": "file", "ref": "file:///a/b.rs", "name": "b.rs", "size": 2, "mimeType": "text/rust" });
        assert_eq!(told(&json!({ "type": "resource", "resource": resource })), file);
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A", "size": 9 });
        let file = json!({ "t": "file", "ref": "file:///a", "name": "A", "size": 9 });
        assert_eq!(told(&link), file);
    }

    #[test]
    fn a_link_of_unknown_size_is_text() {
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "A" });
        assert_eq!(told(&link), json!({ "t": "text", "text": "[A](file:///a)" }));
        assert_eq!(told(&json!({ "type": "news" })), json!({ "t": "text", "text": "[news]" }));
        assert_eq!(told(&json!(7)), json!({ "t": "text", "text": "[content]" }));
    }
}
