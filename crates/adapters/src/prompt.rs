//! A prompt as ACP defines it, and as plain text for programs that accept nothing else.

use crate::ProgramCapabilities;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptBlock {
    Text(String),
    /// A file or page that the program may read itself.
    Link {
        uri: String,
        name: String,
    },
    /// An embedded text.
    Resource {
        uri: String,
        text: String,
    },
    Image {
        mime: String,
        data: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptInput {
    pub blocks: Vec<PromptBlock>,
}

impl PromptInput {
    /// Parses `params.prompt`. The error names the block that the program does not support.
    pub fn parse(blocks: &Value, capabilities: ProgramCapabilities) -> Result<PromptInput, String> {
        let blocks = blocks.as_array().ok_or("`prompt` must be a list of content blocks")?;
        let blocks = blocks.iter().map(|block| parse_block(block, capabilities));
        Ok(PromptInput { blocks: blocks.collect::<Result<_, _>>()? })
    }

    /// All blocks except images as one text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if !text.is_empty() && !text.ends_with('\n') && !matches!(block, PromptBlock::Text(_)) {
                text.push('\n');
            }
            match block {
                PromptBlock::Text(block) => text.push_str(block),
                PromptBlock::Link { uri, .. } => {
                    text.push('@');
                    text.push_str(uri.strip_prefix("file://").unwrap_or(uri));
                    text.push('\n');
                }
                PromptBlock::Resource { uri, text: content } => {
                    let uri = uri.strip_prefix("file://").unwrap_or(uri);
                    for part in ["<file path=\"", uri, "\">\n", content, "\n</file>\n"] {
                        text.push_str(part);
                    }
                }
                PromptBlock::Image { .. } => {}
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

fn parse_block(block: &Value, capabilities: ProgramCapabilities) -> Result<PromptBlock, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Ok(PromptBlock::Text(text(&block["text"]))),
        Some("resource_link") => {
            Ok(PromptBlock::Link { uri: text(&block["uri"]), name: text(&block["name"]) })
        }
        Some("resource") if block["resource"]["text"].is_string() => {
            let resource = &block["resource"];
            Ok(PromptBlock::Resource { uri: text(&resource["uri"]), text: text(&resource["text"]) })
        }
        Some("image") if capabilities.images => {
            Ok(PromptBlock::Image { mime: text(&block["mimeType"]), data: text(&block["data"]) })
        }
        Some(other) => Err(format!(
            "this program does not support `{other}` in prompts: send text or a `resource_link`"
        )),
        None => Err("a content block has no `type`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn links_become_mentions_and_embedded_text_is_quoted() {
        let blocks = json!([
            {"type": "text", "text": "Look at"},
            {"type": "resource_link", "uri": "file:///w/a.rs", "name": "a.rs"},
            {"type": "resource", "resource": {"uri": "file:///w/b.txt", "text": "hello"}},
        ]);
        let prompt = PromptInput::parse(&blocks, ProgramCapabilities::default()).unwrap();
        assert_eq!(prompt.to_text(), "Look at\n@/w/a.rs\n<file path=\"/w/b.txt\">\nhello\n</file>");
    }

    #[test]
    fn image_is_refused_if_the_program_does_not_support_it() {
        let image = json!([{"type": "image", "mimeType": "image/png", "data": "AA=="}]);
        let text_only = ProgramCapabilities::default();
        assert!(PromptInput::parse(&image, text_only).unwrap_err().contains("not support `image`"));
        let with_images = ProgramCapabilities { images: true, mcp: false };
        assert!(PromptInput::parse(&image, with_images).is_ok());
    }
}
