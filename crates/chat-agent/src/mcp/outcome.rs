//! Converts the result of a call: bounded text for the model, and all content blocks for the user.

use crate::tool::{
    ToolOutcome, to_fenced_block,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
};
use agent_client_protocol::v1::schema::{self, Content, ToolCallContent};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};

/// A larger block would not fit into a frame together with anything else.
const BLOCK_BYTES_MAX: usize = 8 << 20;
/// How much of the arguments a user sees before permitting a call.
const ARGUMENTS_CHARS_MAX: usize = 4_000;

pub(super) fn from_call_result(result: CallToolResult) -> ToolOutcome {
    let mut outcome = from_blocks(result.content);
    if outcome.text.is_empty() {
        outcome.text = match &result.structured_content {
            Some(value) => truncate_output(&value.to_string()),
            None => "(The tool returned nothing.)".to_owned(),
        };
    }
    outcome.is_error = result.is_error == Some(true);
    outcome.raw_output = result.structured_content;
    outcome
}

pub(super) fn from_resource(contents: Vec<ResourceContents>) -> ToolOutcome {
    from_blocks(contents.into_iter().map(ContentBlock::resource).collect())
}

fn from_blocks(blocks: Vec<ContentBlock>) -> ToolOutcome {
    let texts: Vec<String> = blocks.iter().map(block_to_text).collect();
    let text = truncate_output(&texts.join("\n"));
    let content = blocks.into_iter().map(block_to_content).collect();
    ToolOutcome { text, content, ..ToolOutcome::default() }
}

/// Returns what the user should see before permitting a call.
pub(super) fn arguments_to_content(arguments: &JsonObject) -> Vec<ToolCallContent> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let json = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let json = truncate_middle(&json, ARGUMENTS_CHARS_MAX, "they are too long to be shown");
    vec![to_fenced_block(&json)]
}

fn block_to_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[an image ({}), shown to the user]", image.mime_type)
        }
        ContentBlock::Audio(audio) => format!("[audio ({}), sent to the user]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[the resource `{}`: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                let mime_type = mime_type.as_deref().unwrap_or("unknown type");
                format!("[{uri}: binary data ({mime_type}), sent to the user]")
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Converts a block for the user. MCP and ACP have the same JSON format for blocks.
fn block_to_content(block: ContentBlock) -> ToolCallContent {
    let text = block_to_text(&block);
    if let ContentBlock::Text(_) = block {
        return text_to_content(truncate_output(&text));
    }
    let block = serde_json::to_value(block).ok();
    let block = block.filter(|it| it.to_string().len() <= BLOCK_BYTES_MAX);
    match block.and_then(|it| serde_json::from_value::<schema::ContentBlock>(it).ok()) {
        Some(block) => ToolCallContent::Content(Content::new(block)),
        None => text_to_content(format!("{} (left out: it is too large)", truncate_output(&text))),
    }
}

fn text_to_content(text: String) -> ToolCallContent {
    ToolCallContent::from(schema::ContentBlock::from(text))
}

pub(super) fn truncate_output(text: &str) -> String {
    truncate_middle(text, OUTPUT_CHARS_MAX, "request less at once, if the tool supports that")
}
