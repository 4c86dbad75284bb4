//! Requests of a client that behave the same for every program.

use crate::support::{MemoryStore, new_adapter};
use jackfield_adapters::{Adapter, AdapterOutput};
use jackfield_agents::AgentExit;
use serde_json::{Value, json};

struct TestClient {
    adapter: Adapter,
    store: MemoryStore,
}

impl TestClient {
    fn new(agent: &str, dialect: &str) -> TestClient {
        let adapter = new_adapter(agent, dialect);
        let mut client = TestClient { adapter, store: MemoryStore::default() };
        client.request("session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
        client
    }

    fn outputs(&mut self) -> Vec<AdapterOutput> {
        std::iter::from_fn(|| self.adapter.take_output()).collect()
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) -> Vec<AdapterOutput> {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.adapter.on_client_frame(&frame, &mut self.store);
        self.outputs()
    }

    /// Sends a request and returns the immediate response.
    fn request(&mut self, method: &str, params: &Value) -> Value {
        let outputs = self.send(0, method, params);
        responses(&outputs, 0).pop().unwrap_or_default()
    }

    fn prompt(&mut self, id: u64) -> Vec<AdapterOutput> {
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        self.send(id, "session/prompt", &json!({ "sessionId": "session-1", "prompt": prompt }))
    }

    fn line(&mut self, program: u64, line: &str) -> Vec<AdapterOutput> {
        self.adapter.on_line(program, line, &mut self.store);
        self.outputs()
    }

    fn end(&mut self, program: u64) -> Vec<AdapterOutput> {
        let exit = AgentExit { code: Some(0), ..AgentExit::default() };
        self.adapter.on_exit(program, &exit, &mut self.store);
        self.outputs()
    }
}

fn responses(outputs: &[AdapterOutput], id: u64) -> Vec<Value> {
    let frames = outputs.iter().filter_map(|it| match it {
        AdapterOutput::SendToClient(frame)
            if frame["id"] == id && frame.get("method").is_none() =>
        {
            Some(frame)
        }
        _ => None,
    });
    frames.cloned().collect()
}

/// The id, the arguments and the files of a started program.
type StartedProgram = (u64, Vec<String>, Vec<(String, String)>);

fn find_started(outputs: &[AdapterOutput]) -> Option<StartedProgram> {
    outputs.iter().find_map(|it| match it {
        AdapterOutput::StartProgram { program, argv, files, .. } => {
            Some((*program, argv.clone(), files.clone()))
        }
        _ => None,
    })
}

const TURN_COMPLETED: &str =
    r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
fn turn_waits_until_the_previous_program_has_exited() {
    let mut client = TestClient::new("codex", "codex");
    let (first, argv, _) = find_started(&client.prompt(1)).unwrap();
    assert_eq!(argv[0], "exec");
    client.line(first, r#"{"type":"thread.started","thread_id":"t-7"}"#);
    let outputs = client.line(first, TURN_COMPLETED);
    assert_eq!(responses(&outputs, 1)[0]["result"]["stopReason"], "end_turn");
    assert!(outputs.contains(&AdapterOutput::FinishProgram { program: first }));
    assert_eq!(find_started(&client.prompt(2)), None, "two programs would write the same session");
    let (second, argv, _) = find_started(&client.end(first)).unwrap();
    assert!(second != first && argv.contains(&"t-7".to_owned()), "{argv:?}");
}

#[test]
fn waiting_prompt_is_cancelled_without_a_program() {
    let mut client = TestClient::new("codex", "codex");
    let (first, _, _) = find_started(&client.prompt(1)).unwrap();
    client.line(first, TURN_COMPLETED);
    client.prompt(2);
    let cancel = json!({ "method": "session/cancel", "params": { "sessionId": "session-1" } });
    client.adapter.on_client_frame(&cancel, &mut client.store);
    let outputs = client.outputs();
    assert_eq!(responses(&outputs, 2)[0]["result"]["stopReason"], "cancelled");
    assert_eq!(find_started(&client.end(first)), None);
}

#[test]
fn closing_a_session_in_a_turn_responds_and_stops_the_program() {
    let mut client = TestClient::new("codex", "codex");
    let (program, _, _) = find_started(&client.prompt(1)).unwrap();
    let outputs = client.send(2, "session/close", &json!({ "sessionId": "session-1" }));
    assert_eq!(responses(&outputs, 1)[0]["result"]["stopReason"], "cancelled");
    assert!(outputs.contains(&AdapterOutput::StopProgram { program }));
    assert!(client.line(program, TURN_COMPLETED).is_empty(), "the session is closed");
}

#[test]
fn invalid_requests_are_refused_with_the_reason() {
    let mut client = TestClient::new("codex", "codex");
    let prompt = |session: &str, block: Value| json!({ "sessionId": session, "prompt": [block] });
    let text = json!({ "type": "text", "text": "x" });
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "AA==" });
    let server = json!({ "name": "a", "command": "/a", "args": [], "env": [] });
    let refused = [
        ("session/prompt", prompt("s9", text), -32002, "no session `s9`"),
        ("session/prompt", prompt("session-1", image), -32602, "not support `image`"),
        ("session/resume", json!({ "sessionId": "s9", "cwd": "/w" }), -32002, "no session `s9`"),
        (
            "session/set_mode",
            json!({ "sessionId": "session-1", "modeId": "x" }),
            -32602,
            "unknown mode `x`",
        ),
        (
            "session/new",
            json!({ "cwd": "/w", "mcpServers": [server] }),
            -32602,
            "not support MCP servers",
        ),
        ("session/fork", json!({}), -32601, "`session/fork`"),
        (
            "session/set_config_option",
            json!({ "sessionId": "session-1", "configId": "reasoning", "value": "--x" }),
            -32602,
            "--x",
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": "session-1", "configId": "model", "value": "-rf" }),
            -32602,
            "-rf",
        ),
    ];
    for (method, params, code, why) in refused {
        let error = client.request(method, &params)["error"].clone();
        assert_eq!(error["code"], code, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{method}: {error}");
    }
    client.prompt(1);
    let second = client.prompt(2);
    assert_eq!(responses(&second, 2)[0]["error"]["code"], -32600, "one turn at a time");
}

#[test]
fn later_adapter_resumes_with_the_settings_of_the_session() {
    let mut client = TestClient::new("codex", "codex");
    let (program, _, _) = find_started(&client.prompt(1)).unwrap();
    client.line(program, r#"{"type":"thread.started","thread_id":"t-7"}"#);
    client.request("session/set_mode", &json!({ "sessionId": "session-1", "modeId": "read-only" }));
    let store = std::mem::take(&mut client.store);

    let mut later = TestClient::new("codex", "codex");
    later.store = store;
    let resumed =
        later.request("session/resume", &json!({ "sessionId": "session-1", "cwd": "/w" }));
    assert_eq!(resumed["result"]["modes"]["currentModeId"], "read-only");
    let (_, argv, _) = find_started(&later.prompt(1)).unwrap();
    assert!(argv.contains(&"t-7".to_owned()), "{argv:?}");
    assert!(argv.contains(&"sandbox_mode=\"read-only\"".to_owned()), "{argv:?}");
}

#[test]
fn mcp_server_keys_are_in_a_file_and_not_in_the_arguments() {
    let mut client = TestClient::new("claude", "claude");
    let env = json!([{ "name": "KEY", "value": "hunter2" }]);
    let server = json!({ "name": "a", "command": "/a", "args": [], "env": env });
    client.request("session/new", &json!({ "cwd": "/w", "mcpServers": [server] }));
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    let outputs =
        client.send(1, "session/prompt", &json!({ "sessionId": "session-2", "prompt": prompt }));
    let (_, argv, files) = find_started(&outputs).unwrap();
    assert!(files[0].1.contains("hunter2") && files[0].0.starts_with("/scratch/"), "{files:?}");
    assert!(argv.contains(&files[0].0) && !argv.iter().any(|it| it.contains("hunter2")));
}

#[test]
fn extra_directories_become_arguments_or_are_refused() {
    let dirs = json!(["/srv/a b", "/srv/c"]);
    let params = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": dirs });
    let cases: [(&str, &str, &[&str]); 4] = [
        ("claude", "claude", &["--add-dir", "/srv/a b", "--add-dir", "/srv/c"]),
        (
            "gemini",
            "gemini",
            &["--include-directories", "/srv/a b", "--include-directories", "/srv/c"],
        ),
        (
            "codex",
            "codex",
            &["-c", r#"sandbox_workspace_write.writable_roots=["/srv/a b","/srv/c"]"#],
        ),
        (
            "codex",
            "codex-app-server",
            &["-c", r#"sandbox_workspace_write.writable_roots=["/srv/a b","/srv/c"]"#],
        ),
    ];
    for (agent, dialect, expected) in cases {
        let adapter = new_adapter(agent, dialect);
        let mut client = TestClient { adapter, store: MemoryStore::default() };
        let initialized = client.request("initialize", &json!({ "protocolVersion": 1 }));
        let offered = "/result/agentCapabilities/sessionCapabilities/additionalDirectories";
        assert!(initialized.pointer(offered).is_some(), "{dialect}: {initialized}");
        client.request("session/new", &params);
        let (_, argv, _) = find_started(&client.prompt(1)).unwrap();
        assert!(argv.windows(expected.len()).any(|it| it == expected), "{dialect}: {argv:?}");
        assert_eq!(client.store.records["session-1"].additional_directories.len(), 2);
    }
    let mut client = TestClient::new("cursor", "cursor");
    let refused = client.request("session/new", &params);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("Cursor CLI has no option for extra directories"), "{message}");
    let mut client = TestClient::new("gemini", "gemini");
    let relative = json!({ "cwd": "/w", "additionalDirectories": ["x"] });
    assert_eq!(client.request("session/new", &relative)["error"]["code"], -32602);
}

#[test]
fn program_that_cannot_ask_approves_everything_itself_if_the_client_does() {
    let approving = json!({ "cwd": "/w", "_meta": { "jackfield": { "approve": "all" } } });
    let cases = [
        ("gemini", "gemini", "--yolo"),
        ("qwen", "qwen", "--yolo"),
        ("opencode", "opencode", "--auto"),
        ("cursor", "cursor", "--force"),
        ("copilot", "copilot", "--allow-all-tools"),
    ];
    for (agent, dialect, flag) in cases {
        let started = |params: &Value| {
            let adapter = new_adapter(agent, dialect);
            let mut client = TestClient { adapter, store: MemoryStore::default() };
            client.request("session/new", params);
            find_started(&client.prompt(1)).unwrap().1
        };
        let has_flag = |argv: Vec<String>| argv.iter().any(|it| it == flag);
        assert!(has_flag(started(&approving)), "{agent}");
        assert!(!has_flag(started(&json!({ "cwd": "/w" }))), "{agent}");
    }
}

#[test]
fn text_of_a_program_that_should_print_json_is_not_lost() {
    let texts = |outputs: &[AdapterOutput], pointer: &str| -> Vec<String> {
        let frames = outputs.iter().filter_map(|it| match it {
            AdapterOutput::SendToClient(frame) => frame.pointer(pointer)?.as_str(),
            _ => None,
        });
        frames.map(str::to_owned).collect()
    };
    let (text, notice) = ("/params/update/content/text", "/params/update/_meta/jackfield/notice");
    let mut client = TestClient::new("gemini", "gemini");
    let (program, _, _) = find_started(&client.prompt(1)).unwrap();
    assert!(client.line(program, "Hello,").is_empty(), "held until it is clear what it is");
    client.line(program, "you.");
    let outputs = client.end(program);
    assert_eq!(texts(&outputs, text), ["Hello,\nyou."]);
    assert_eq!(responses(&outputs, 1)[0]["result"]["stopReason"], "end_turn");
    let mut client = TestClient::new("codex", "codex");
    let (program, _, _) = find_started(&client.prompt(1)).unwrap();
    client.line(program, "Update available");
    let outputs = client.line(program, r#"{"type":"turn.started"}"#);
    assert_eq!(texts(&outputs, notice), ["Update available"]);
    assert_eq!(texts(&client.line(program, "a warning"), notice), ["a warning"]);
}
