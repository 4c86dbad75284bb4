//! The daemon is killed while an editor or a terminal is connected: `acp` and `attach` go on with the next one.

use crate::home::{TestHome, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// An agent that answers every prompt but `hang`.
const AGENT: &str = r#"
say() {
  echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"one\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}}}"
}
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1}}" ;;
    *'"session/new"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"one\"}}" ;;
    *'"session/prompt"'*'"text":"hang"'*) say working. ;;
    *'"session/prompt"'*)
      say answered.
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}}" ;;
  esac
done"#;

/// A command whose output is read while it runs.
struct LiveCommand {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl LiveCommand {
    fn start(home: &TestHome, args: &[&str]) -> LiveCommand {
        home.write_program("test-agent", AGENT);
        let mut child = home.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = follow(child.stdout.take().unwrap());
        let stderr = follow(child.stderr.take().unwrap());
        LiveCommand { child, stdin, stdout, stderr }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn printed(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    fn wait_until_printed(&self, text: &str, count: usize) {
        let is_there = || count <= self.printed().matches(text).count();
        wait_for(&format!("{count} of `{text}` in {:?}", self.stdout), is_there);
    }

    /// Closes stdin and waits for the exit code.
    fn finish(mut self) -> (i32, String, String) {
        drop(self.stdin.take());
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let stderr = self.stderr.lock().unwrap().clone();
        (code, self.printed(), stderr)
    }
}

fn follow(mut stream: impl std::io::Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let written = text.clone();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            written.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    text
}

fn kill_daemon(home: &TestHome) {
    let lock = fs::read_to_string(home.path().join("state/jackfield/lock")).unwrap();
    let pid: i32 = lock.lines().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// An editor that speaks to `jackfield acp`.
struct Editor {
    command: LiveCommand,
    last_id: u64,
}

impl Editor {
    fn start(home: &TestHome) -> (Editor, String) {
        let command = LiveCommand::start(home, &["acp", "--", "test-agent"]);
        let mut editor = Editor { command, last_id: 0 };
        let id = editor.send("initialize", &json!({ "protocolVersion": 1 }));
        editor.answer(id);
        let params = json!({ "cwd": home.path().join("project"), "mcpServers": [] });
        let id = editor.send("session/new", &params);
        let session = editor.answer(id)["result"]["sessionId"].as_str().unwrap().to_owned();
        (editor, session)
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.command.type_line(&frame.to_string());
        id
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let blocks = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": blocks }))
    }

    fn messages(&self) -> Vec<Value> {
        let printed = self.command.printed();
        let whole = &printed[..printed.rfind('\n').map_or(0, |it| it + 1)];
        whole.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    /// Waits for the response to a request, of which there must be one.
    fn answer(&self, id: u64) -> Value {
        let find = || {
            let messages = self.messages();
            let mut answers = messages.into_iter().filter(|it| it["id"] == id);
            let first = answers.next();
            assert!(answers.next().is_none(), "one answer to {id}");
            first
        };
        wait_for(&format!("the answer to request {id}"), || find().is_some());
        find().unwrap()
    }

    /// The texts of all updates.
    fn updates(&self) -> Vec<String> {
        let updates = self.messages().into_iter().filter(|it| it["method"] == "session/update");
        let text = |it: Value| it.pointer("/params/update/content/text").unwrap().to_string();
        updates.map(text).collect()
    }
}

#[test]
fn editor_keeps_its_session_when_the_daemon_is_killed() {
    let home = TestHome::new();
    let (mut editor, session) = Editor::start(&home);
    let mut expected = Vec::new();
    // In the middle of a turn, and twice.
    for round in 1..=2 {
        let id = editor.prompt(&session, "hang");
        editor.command.wait_until_printed("working.", round);
        kill_daemon(&home);
        let answer = editor.answer(id);
        assert_eq!(answer["error"]["data"]["jackfield"]["code"], "interrupted", "{answer}");
        let id = editor.prompt(&session, "the next prompt works");
        assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
        expected.extend(["\"working.\"", "\"answered.\""]);
        assert_eq!(editor.updates(), expected, "no event is lost or repeated");
    }
    // Between turns.
    kill_daemon(&home);
    let id = editor.prompt(&session, "once more");
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    expected.push("\"answered.\"");
    assert_eq!(editor.updates(), expected);
    let (code, _, stderr) = editor.command.finish();
    assert_eq!((code, stderr.matches("reconnected to the daemon\n").count()), (0, 3), "{stderr}");
    let log = home.run(&["log", &session]);
    assert_eq!(log.stdout.matches("interrupted").count(), 2, "{}", log.stdout);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn attach_goes_on_when_the_daemon_is_killed_and_says_so() {
    let home = TestHome::new();
    let mut attach = LiveCommand::start(&home, &["attach", "--new", "--", "test-agent"]);
    attach.type_line("hang");
    attach.wait_until_printed("working.", 1);
    kill_daemon(&home);
    attach.type_line("the next prompt works");
    attach.wait_until_printed("answered.", 1);
    let (code, stdout, stderr) = attach.finish();
    assert_eq!(stdout, "working.\nanswered.\n", "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines.contains(&"the daemon has ended; reconnecting…"), "{stderr}");
    assert!(lines.contains(&"reconnected to the daemon"), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert_eq!(code, 1, "the interrupted prompt failed: {stderr}");
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}

#[test]
fn stopped_daemon_is_started_again_by_the_next_request_of_the_editor() {
    let home = TestHome::new();
    let (mut editor, session) = Editor::start(&home);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    assert_eq!(home.run(&["daemon", "status"]).code, 6, "the editor does not start it by itself");
    let id = editor.prompt(&session, "the next prompt works");
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.command.finish().0, 0);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
}
