//! What the program is told about the session: thread, sandbox, MCP servers, input.

use crate::{Block, Prompt, Start, Turn};
use serde_json::{Map, Value, json};

/// The request that opens the thread.
pub(super) fn opening(start: &Start<'_>, turn: &mut Turn) -> (&'static str, Value) {
    let mut params = json!({"cwd": start.cwd});
    if let Some((policy, sandbox)) = start.mode.and_then(mode) {
        params["approvalPolicy"] = json!(policy);
        params["sandbox"] = json!(sandbox);
    }
    if let Some(model) = start.model {
        params["model"] = json!(model);
    }
    let servers = mcp_servers(start.mcp, turn);
    if !servers.is_empty() {
        params["config"] = json!({"mcp_servers": servers});
    }
    match start.native {
        None => ("thread/start", params),
        Some(thread) => {
            params["threadId"] = json!(thread);
            // Nobody asks for what was said before.
            params["excludeTurns"] = json!(true);
            ("thread/resume", params)
        }
    }
}

/// When Codex asks, and what it may touch without asking. No mode: its own configuration decides.
fn mode(id: &str) -> Option<(&'static str, &'static str)> {
    match id {
        "read-only" => Some(("on-request", "read-only")),
        "ask" => Some(("untrusted", "workspace-write")),
        "auto" => Some(("on-request", "workspace-write")),
        "full-access" => Some(("never", "danger-full-access")),
        _ => None,
    }
}

/// ACP's servers as Codex configures them.
fn mcp_servers(servers: &[Value], turn: &mut Turn) -> Map<String, Value> {
    let mut config = Map::new();
    for server in servers {
        let name = server["name"].as_str().unwrap_or("server");
        let entry = match server["type"].as_str() {
            None | Some("stdio") => json!({
                "command": server["command"],
                "args": server["args"],
                "env": pairs(&server["env"]),
            }),
            Some("http") => {
                json!({"url": server["url"], "http_headers": pairs(&server["headers"])})
            }
            Some(other) => {
                turn.notice(&format!(
                    "Codex knows no MCP servers over `{other}`: `{name}` is left out"
                ));
                continue;
            }
        };
        config.insert(name.to_owned(), entry);
    }
    config
}

/// `[{name, value}]` as an object.
fn pairs(list: &Value) -> Map<String, Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|it| Some((it["name"].as_str()?.to_owned(), it["value"].clone()))).collect()
}

/// The prompt: everything that is text, then the pictures.
pub(super) fn input(prompt: &Prompt) -> Value {
    let mut input = Vec::new();
    let text = prompt.text();
    if !text.is_empty() {
        input.push(json!({"type": "text", "text": text}));
    }
    for block in &prompt.blocks {
        if let Block::Image { mime, data } = block {
            input.push(json!({"type": "image", "url": format!("data:{mime};base64,{data}")}));
        }
    }
    Value::Array(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_opened_with_mode_model_and_servers() {
        let mcp = [
            json!({"name": "files", "command": "/bin/files", "args": ["-x"], "env": [{"name": "A", "value": "1"}]}),
            json!({"type": "http", "name": "web", "url": "http://127.0.0.1:1/", "headers": []}),
            json!({"type": "sse", "name": "old", "url": "http://127.0.0.1:2/", "headers": []}),
        ];
        let start = Start {
            cwd: "/w",
            native: None,
            model: Some("m"),
            reasoning: None,
            mode: Some("auto"),
            mcp: &mcp,
        };
        let mut turn = Turn::default();
        let (method, params) = opening(&start, &mut turn);
        assert_eq!(method, "thread/start");
        assert_eq!(
            params,
            json!({"cwd": "/w", "approvalPolicy": "on-request", "sandbox": "workspace-write", "model": "m",
            "config": {"mcp_servers": {
                "files": {"command": "/bin/files", "args": ["-x"], "env": {"A": "1"}},
                "web": {"url": "http://127.0.0.1:1/", "http_headers": {}},
            }}})
        );
        assert_eq!(turn.effects.len(), 1, "what is left out is told");
        let (method, params) = opening(&Start { native: Some("t"), ..start }, &mut turn);
        assert_eq!((method, &params["threadId"]), ("thread/resume", &json!("t")));
    }

    #[test]
    fn pictures_follow_the_text() {
        let prompt = Prompt {
            blocks: vec![
                Block::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() },
                Block::Text("what is it?".to_owned()),
            ],
        };
        assert_eq!(
            input(&prompt),
            json!([{"type": "text", "text": "what is it?"},
                   {"type": "image", "url": "data:image/png;base64,AA=="}])
        );
    }
}
