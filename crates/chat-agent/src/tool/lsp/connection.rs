//! One running language server: requests, open files, diagnostics.

use super::frames::LspFrameReader;
use crate::{
    mutex::lock,
    process::{new_process_marker, open_ledger},
    spawn_context::ServerSpawnContext,
};
use bytes::Bytes;
use jackfield_agents::{AgentHandle, AgentProcessEvent, LaunchCommand, StdoutFormat, spawn_agent};
use jackfield_protocol::{acp::Method, chain};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

/// Longer requests block the turn without use.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How long a server may take to read the project before the first request is sent anyway.
const LOADING_MAX: Duration = Duration::from_mins(1);
/// How long to wait for the diagnostics of a file. A server sends none for a file without problems
/// that it has seen before.
const DIAGNOSTICS_MAX: Duration = Duration::from_secs(10);
const QUEUE_LEN_MAX: usize = 64;
/// Discards stderr, which the guard would merge into the output.
const DISCARD_STDERR: &str = r#"exec "$0" "$@" 2>/dev/null"#;

/// Dropping it ends the server.
pub(super) struct LspConnection {
    handle: Arc<Mutex<AgentHandle>>,
    state: Arc<Mutex<ServerState>>,
    /// Changes with every message that changes the state.
    changes: watch::Receiver<u64>,
}

#[derive(Default)]
struct ServerState {
    next_id: u64,
    pending: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    /// The tokens of the operations that the server reports as running.
    running: HashSet<String>,
    /// The diagnostics of each file, by its URI, and the version of the file they are for.
    diagnostics: HashMap<String, Value>,
    /// The version and the text of each file that the server was sent.
    files: HashMap<String, (u64, String)>,
    has_ended: bool,
}

impl LspConnection {
    pub(super) fn start(
        command: &[String],
        context: &ServerSpawnContext,
    ) -> Result<LspConnection, String> {
        let shell = ["/bin/sh", "-c", DISCARD_STDERR].map(str::to_owned);
        let launch = LaunchCommand {
            argv: shell.into_iter().chain(command.iter().cloned()).collect(),
            cwd: context.dir.clone(),
            env: context.env.clone(),
            stdout_format: StdoutFormat::Bytes,
        };
        let (ledger, marker) = (open_ledger(&context.ledger_dir)?, new_process_marker("lsp")?);
        let (sender, events) = mpsc::channel(QUEUE_LEN_MAX);
        let handle = spawn_agent(&context.guard, &launch, &marker, &ledger, sender, ())
            .map_err(|error| chain(&error))?;
        let handle = Arc::new(Mutex::new(handle));
        let state = Arc::default();
        let (change_sender, changes) = watch::channel(0);
        let reader = ServerReader {
            handle: Arc::downgrade(&handle),
            state: Arc::clone(&state),
            changes: change_sender,
        };
        tokio::spawn(reader.read_events(events));
        Ok(LspConnection { handle, state, changes })
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.state).has_ended
    }

    pub(super) async fn initialize(&self, root_uri: &str) -> Result<(), String> {
        let symbols = json!({ "hierarchicalDocumentSymbolSupport": true });
        let capabilities = json!({
            "textDocument": {
                "documentSymbol": symbols, "hover": { "contentFormat": ["plaintext", "markdown"] },
                "publishDiagnostics": { "versionSupport": true },
            },
            "window": { "workDoneProgress": true },
            "workspace": { "configuration": true, "workspaceFolders": true },
        });
        let folder = json!({ "uri": root_uri, "name": "workspace" });
        let params = json!({
            "processId": null, "rootUri": root_uri, "capabilities": capabilities,
            "workspaceFolders": [folder],
        });
        // The method has the same name in ACP.
        self.request(Method::Initialize.name(), &params).await?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))
    }

    /// Sends a request and waits for its result, for a limited time.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Result<Value, String> {
        let (sender, response) = oneshot::channel();
        let id = {
            let mut state = lock(&self.state);
            if state.has_ended {
                return Err(ended());
            }
            state.next_id += 1;
            let id = state.next_id;
            state.pending.insert(id, sender);
            id
        };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message)?;
        match timeout(REQUEST_MAX, response).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ended()),
            Err(_) => {
                lock(&self.state).pending.remove(&id);
                let secs = REQUEST_MAX.as_secs();
                Err(format!("the language server has not answered `{method}` within {secs} s"))
            }
        }
    }

    /// Sends the current text of a file, if the server does not have it.
    pub(super) fn sync_file(&self, uri: &str, language: &str, text: &str) -> Result<(), String> {
        let mut state = lock(&self.state);
        let document = |version: u64| json!({ "uri": uri, "version": version });
        let (method, params) = match state.files.get(uri) {
            Some((_, sent)) if sent == text => return Ok(()),
            Some((version, _)) => {
                let changes = json!([{ "text": text }]);
                let params =
                    json!({ "textDocument": document(version + 1), "contentChanges": changes });
                ("textDocument/didChange", params)
            }
            None => {
                let mut document = document(1);
                (document["languageId"], document["text"]) = (language.into(), text.into());
                ("textDocument/didOpen", json!({ "textDocument": document }))
            }
        };
        let version = params["textDocument"]["version"].as_u64().unwrap_or(1);
        state.files.insert(uri.to_owned(), (version, text.to_owned()));
        // What the server reported is about the text before.
        state.diagnostics.remove(uri);
        drop(state);
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Waits until the server reports no running operation, such as reading the project.
    pub(super) async fn wait_until_loaded(&self) {
        let mut changes = self.changes.clone();
        let is_loaded = |_: &u64| {
            let state = lock(&self.state);
            state.running.is_empty() || state.has_ended
        };
        let _timed_out = timeout(LOADING_MAX, changes.wait_for(is_loaded)).await;
    }

    /// Waits for the diagnostics of a file that was sent. `None` if there are none in time.
    pub(super) async fn diagnostics(&self, uri: &str) -> Option<Value> {
        let mut changes = self.changes.clone();
        let is_known = |_: &u64| {
            let state = lock(&self.state);
            state.diagnostics.contains_key(uri) || state.has_ended
        };
        let _timed_out = timeout(DIAGNOSTICS_MAX, changes.wait_for(is_known)).await;
        lock(&self.state).diagnostics.get(uri).cloned()
    }

    fn send(&self, message: &Value) -> Result<(), String> {
        send_message(&mut lock(&self.handle), message)
    }
}

