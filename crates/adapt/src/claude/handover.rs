//! What goes into the program: prompts as its messages, MCP servers as its configuration.

use crate::{Block, Handover, Prompt};
use serde_json::{Map, Value, json};

/// A prompt as a line of stdin. Images keep their place among the words.
pub(super) fn user(prompt: &Prompt) -> Value {
    let mut content = Vec::new();
    let mut words = Prompt::default();
    for block in &prompt.blocks {
        if let Block::Image { mime, data } = block {
            flush(&mut words, &mut content);
            let source = json!({"type": "base64", "media_type": mime, "data": data});
            content.push(json!({"type": "image", "source": source}));
        } else {
            words.blocks.push(block.clone());
        }
    }
    flush(&mut words, &mut content);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

fn flush(words: &mut Prompt, content: &mut Vec<Value>) {
    let text = std::mem::take(words).text();
    // The provider refuses an empty text.
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
}

/// The session's MCP servers.
pub(super) fn mcp(servers: &[Value]) -> Option<Handover> {
    let named: Map<String, Value> = servers.iter().filter_map(mcp_server).collect();
    let text = json!({"mcpServers": named}).to_string();
    (!named.is_empty()).then_some(Handover { option: "--mcp-config", text })
}

fn mcp_server(server: &Value) -> Option<(String, Value)> {
    let name = server["name"].as_str()?;
    let config = if let Some(kind @ ("http" | "sse")) = server["type"].as_str() {
        json!({"type": kind, "url": server["url"], "headers": pairs(&server["headers"])})
    } else {
        let args = server["args"].as_array().cloned().unwrap_or_default();
        let env = pairs(&server["env"]);
        json!({"type": "stdio", "command": server["command"], "args": args, "env": env})
    };
    Some((name.to_owned(), config))
}

/// ACP lists names and values, Claude has objects.
fn pairs(list: &Value) -> Map<String, Value> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |it: &Value| Some((it["name"].as_str()?.to_owned(), it["value"].clone()));
    list.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_keeps_its_place() {
        let blocks = json!([{"type": "text", "text": "before"},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "text", "text": "after"}, {"type": "resource_link", "uri": "file:///w/a"}]);
        let content = user(&Prompt::parse(&blocks, true).unwrap())["message"]["content"].clone();
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
        assert_eq!(
            content,
            json!([{"type": "text", "text": "before"}, {"type": "image", "source": source},
                   {"type": "text", "text": "after\n@/w/a"}])
        );
    }

    #[test]
    fn servers_become_a_file_because_they_have_keys() {
        assert_eq!(mcp(&[]), None);
        let servers = [
            json!({"name": "git", "command": "/bin/git-mcp", "args": ["-v"],
                   "env": [{"name": "A", "value": "b"}]}),
            json!({"type": "http", "name": "web", "url": "http://127.0.0.1/",
                   "headers": [{"name": "X", "value": "y"}]}),
        ];
        let Handover { option, text } = mcp(&servers).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(option, "--mcp-config");
        assert_eq!(config["mcpServers"]["git"]["env"], json!({"A": "b"}));
        assert_eq!(config["mcpServers"]["web"]["headers"], json!({"X": "y"}));
    }
}
