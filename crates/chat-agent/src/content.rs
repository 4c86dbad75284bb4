//! Converts the content blocks of a prompt into the content of a model message.

use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};
use serde_json::{Value, json};

/// Converts one block to text. Returns `None` for blocks without a text form.
pub(crate) fn block_to_text(block: &ContentBlock) -> Option<String> {
    Some(match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => format!("[Resource: {}] {}", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(it) => {
                format!("[Resource: {}]\n{}", it.uri, it.text)
            }
            EmbeddedResourceResource::BlobResourceContents(it) => {
                format!("[Resource: {}]\n", it.uri)
            }
            _ => return None,
        },
        ContentBlock::Image(image) => format!("[Image: {}]", image.mime_type),
        _ => return None,
    })
}

/// Converts the blocks of one or more prompts into the content of a user message: a string, or a
/// list of parts if there are images and the model accepts them.
pub(crate) fn to_message_content<'a>(
    blocks: impl Iterator<Item = &'a ContentBlock>,
    accepts_images: bool,
) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let mut text = String::new();
    let mut is_first = true;
    for block in blocks {
        if let (ContentBlock::Image(image), true) = (block, accepts_images) {
            if !text.is_empty() {
                parts.push(json!({ "type": "text", "text": std::mem::take(&mut text) }));
            }
            is_first = true;
            let url = match (image.data.is_empty(), &image.uri) {
                (true, Some(uri)) => uri.clone(),
                _ => format!("data:{};base64,{}", image.mime_type, image.data),
            };
            parts.push(json!({ "type": "image_url", "image_url": { "url": url } }));
        } else if let Some(it) = block_to_text(block) {
            if !is_first {
                text.push('\n');
            }
            is_first = false;
            text.push_str(&it);
        }
    }
    if parts.is_empty() {
        return Value::String(text);
    }
    if !text.is_empty() {
        parts.push(json!({ "type": "text", "text": text }));
    }
    Value::Array(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol::v1::schema::{
        BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink, TextResourceContents,
    };
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = ContentBlock> {
        prop_oneof![
            ".*".prop_map(|it| ContentBlock::from(it.as_str())),
            ("[a-z]+", "[a-z:/]+").prop_map(|(name, uri)| {
                ContentBlock::ResourceLink(ResourceLink::new(name, uri))
            }),
            (".*", "[a-z:/]+").prop_map(|(text, uri)| {
                let text = TextResourceContents::new(text, uri);
                let resource = EmbeddedResourceResource::TextResourceContents(text);
                ContentBlock::Resource(EmbeddedResource::new(resource))
            }),
            "[a-z]+/[a-z]+".prop_map(|mime| ContentBlock::Image(ImageContent::new("AA==", mime))),
        ]
    }

    #[test]
    fn every_kind_of_block_is_converted_to_text() {
        let blob = BlobResourceContents::new("AA==", "file:///b");
        let blob = EmbeddedResourceResource::BlobResourceContents(blob);
        let blocks = [
            ContentBlock::from("hello"),
            ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///a.rs")),
            ContentBlock::Resource(EmbeddedResource::new(blob)),
            ContentBlock::Image(ImageContent::new("AA==", "image/png")),
        ];
        let text = to_message_content(blocks.iter(), false);
        let expected =
            "hello\n[Resource: a.rs] file:///a.rs\n[Resource: file:///b]\n\n[Image: image/png]";
        assert_eq!(text, expected);
    }

    #[test]
    fn images_are_separate_parts_in_the_order_of_the_blocks() {
        let blocks = [
            ContentBlock::from("before"),
            ContentBlock::Image(ImageContent::new("AA==", "image/png")),
            ContentBlock::from("after"),
            ContentBlock::from("more"),
        ];
        let url = json!({ "url": "data:image/png;base64,AA==" });
        let expected = json!([
            { "type": "text", "text": "before" },
            { "type": "image_url", "image_url": url },
            { "type": "text", "text": "after\nmore" },
        ]);
        assert_eq!(to_message_content(blocks.iter(), true), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn blocks_are_joined_by_line_breaks(
            blocks in proptest::collection::vec(block(), 0..8),
        ) {
            let lines: Vec<String> = blocks.iter().filter_map(block_to_text).collect();
            prop_assert_eq!(to_message_content(blocks.iter(), false), lines.join("\n"));
        }

        #[test]
        fn every_image_is_one_part(blocks in proptest::collection::vec(block(), 0..8)) {
            let images = blocks.iter().filter(|it| matches!(it, ContentBlock::Image(_))).count();
            let content = to_message_content(blocks.iter(), true);
            let parts = content.as_array().map_or(0, |parts| {
                parts.iter().filter(|it| it["type"] == "image_url").count()
            });
            prop_assert_eq!(parts, images);
        }
    }
}
