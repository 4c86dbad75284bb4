//! What comes of a call: words for the model, within bounds, and everything for people.

use crate::tool::{
    Outcome,
    cut::{OUTPUT_CHARS_MAX, cut},
    fenced,
};
use agent_client_protocol::v1::schema::{self, Content, ToolCallContent};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};

/// A bigger picture would not fit into a frame together with anything else.
const BLOCK_BYTES_MAX: usize = 8 << 20;
/// What a person reads of the arguments before they allow a call.
const ARGUMENTS_CHARS_MAX: usize = 4_000;

pub(super) fn outcome(result: CallToolResult) -> Outcome {
    let mut outcome = from_blocks(result.content);
    if outcome.text.is_empty() {
        outcome.text = match &result.structured_content {
            Some(value) => bounded(&value.to_string()),
            None => "(The tool said nothing.)".to_owned(),
        };
    }
    outcome.failed = result.is_error == Some(true);
    outcome.raw = result.structured_content;
    outcome
}

/// What was read of a resource.
pub(super) fn from_resource(contents: Vec<ResourceContents>) -> Outcome {
    from_blocks(contents.into_iter().map(ContentBlock::resource).collect())
}

fn from_blocks(blocks: Vec<ContentBlock>) -> Outcome {
    let told: Vec<String> = blocks.iter().map(told).collect();
    let text = bounded(&told.join("\n"));
    Outcome { text, content: blocks.into_iter().map(shown).collect(), ..Outcome::default() }
}

/// What a person should see before they allow a call.
pub(super) fn shown_arguments(arguments: &JsonObject) -> Vec<ToolCallContent> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let json = serde_json::to_string_pretty(arguments).unwrap_or_default();
    vec![fenced(&cut(&json, ARGUMENTS_CHARS_MAX, "they are too long to be shown"))]
}

/// A block in words.
fn told(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[a picture ({}), shown to the user]", image.mime_type)
        }
        ContentBlock::Audio(audio) => format!("[a sound ({}), given to the user]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[the resource `{}`: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of an unknown kind");
                format!("[{uri}: binary data ({kind}), given to the user]")
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        _ => "[something of an unknown kind]".to_owned(),
    }
}

/// A block for people. Both protocols write them alike.
fn shown(block: ContentBlock) -> ToolCallContent {
    let told = told(&block);
    if let ContentBlock::Text(_) = block {
        return text_block(bounded(&told));
    }
    let block = serde_json::to_value(block).ok();
    let block = block.filter(|it| it.to_string().len() <= BLOCK_BYTES_MAX);
    match block.and_then(|it| serde_json::from_value::<schema::ContentBlock>(it).ok()) {
        Some(block) => ToolCallContent::Content(Content::new(block)),
        None => text_block(format!("{} (left out: it is too large)", bounded(&told))),
    }
}

fn text_block(text: String) -> ToolCallContent {
    ToolCallContent::from(schema::ContentBlock::from(text))
}

pub(super) fn bounded(text: &str) -> String {
    cut(text, OUTPUT_CHARS_MAX, "ask for less at once, if the tool can do that")
}