/// The handle ends each part with a line feed. The one after the JSON counts as a part of it.
fn send_message(handle: &mut AgentHandle, message: &Value) -> Result<(), String> {
    let text = message.to_string();
    let head = format!("Content-Length: {}\r", text.len() + 1);
    for part in [head, "\r".to_owned(), text] {
        let full = |_| "the language server does not read its input".to_owned();
        handle.send(Bytes::from(part)).map_err(full)?;
    }
    handle.flush();
    Ok(())
}

fn ended() -> String {
    "the language server has ended; check its command in OPENAI_LANGUAGE_SERVERS".to_owned()
}

/// Reads the output of the server until it ends.
struct ServerReader {
    handle: std::sync::Weak<Mutex<AgentHandle>>,
    state: Arc<Mutex<ServerState>>,
    changes: watch::Sender<u64>,
}

impl ServerReader {
    async fn read_events(self, mut events: mpsc::Receiver<((), AgentProcessEvent)>) {
        let mut frames = LspFrameReader::default();
        while let Some(((), event)) = events.recv().await {
            let output = match event {
                AgentProcessEvent::Output(output) => output,
                AgentProcessEvent::Gone(_) => {
                    self.end();
                    continue;
                }
                _ => continue,
            };
            match frames.push(&output) {
                Ok(messages) => messages.iter().for_each(|it| self.on_message(it)),
                Err(error) => {
                    tracing::warn!("language server: {error}");
                    self.end();
                }
            }
            self.changes.send_modify(|it| *it += 1);
        }
        self.end();
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        // Dropping the senders fails the requests.
        state.pending.clear();
        drop(state);
        self.changes.send_modify(|it| *it += 1);
    }

    fn on_message(&self, message: &Value) {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (None, Some(id)) => self.on_response(id.as_u64(), message),
            (Some(method), Some(id)) => self.answer_request(method, id, params),
            (Some("textDocument/publishDiagnostics"), None) => {
                let uri = params["uri"].as_str().unwrap_or_default().to_owned();
                lock(&self.state).diagnostics.insert(uri, params["diagnostics"].clone());
            }
            (Some("$/progress"), None) => {
                let (token, kind) = (params["token"].to_string(), &params["value"]["kind"]);
                let running = &mut lock(&self.state).running;
                if kind == "begin" {
                    running.insert(token);
                } else if kind == "end" {
                    running.remove(&token);
                }
            }
            _ => {}
        }
    }

    fn on_response(&self, id: Option<u64>, message: &Value) {
        let Some(sender) = id.and_then(|it| lock(&self.state).pending.remove(&it)) else { return };
        let result = match message.get("error") {
            None | Some(Value::Null) => Ok(message["result"].clone()),
            Some(error) => Err(error["message"].as_str().unwrap_or("unknown error").to_owned()),
        };
        // The request may have timed out.
        let _ = sender.send(result);
    }

    /// We have no configuration for the server, and nothing to register.
    fn answer_request(&self, method: &str, id: &Value, params: &Value) {
        let result = match method {
            "workspace/configuration" => {
                let count = params["items"].as_array().map_or(0, Vec::len);
                json!(vec![Value::Null; count])
            }
            _ => Value::Null,
        };
        if let Some(handle) = self.handle.upgrade() {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            // A server that does not read is ended by its requests.
            let _ = send_message(&mut lock(&handle), &answer);
        }
    }
}
