//! A plain ACP client: lines out, lines in; every received line is kept.

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read, Write},
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant},
};

/// The time after which a test reports that something hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    writer: Box<dyn Write + Send>,
    lines: Receiver<String>,
    next_id: u64,
    /// Everything received, in order.
    pub heard: Vec<Value>,
}

impl Client {
    pub fn new(reader: Box<dyn Read + Send>, writer: Box<dyn Write + Send>) -> Client {
        let (sender, lines) = sync_channel(1_000_000);
        std::thread::spawn(move || {
            for line in BufReader::with_capacity(1 << 18, reader).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Client { writer, lines, next_id: 0, heard: Vec::new() }
    }

    pub fn send_line(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).expect("the other side listens");
        self.writer.write_all(b"\n").expect("the other side listens");
        self.writer.flush().expect("the other side listens");
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send_line(
            &json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string(),
        );
    }

    /// Sends a request and returns its id at once.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(&frame.to_string());
        id
    }

    /// Sends a request and waits for the whole response.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The result of a request that must succeed.
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "`{method}` failed: {answer}");
        answer["result"].clone()
    }

    pub fn answer(&mut self, id: u64) -> Value {
        let is_it = |it: &Value| it.get("id") == Some(&json!(id)) && it.get("method").is_none();
        if let Some(found) = self.heard.iter().find(|it| is_it(it)) {
            return found.clone();
        }
        self.until(&format!("the answer to request {id}"), is_it)
    }

    /// Reads until a message satisfies the condition, and returns it.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.checked_sub(begin.elapsed()).unwrap_or_default();
            let Some(message) = self.next(left) else {
                panic!("timed out waiting for {what}; last message {:?}", self.heard.last());
            };
            if condition(&message) {
                return message;
            }
        }
    }

    /// The next message, or `None` after `bound` or when the other side closed.
    pub fn next(&mut self, bound: Duration) -> Option<Value> {
        let line = self.next_line(bound)?;
        let value: Value = serde_json::from_str(&line).expect("the hub speaks JSON");
        self.heard.push(value.clone());
        Some(value)
    }

    /// The next line as it was written.
    pub fn next_line(&mut self, bound: Duration) -> Option<String> {
        self.lines.recv_timeout(bound).ok()
    }

    pub fn respond(&mut self, to: &Value, result: &Value) {
        let frame = json!({ "jsonrpc": "2.0", "id": to["id"], "result": result });
        self.send_line(&frame.to_string());
    }

    /// Selects the agent and sends `initialize`.
    pub fn connect(&mut self, argv: &[String]) -> Value {
        let agent = json!({ "agent": { "name": "fake", "argv": argv } });
        self.notify("_jackfield/connect", &agent);
        self.hello()
    }

    pub fn hello(&mut self) -> Value {
        self.result("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))
    }

    /// Sends `initialize` as a client that knows the hub.
    pub fn hello_aware(&mut self) -> Value {
        let capabilities = json!({ "_meta": { "jackfield": {} } });
        self.result(
            "initialize",
            &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        )
    }

    pub fn open(&mut self, cwd: &std::path::Path) -> String {
        let result = self.result("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
        result["sessionId"].as_str().expect("a session id").to_owned()
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Runs one turn; returns the stop reason.
    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.send_prompt(session, text);
        let answer = self.answer(id);
        let reason = answer.pointer("/result/stopReason").and_then(Value::as_str);
        reason.unwrap_or_else(|| panic!("the prompt failed: {answer}")).to_owned()
    }

    /// The agent's text so far, concatenated.
    pub fn text(&self) -> String {
        let chunk = |it: &Value| {
            let update = it.pointer("/params/update")?;
            let is_text = update["sessionUpdate"] == "agent_message_chunk";
            is_text.then(|| update.pointer("/content/text")?.as_str().map(str::to_owned))?
        };
        self.heard.iter().filter_map(chunk).collect()
    }
}
