//! A hub that says what a test tells it to: for every method the lines to answer with.

use crate::home::Home;
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

/// Closes the connection.
pub(crate) const HANG_UP: &str = "hang up";

/// What is said in answer to each method. `$id` stands for the id of the request, `$prompt` for that
/// of the last prompt. An answer to an ask is looked up as `answer`.
#[derive(Default)]
pub(crate) struct FakeHub {
    script: BTreeMap<String, Vec<String>>,
}

/// What the hub heard, on all connections.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Value>>>);

impl FakeHub {
    /// Knows one session with a turn behind it.
    pub(crate) fn new() -> FakeHub {
        let hub = FakeHub { script: BTreeMap::new() };
        hub.on("_jackfield/connect", &[result(&json!({}))])
            .on("initialize", &[result(&json!({ "protocolVersion": 1 }))])
            .on("session/new", &[result(&json!({ "sessionId": "s-new4lnliedxj" }))])
            .on("session/close", &[result(&json!({}))])
            .on("session/delete", &[result(&json!({}))])
            .on("_jackfield/attach", &[result(&json!({ "head": 0 }))])
            .on("_jackfield/stop", &[result(&json!({})), HANG_UP.to_owned()])
            .on("_jackfield/status", &[result(&status(env!("CARGO_PKG_VERSION")))])
            .rows(&[row("s-7f3abcdefghi", "goose", "idle", "fix the parser")])
    }

    /// The lines to answer a method with.
    pub(crate) fn on(mut self, method: &str, lines: &[String]) -> FakeHub {
        self.script.insert(method.to_owned(), lines.to_vec());
        self
    }

    pub(crate) fn rows(self, rows: &[Value]) -> FakeHub {
        self.on("_jackfield/sessions", &[result(&json!({ "sessions": rows }))])
    }

    /// Listens where a command of this home looks for a daemon.
    pub(crate) fn start(self, home: &Home) -> Heard {
        let dir = home.socket().parent().unwrap().to_owned();
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(home.socket()).expect("the socket is free");
        let (heard, script) = (Heard::default(), Arc::new(self.script));
        let told = heard.clone();
        let socket = home.socket();
        thread::spawn(move || {
            // Ends with the test process: nobody can tell a listener to stop waiting.
            for stream in listener.incoming().flatten() {
                let (script, heard, socket) = (script.clone(), told.clone(), socket.clone());
                thread::spawn(move || {
                    if !serve(&stream, &script, &heard) {
                        let _gone = fs::remove_file(socket);
                    }
                });
            }
        });
        heard
    }
}

/// False if it was told to hang up.
fn serve(stream: &UnixStream, script: &BTreeMap<String, Vec<String>>, heard: &Heard) -> bool {
    let mut prompt = Value::Null;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return true };
        let message: Value = serde_json::from_str(&line).expect("commands send JSON");
        let method = message["method"].as_str().unwrap_or("answer").to_owned();
        if method == "session/prompt" {
            prompt = message["id"].clone();
        }
        let id = message["id"].to_string();
        heard.0.lock().unwrap().push(message);
        for line in script.get(&method).into_iter().flatten() {
            if line == HANG_UP {
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

impl Heard {
    /// Everything said with this method; `answer` for answers.
    pub(crate) fn all(&self, method: &str) -> Vec<Value> {
        let is_it = |it: &&Value| it["method"].as_str().unwrap_or("answer") == method;
        self.0.lock().unwrap().iter().filter(is_it).cloned().collect()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |it: &Value| it["method"].as_str().unwrap_or("answer").to_owned();
        self.0.lock().unwrap().iter().map(name).collect()
    }
}

pub(crate) fn status(version: &str) -> Value {
    json!({ "version": version, "sessions": 2, "agents": 1, "clients": 1, "stopping": false })
}

pub(crate) fn row(id: &str, agent: &str, state: &str, title: &str) -> Value {
    json!({
        "sessionId": id, "agent": agent, "argv": [agent, "acp"], "cwd": "/project", "title": title,
        "state": state, "turns": 2, "queued": 0, "asks": u64::from(state == "asks"), "clients": 1,
        "pid": 4711, "events": 7, "openedAt": "2026-11-15T08:00:00.000Z",
        "updatedAt": "2026-11-15T08:30:00.123Z", "agentSession": "its-own-id",
    })
}

/// The answer to the request.
pub(crate) fn result(result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "$id", "result": result }).to_string()
}

pub(crate) fn error(error: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "$id", "error": error }).to_string()
}

/// An error of the hub, as `wire::Fault` sends it.
pub(crate) fn fault(code: i32, message: &str, ours: &Value) -> String {
    error(&json!({ "code": code, "message": message, "data": { "jackfield": ours } }))
}

/// The answer to the last prompt, whatever is answered now.
pub(crate) fn stop(reason: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": "$prompt", "result": { "stopReason": reason } }).to_string()
}

pub(crate) fn update(seq: u64, update: &Value) -> String {
    let params = json!({
        "sessionId": "s-new4lnliedxj", "update": update, "_meta": { "jackfield": { "seq": seq } },
    });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

pub(crate) fn chunk(seq: u64, kind: &str, text: &str) -> String {
    update(seq, &json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
}

pub(crate) fn say(text: &str) -> String {
    chunk(1, "agent_message_chunk", text)
}

/// A fact, as clients that know of the hub hear it.
pub(crate) fn fact(about: &str, seq: u64, what: &str, mut members: Value) -> String {
    members["sessionId"] = json!("s-7f3abcdefghi");
    members["seq"] = json!(seq);
    members["at"] = json!(1_794_731_400_123_u64);
    members["is"] = json!(what);
    add_required_members(&mut members);
    json!({ "jsonrpc": "2.0", "method": format!("_jackfield/{about}"), "params": members })
        .to_string()
}

/// Adds what a hub always writes into such an event and a test does not name.
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

/// The whole log of a session as whoever attaches for facts hears it; each event begins with its
/// number, as in the journal.
pub(crate) fn log_of(session: &str, events: &[&Value]) -> Vec<String> {
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
    lines.push(result(&json!({ "head": events.len() })));
    lines
}

/// A permission request under this id.
pub(crate) fn ask(id: u64, kind: &str) -> String {
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
