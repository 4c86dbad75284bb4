//! A scripted hub: for every method the lines with which it answers.

use crate::home::TestHome;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::Shutdown,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    sync::{Arc, Mutex},
    thread,
};

/// A script line that closes the connection.
pub(crate) const CLOSE_CONNECTION: &str = "close connection";

/// The answer to each method. `$id` stands for the id of the request, `$prompt` for that of the last prompt. A response
/// of the client is looked up as `answer`.
#[derive(Default)]
pub(crate) struct FakeHub {
    script: BTreeMap<String, Vec<String>>,
}

/// The messages that the hub has received on all connections.
#[derive(Clone, Default)]
pub(crate) struct ReceivedMessages(Arc<Mutex<Vec<Value>>>);

impl FakeHub {
    /// A hub with one idle session.
    pub(crate) fn new() -> FakeHub {
        let hub = FakeHub { script: BTreeMap::new() };
        hub.on("_jackfield/connect", &[response(&json!({}))])
            .on("initialize", &[response(&json!({ "protocolVersion": 1 }))])
            .on("session/new", &[response(&json!({ "sessionId": "s-new4lnliedxj" }))])
            .on("session/close", &[response(&json!({}))])
            .on("session/delete", &[response(&json!({}))])
            .on("_jackfield/attach", &[response(&json!({ "head": 0 }))])
            .on("_jackfield/stop", &[response(&json!({})), CLOSE_CONNECTION.to_owned()])
            .on("_jackfield/status", &[response(&daemon_status(env!("CARGO_PKG_VERSION")))])
            .with_sessions(&[session_row("s-7f3abcdefghi", "goose", "idle", "fix the parser")])
    }

    /// Sets the lines that answer a method.
    pub(crate) fn on(mut self, method: &str, lines: &[String]) -> FakeHub {
        self.script.insert(method.to_owned(), lines.to_vec());
        self
    }

    pub(crate) fn with_sessions(self, rows: &[Value]) -> FakeHub {
        self.on("_jackfield/sessions", &[response(&json!({ "sessions": rows }))])
    }

    /// Listens on the socket of this home.
    pub(crate) fn start(self, home: &TestHome) -> ReceivedMessages {
        let dir = home.socket().parent().unwrap().to_owned();
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(home.socket()).expect("the socket is free");
        let (received, script) = (ReceivedMessages::default(), Arc::new(self.script));
        let printed = received.clone();
        let socket = home.socket();
        thread::spawn(move || {
            // The thread ends with the test process, because a listener cannot be interrupted.
            for stream in listener.incoming().flatten() {
                let (script, received, socket) = (script.clone(), printed.clone(), socket.clone());
                thread::spawn(move || {
                    if !serve(&stream, &script, &received) {
                        let _gone = fs::remove_file(socket);
                    }
                });
            }
        });
        received
    }
}

/// Returns false if the script closes the connection.
fn serve(
    stream: &UnixStream,
    script: &BTreeMap<String, Vec<String>>,
    received: &ReceivedMessages,
) -> bool {
    let mut prompt = Value::Null;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return true };
        let message: Value = serde_json::from_str(&line).expect("commands send JSON");
        let method = message["method"].as_str().unwrap_or("answer").to_owned();
        if method == "session/prompt" {
            prompt = message["id"].clone();
        }
        let id = message["id"].to_string();
        received.0.lock().unwrap().push(message);
        for line in script.get(&method).into_iter().flatten() {
            if line == CLOSE_CONNECTION {
                let _ended = stream.shutdown(Shutdown::Both);
                return false;
            }
            let line = line.replace("\"$id\"", &id).replace("\"$prompt\"", &prompt.to_string());
            let mut out = stream;
            if out.write_all(format!("{line}\n").as_bytes()).is_err() {
                return true;
            }
        }
    }
    true
}

impl ReceivedMessages {
    /// The messages with this method; `answer` for responses.
    pub(crate) fn with_method(&self, method: &str) -> Vec<Value> {
        let is_it = |it: &&Value| it["method"].as_str().unwrap_or("answer") == method;
        self.0.lock().unwrap().iter().filter(is_it).cloned().collect()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |it: &Value| it["method"].as_str().unwrap_or("answer").to_owned();
        self.0.lock().unwrap().iter().map(name).collect()
    }
}

