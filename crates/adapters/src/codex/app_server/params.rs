//! The parameters of requests to Codex: thread, sandbox, MCP servers, input.

use crate::mcp::to_object;
use crate::{AdapterTurn, PromptBlock, PromptInput, StartContext};
use serde_json::{Map, Value, json};

/// The method and the parameters of the request that opens the thread.
pub(super) fn thread_request(
    start: &StartContext<'_>,
    turn: &mut AdapterTurn,
) -> (&'static str, Value) {
    let mut params = json!({"cwd": start.cwd});
    let mode = start.mode.and_then(approval_and_sandbox);
    let mode = if start.is_sandboxed { Some(without_own_sandbox(mode)) } else { mode };
    if let Some((policy, sandbox)) = mode {
        params["approvalPolicy"] = json!(policy);
        params["sandbox"] = json!(sandbox);
    }
    if let Some(model) = start.model {
        params["model"] = json!(model);
    }
    let servers = mcp_servers(start.mcp_servers, turn);
    if !servers.is_empty() {
        params["config"] = json!({"mcp_servers": servers});
    }
    match start.agent_session_id {
        None => ("thread/start", params),
        Some(thread) => {
            params["threadId"] = json!(thread);
            // The earlier turns are not needed.
            params["excludeTurns"] = json!(true);
            ("thread/resume", params)
        }
    }
}

type ApprovalAndSandbox = (&'static str, &'static str);

/// The same approvals without a sandbox of Codex. What its sandbox would have refused is requested: with
/// `on-request` Codex requests nothing if it has no sandbox.
fn without_own_sandbox(mode: Option<ApprovalAndSandbox>) -> ApprovalAndSandbox {
    let policy = match mode {
        Some(("on-request", "workspace-write")) => "on-request",
        Some(("never", _)) => "never",
        _ => "untrusted",
    };
    (policy, "danger-full-access")
}

/// The approval policy and the sandbox of a mode. For other modes, Codex's own configuration
/// decides.
fn approval_and_sandbox(id: &str) -> Option<ApprovalAndSandbox> {
    match id {
        "read-only" => Some(("on-request", "read-only")),
        "ask" => Some(("untrusted", "workspace-write")),
        "auto" => Some(("on-request", "workspace-write")),
        "full-access" => Some(("never", "danger-full-access")),
        _ => None,
    }
}

/// Converts ACP's MCP servers into the configuration of Codex.
fn mcp_servers(servers: &[Value], turn: &mut AdapterTurn) -> Map<String, Value> {
    let mut config = Map::new();
    for server in servers {
        let name = server["name"].as_str().unwrap_or("server");
        let entry = match server["type"].as_str() {
            None | Some("stdio") => json!({
                "command": server["command"],
                "args": server["args"],
                "env": to_object(&server["env"]),
            }),
            Some("http") => {
                json!({"url": server["url"], "http_headers": to_object(&server["headers"])})
            }
            Some(other) => {
                turn.send_notice(&format!(
                    "Codex does not support MCP servers over `{other}`: `{name}` is left out"
                ));
                continue;
            }
        };
        config.insert(name.to_owned(), entry);
    }
    config
}

/// Converts a prompt: first all text, then the images.
pub(super) fn turn_input(prompt: &PromptInput) -> Value {
    let mut input = Vec::new();
    let text = prompt.to_text();
    if !text.is_empty() {
        input.push(json!({"type": "text", "text": text}));
    }
    for block in &prompt.blocks {
        if let PromptBlock::Image { mime, data } = block {
            input.push(json!({"type": "image", "url": format!("data:{mime};base64,{data}")}));
        }
    }
    Value::Array(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_is_opened_with_mode_model_and_servers() {
        let mcp = [
            json!({"name": "files", "command": "/bin/files", "args": ["-x"], "env": [{"name": "A", "value": "1"}]}),
            json!({"type": "http", "name": "web", "url": "http://127.0.0.1:1/", "headers": []}),
            json!({"type": "sse", "name": "old", "url": "http://127.0.0.1:2/", "headers": []}),
        ];
        let start = StartContext {
            cwd: "/w",
            agent_session_id: None,
            model: Some("m"),
            reasoning: None,
            mode: Some("auto"),
            is_sandboxed: false,
            mcp_servers: &mcp,
        };
        let mut turn = AdapterTurn::default();
        let (method, params) = thread_request(&start, &mut turn);
        assert_eq!(method, "thread/start");
        assert_eq!(
            params,
            json!({"cwd": "/w", "approvalPolicy": "on-request", "sandbox": "workspace-write", "model": "m",
            "config": {"mcp_servers": {
                "files": {"command": "/bin/files", "args": ["-x"], "env": {"A": "1"}},
                "web": {"url": "http://127.0.0.1:1/", "http_headers": {}},
            }}})
        );
        assert_eq!(turn.effects.len(), 1, "a notice names the server that is left out");
        let (method, params) =
            thread_request(&StartContext { agent_session_id: Some("t"), ..start }, &mut turn);
        assert_eq!((method, &params["threadId"]), ("thread/resume", &json!("t")));
    }

    #[test]
    fn inside_a_sandbox_codex_has_none_of_its_own_and_requests_what_that_would_refuse() {
        let request = |mode| {
            let start = StartContext {
                cwd: "/w",
                agent_session_id: None,
                model: None,
                reasoning: None,
                mode,
                is_sandboxed: true,
                mcp_servers: &[],
            };
            let (_, params) = thread_request(&start, &mut AdapterTurn::default());
            assert_eq!(params["sandbox"], "danger-full-access", "{mode:?}");
            params["approvalPolicy"].as_str().unwrap().to_owned()
        };
        let modes = [None, Some("ask"), Some("read-only"), Some("auto"), Some("full-access")];
        let expected = ["untrusted", "untrusted", "untrusted", "on-request", "never"];
        assert_eq!(modes.map(request), expected);
    }

    #[test]
    fn images_follow_the_text() {
        let prompt = PromptInput {
            blocks: vec![
                PromptBlock::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() },
                PromptBlock::Text("what is it?".to_owned()),
            ],
        };
        assert_eq!(
            turn_input(&prompt),
            json!([{"type": "text", "text": "what is it?"},
                   {"type": "image", "url": "data:image/png;base64,AA=="}])
        );
    }
}
