//! A prompt as ACP gives it, and as text for programs that take nothing else.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text(String),
    /// A file or page that the program may read itself.
    Link {
        uri: String,
        name: String,
    },
    /// A text that comes along.
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
pub struct Prompt {
    pub blocks: Vec<Block>,
}

impl Prompt {
    /// Reads `params.prompt`; the error says what cannot be handed on.
    pub fn parse(blocks: &Value, images: bool) -> Result<Prompt, String> {
        let blocks = blocks.as_array().ok_or("`prompt` must be a list of content blocks")?;
        let blocks =
            blocks.iter().map(|block| parse_block(block, images)).collect::<Result<_, _>>()?;
        Ok(Prompt { blocks })
    }

    /// Everything but images, as one text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if !text.is_empty() && !text.ends_with('\n') && !matches!(block, Block::Text(_)) {
                text.push('\n');
            }
            match block {
                Block::Text(words) => text.push_str(words),
                Block::Link { uri, .. } => {
                    text.push('@');
                    text.push_str(uri.strip_prefix("file://").unwrap_or(uri));
                    text.push('\n');
                }
                Block::Resource { uri, text: inside } => {
                    let uri = uri.strip_prefix("file://").unwrap_or(uri);
                    for part in ["<file path=\"", uri, "\">\n", inside, "\n</file>\n"] {
                        text.push_str(part);
                    }
                }
                Block::Image { .. } => {}
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

fn parse_block(block: &Value, images: bool) -> Result<Block, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => Ok(Block::Text(text(&block["text"]))),
        Some("resource_link") => {
            Ok(Block::Link { uri: text(&block["uri"]), name: text(&block["name"]) })
        }
        Some("resource") if block["resource"]["text"].is_string() => {
            let resource = &block["resource"];
            Ok(Block::Resource { uri: text(&resource["uri"]), text: text(&resource["text"]) })
        }
        Some("image") if images => {
            Ok(Block::Image { mime: text(&block["mimeType"]), data: text(&block["data"]) })
        }
        Some(other) => Err(format!(
            "this program takes no `{other}` in prompts; send text or a `resource_link`"
        )),
        None => Err("a content block has no `type`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_become_mentions_and_what_comes_along_is_quoted() {
        let blocks = json!([
            {"type": "text", "text": "Look at"},
            {"type": "resource_link", "uri": "file:///w/a.rs", "name": "a.rs"},
            {"type": "resource", "resource": {"uri": "file:///w/b.txt", "text": "hello"}},
        ]);
        let prompt = Prompt::parse(&blocks, false).unwrap();
        assert_eq!(prompt.text(), "Look at\n@/w/a.rs\n<file path=\"/w/b.txt\">\nhello\n</file>");
    }

    #[test]
    fn an_image_is_refused_where_it_would_be_lost() {
        let image = json!([{"type": "image", "mimeType": "image/png", "data": "AA=="}]);
        assert!(Prompt::parse(&image, false).unwrap_err().contains("no `image`"));
        assert!(Prompt::parse(&image, true).is_ok());
    }
}
