//! Converts prompts into messages and MCP servers into configuration of the program.

use crate::mcp::to_object;
use crate::{PrivateFile, PromptBlock, PromptInput};
use serde_json::{Map, Value, json};

/// Converts a prompt into a line of stdin. The order of text and images is kept.
pub(super) fn user_message(prompt: &PromptInput) -> Value {
    let mut content = Vec::new();
    let mut text_blocks = PromptInput::default();
    for block in &prompt.blocks {
        if let PromptBlock::Image { mime, data } = block {
            flush_text(&mut text_blocks, &mut content);
            let source = json!({"type": "base64", "media_type": mime, "data": data});
            content.push(json!({"type": "image", "source": source}));
        } else {
            text_blocks.blocks.push(block.clone());
        }
    }
    flush_text(&mut text_blocks, &mut content);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

fn flush_text(text_blocks: &mut PromptInput, content: &mut Vec<Value>) {
    let text = std::mem::take(text_blocks).to_text();
    // The provider refuses empty text.
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
}

/// The configuration file with the session's MCP servers.
pub(super) fn mcp_config(servers: &[Value]) -> Option<PrivateFile> {
    let named: Map<String, Value> = servers.iter().filter_map(mcp_server).collect();
    let text = json!({"mcpServers": named}).to_string();
    (!named.is_empty()).then_some(PrivateFile { option: "--mcp-config", text })
}

fn mcp_server(server: &Value) -> Option<(String, Value)> {
    let name = server["name"].as_str()?;
    let config = if let Some(kind @ ("http" | "sse")) = server["type"].as_str() {
        json!({"type": kind, "url": server["url"], "headers": to_object(&server["headers"])})
    } else {
        let args = server["args"].as_array().cloned().unwrap_or_default();
        let env = to_object(&server["env"]);
        json!({"type": "stdio", "command": server["command"], "args": args, "env": env})
    };
    Some((name.to_owned(), config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProgramCapabilities;

    #[test]
    fn image_keeps_its_position() {
        let blocks = json!([{"type": "text", "text": "before"},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "text", "text": "after"}, {"type": "resource_link", "uri": "file:///w/a"}]);
        let with_images = ProgramCapabilities { images: true, mcp: false };
        let content =
            user_message(&PromptInput::parse(&blocks, with_images).unwrap())["message"]["content"]
                .clone();
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
        assert_eq!(
            content,
            json!([{"type": "text", "text": "before"}, {"type": "image", "source": source},
                   {"type": "text", "text": "after\n@/w/a"}])
        );
    }

    #[test]
    fn servers_are_configured_in_a_private_file() {
        assert_eq!(mcp_config(&[]), None);
        let servers = [
            json!({"name": "git", "command": "/bin/git-mcp", "args": ["-v"],
                   "env": [{"name": "A", "value": "b"}]}),
            json!({"type": "http", "name": "web", "url": "http://127.0.0.1/",
                   "headers": [{"name": "X", "value": "y"}]}),
        ];
        let PrivateFile { option, text } = mcp_config(&servers).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(option, "--mcp-config");
        assert_eq!(config["mcpServers"]["git"]["env"], json!({"A": "b"}));
        assert_eq!(config["mcpServers"]["web"]["headers"], json!({"X": "y"}));
    }
}
