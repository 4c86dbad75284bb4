//! A small ACP client for one agent process; every wait has a timeout, and no process is left behind.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Much longer than any step takes on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) session: String,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    next_id: u64,
}

/// The response and the frames of a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) answer: Value,
    pub(crate) frames: Vec<Value>,
}

impl Turn {
    /// The texts of agent messages.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let messages = self.updates().filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        messages.filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    pub(crate) fn updates(&self) -> impl Iterator<Item = &Value> {
        let updates = self.frames.iter().filter(|it| it["method"] == "session/update");
        updates.map(|it| &it["params"]["update"])
    }

    pub(crate) fn stop_reason(&self) -> &str {
        self.answer["result"]["stopReason"].as_str().unwrap_or("none")
    }
}

impl Client {
    /// Starts the process with a clean environment.
    pub(crate) fn start(flags: &[&str]) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
            .args(flags)
            .env_clear()
            .env("FAKE_TEST", "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send_line, lines) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                let count = stdout.read_until(b'\n', &mut line).unwrap_or(0);
                if count == 0 || send_line.send(line).is_err() {
                    return;
                }
            }
        });
        let (send_stderr, stderr) = channel();
        let mut pipe = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            let _ = send_stderr.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Client { child, session: String::new(), stdin, lines, stderr, next_id: 100 }
    }

    /// Starts an agent and opens a session.
    pub(crate) fn ready(flags: &[&str]) -> Client {
        let mut client = Client::initialized(flags);
        client.open("/");
        client
    }

    /// Opens a session and makes it the current one.
    pub(crate) fn open(&mut self, cwd: &str) -> Value {
        let answer = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        let id = answer["result"]["sessionId"].as_str().expect("a session");
        id.clone_into(&mut self.session);
        answer
    }

    pub(crate) fn initialized(flags: &[&str]) -> Client {
        let mut client = Client::start(flags);
        let params = json!({"protocolVersion": 1, "clientCapabilities": {"terminal": true}});
        assert!(client.call("initialize", &params)["result"].is_object());
        client
    }

    /// Starts an agent that stores its sessions in this folder.
    pub(crate) fn with_state(state: &Path, flags: &[&str]) -> Client {
        let state = ["--state", state.to_str().unwrap()];
        Client::initialized(&[&state[..], flags].concat())
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        self.send_line(&frame.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        // The agent may have exited on purpose; the test checks that elsewhere.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a request and returns its id.
    pub(crate) fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn cancel(&mut self) {
        let params = json!({"sessionId": self.session});
        self.notify("session/cancel", &params);
    }

    /// Sends a request and waits for its response; no other frame may precede it.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        let (answer, before) = self.answer_to(id, |_| None);
        assert_eq!(before, Vec::<Value>::new(), "frames before the answer to {method}");
        answer
    }

    pub(crate) fn start_prompt(&mut self, text: &str) -> u64 {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.send_request("session/prompt", &params)
    }

    /// Runs one turn; requests of the agent are not answered.
    pub(crate) fn prompt(&mut self, text: &str) -> Turn {
        self.prompt_with(text, |_| None)
    }

    /// Runs one turn; `answer` returns a result or an error for each request of the agent, or `None`.
    pub(crate) fn prompt_with(
        &mut self,
        text: &str,
        answer: impl FnMut(&Value) -> Option<Value>,
    ) -> Turn {
        let id = self.start_prompt(text);
        self.rest_of_turn(id, answer)
    }

    pub(crate) fn rest_of_turn(
        &mut self,
        id: u64,
        answer: impl FnMut(&Value) -> Option<Value>,
    ) -> Turn {
        let (answer, frames) = self.answer_to(id, answer);
        Turn { answer, frames }
    }

    /// The response to a request and the frames before it. `serve` returns `{"result":…}` or
    /// `{"error":…}` for requests of the agent.
    pub(crate) fn answer_to(
        &mut self,
        id: u64,
        mut serve: impl FnMut(&Value) -> Option<Value>,
    ) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let frame = self.frame();
            if frame["method"].is_null() && frame["id"] == id {
                return (frame, before);
            }
            if let Some(mut answer) = frame.get("id").and_then(|_| serve(&frame)) {
                answer["jsonrpc"] = json!("2.0");
                answer["id"] = frame["id"].clone();
                self.send(&answer);
            }
            before.push(frame);
        }
    }

    pub(crate) fn frame(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&line)))
    }

    /// The next line, including its end.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        self.lines.recv_timeout(BOUND).expect("a line in time")
    }

    /// Waits for the end of stdout and returns the lines before it.
    pub(crate) fn rest(&mut self) -> Vec<Vec<u8>> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("stdout did not end"),
            }
        }
    }

    /// Whether stdout has ended; received lines are dropped.
    pub(crate) fn stdout_ended(&mut self) -> bool {
        loop {
            match self.lines.recv_timeout(Duration::from_millis(1)) {
                Ok(_) => {}
                Err(why) => return why == RecvTimeoutError::Disconnected,
            }
        }
    }

    pub(crate) fn exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the agent exits", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// All of stderr, once it has ended.
    pub(crate) fn stderr(&mut self) -> String {
        self.stderr.recv_timeout(BOUND).expect("stderr ends in time")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + BOUND;
    while !is_true() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