pub(crate) fn daemon_status(version: &str) -> Value {
    json!({ "version": version, "sessions": 2, "agents": 1, "clients": 1, "stopping": false })
}

pub(crate) fn session_row(id: &str, agent: &str, state: &str, title: &str) -> Value {
    json!({
        "sessionId": id, "agent": agent, "argv": [agent, "acp"], "cwd": "/project", "title": title,
        "state": state, "turns": 2, "queued": 0, "asks": u64::from(state == "asks"), "clients": 1,
        "pid": 4711, "events": 7, "openedAt": "2026-11-15T08:00:00.000Z",
        "updatedAt": "2026-11-15T08:30:00.123Z", "agentSession": "its-own-id",
    })
}

/// A response to the request.
pub(crate) fn response(result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "$id", "result": result }).to_string()
}

pub(crate) fn error_response(error: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "$id", "error": error }).to_string()
}

/// An error of the hub, as `jackfield_protocol::Fault` encodes it.
pub(crate) fn hub_error(code: i32, message: &str, hub_data: &Value) -> String {
    error_response(&json!({ "code": code, "message": message, "data": { "jackfield": hub_data } }))
}

/// The response to the last prompt, whichever method is answered now.
pub(crate) fn prompt_response(reason: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": "$prompt", "result": { "stopReason": reason } }).to_string()
}

pub(crate) fn session_update(seq: u64, update: &Value) -> String {
    let params = json!({
        "sessionId": "s-new4lnliedxj", "update": update, "_meta": { "jackfield": { "seq": seq } },
    });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

pub(crate) fn message_chunk(seq: u64, kind: &str, text: &str) -> String {
    session_update(
        seq,
        &json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }),
    )
}

pub(crate) fn agent_text(text: &str) -> String {
    message_chunk(1, "agent_message_chunk", text)
}

/// An event as a `_jackfield/…` notification.
pub(crate) fn hub_event(about: &str, seq: u64, what: &str, mut members: Value) -> String {
    members["sessionId"] = json!("s-7f3abcdefghi");
    members["seq"] = json!(seq);
    members["at"] = json!(1_794_731_400_123_u64);
    members["is"] = json!(what);
    add_required_members(&mut members);
    json!({ "jsonrpc": "2.0", "method": format!("_jackfield/{about}"), "params": members })
        .to_string()
}

/// Adds the members that the hub always writes and a test does not set.
fn add_required_members(event: &mut Value) {
    let required = match event["is"].as_str() {
        Some("opened") => {
            json!({ "argv": [], "cwd": "/project", "params": {}, "agentSession": "a1",
                                  "setup": null, "agent": "goose" })
        }
        Some("prompted") => json!({ "by": "", "frame": {} }),
        Some("ended") => json!({ "how": "stopped", "answer": {} }),
        Some("gone") => json!({ "stderr": "" }),
        _ => json!({}),
    };
    for (name, value) in required.as_object().unwrap() {
        if event.get(name).is_none() {
            event[name] = value.clone();
        }
    }
}

/// The frames for an attach that requests the log as events. Each event starts with its number, as in the journal.
pub(crate) fn attach_response(session: &str, events: &[&Value]) -> Vec<String> {
    let event = |(seq, members): (usize, &&Value)| {
        let mut members = (*members).clone();
        add_required_members(&mut members);
        let (seq, members) = (seq + 1, members.to_string());
        let params = format!(
            r#"{{"sessionId":"{session}","seq":{seq},"at":{},{}"#,
            1_794_731_400_000 + seq * 250,
            &members[1..],
        );
        format!(r#"{{"jsonrpc":"2.0","method":"_jackfield/event","params":{params}}}"#)
    };
    let mut lines: Vec<String> = events.iter().enumerate().map(event).collect();
    lines.push(response(&json!({ "head": events.len() })));
    lines
}

/// A permission request with this id.
pub(crate) fn permission_request(id: u64, kind: &str) -> String {
    let options = json!([
        { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "always", "name": "Always allow", "kind": "allow_always" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let call = json!({ "toolCallId": "t1", "title": "Run `cargo test`", "kind": kind });
    let params = json!({ "sessionId": "s-new4lnliedxj", "toolCall": call, "options": options });
    let method = "session/request_permission";
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}
