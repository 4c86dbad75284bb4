//! One connection that may break at any moment, and what must hold on it while it does not: events
//! without a gap, one answer for each request, no ghost of an ask.

use super::{
    ear::{Heard, Told},
    world::World,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Read as _, Write as _},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

pub(super) struct Conn {
    stream: UnixStream,
    /// `jackfield acp` in between.
    shim: Option<Child>,
    unread: Vec<u8>,
    next_id: u64,
    /// Hears facts with their seqs.
    aware: bool,
    pub(super) session: Option<String>,
    /// The last event heard.
    pub(super) cursor: u64,
    /// Requests without an answer, with the token of those that are prompts.
    pub(super) pending: BTreeMap<u64, Option<String>>,
    /// What it was asked, by the hub's id: the method.
    pub(super) asked: BTreeMap<u64, String>,
    answered: BTreeSet<u64>,
    pub(super) broken: bool,
    /// The request that attaches the client. If it is refused, a prompt would attach it at the end of the log.
    pub(super) attach: Option<u64>,
}

/// How long the hub may take to take a line.
const WRITE_MAX: Duration = Duration::from_secs(20);

impl Conn {
    pub(super) fn dial(world: &World, aware: bool) -> Option<Conn> {
        let stream = UnixStream::connect(world.home.socket()).ok()?;
        Conn::over(stream, None, aware)
    }

    /// Through `jackfield acp`, which starts no daemon because it is told where one is.
    pub(super) fn start_shim(world: &World, agent: &[String], aware: bool) -> Option<Conn> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        let socket = format!("unix://{}", world.home.socket().display());
        let mut command = world.home.command(&["--socket", &socket, "acp", "--"]);
        let other = theirs.try_clone().ok()?;
        command.args(agent).stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(other));
        let shim = command.stderr(Stdio::null()).spawn().ok()?;
        Conn::over(ours, Some(shim), aware)
    }

    fn over(stream: UnixStream, shim: Option<Child>, aware: bool) -> Option<Conn> {
        stream.set_write_timeout(Some(WRITE_MAX)).ok()?;
        Some(Conn {
            stream,
            shim,
            unread: Vec::new(),
            next_id: 0,
            aware,
            session: None,
            cursor: 0,
            pending: BTreeMap::new(),
            asked: BTreeMap::new(),
            answered: BTreeSet::new(),
            broken: false,
            attach: None,
        })
    }

    pub(super) fn hello(&mut self) {
        let meta = if self.aware { json!({ "jackfield": {} }) } else { json!({}) };
        let can = json!({ "elicitation": { "form": {} }, "_meta": meta });
        self.request("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": can }));
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.send_as(method, params, None)
    }

    pub(super) fn prompt(&mut self, session: &str, token: String, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.send_as("session/prompt", &params, Some(token));
    }

    fn send_as(&mut self, method: &str, params: &Value, token: Option<String>) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.pending.insert(id, token);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers what it was asked, with a result or an error.
    pub(super) fn answer(&mut self, id: u64, member: &str, value: &Value) {
        self.asked.remove(&id);
        self.answered.insert(id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, member: value }));
    }

    fn send(&mut self, frame: &Value) {
        if self.stream.write_all(format!("{frame}\n").as_bytes()).is_err() {
            self.broken = true;
        }
    }

    /// Reads for as long as there is something, and at least so long.
    pub(super) fn listen(&mut self, world: &World, time: Duration) {
        let begin = Instant::now();
        let mut bytes = vec![0; 1 << 16];
        loop {
            let left = time.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
            let _same = self.stream.set_read_timeout(Some(left));
            match self.stream.read(&mut bytes) {
                Ok(0) => self.broken = true,
                Ok(count) => self.take_in(world, &bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return;
                }
                Err(_) => self.broken = true,
            }
            // A flood must not keep an actor from acting.
            if self.broken || time + Duration::from_secs(2) < begin.elapsed() {
                return;
            }
        }
    }

    fn take_in(&mut self, world: &World, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        let Some(end) = self.unread.iter().rposition(|it| *it == b'\n') else { return };
        let rest = self.unread.split_off(end + 1);
        let lines = std::mem::replace(&mut self.unread, rest);
        for line in lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(message) => self.on_message(world, &message),
                Err(error) => world.fault(format!(
                    "the hub said what is no JSON ({error}): {}",
                    String::from_utf8_lossy(line)
                )),
            }
        }
    }

    fn on_message(&mut self, world: &World, message: &Value) {
        let id = message["id"].as_u64();
        match (message["method"].as_str(), id) {
            (None, Some(id)) => self.on_answer(world, id, message),
            (Some(method), Some(id)) => {
                if self.asked.insert(id, method.to_owned()).is_some() {
                    world.fault(format!("asked twice under one id: {message}"));
                }
            }
            (Some("$/cancel_request"), None) => {
                let request = message["params"]["requestId"].as_u64().unwrap_or_default();
                let known =
                    self.asked.remove(&request).is_some() || self.answered.contains(&request);
                if !known {
                    world.fault(format!("a withdrawal of what was never asked: {message}"));
                }
            }
            (Some(_), None) => self.on_event(world, message),
            (None, None) => world.fault(format!("an answer to nothing: {message}")),
        }
    }

    fn on_answer(&mut self, world: &World, id: u64, message: &Value) {
        let Some(token) = self.pending.remove(&id) else {
            return world.fault(format!("a second answer to request {id}: {message}"));
        };
        self.broken |= self.attach == Some(id) && !message["error"].is_null();
        let Some(token) = token else { return };
        let text = |at: &str| message.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let outcome = text("/result/stopReason").ok_or_else(|| {
            text("/error/data/jackfield/code").unwrap_or_else(|| "the agent's own error".to_owned())
        });
        match &outcome {
            Ok(_) => world.count("prompts answered by the agent"),
            Err(code) => world.count(&format!("prompts answered with an error: {code}")),
        }
        world.told(token, outcome);
    }

    fn on_event(&mut self, world: &World, message: &Value) {
        if !self.aware {
            return;
        }
        let Some(heard) = Heard::of(message.clone()) else { return };
        let of = self.session.get_or_insert_with(|| heard.session.clone());
        // A prompt is told twice: as a fact, and as the user's words.
        let again = heard.told == Told::User && heard.seq == self.cursor;
        if *of != heard.session || !(again || heard.seq == self.cursor + 1) {
            let cursor = self.cursor;
            let client = if self.shim.is_some() { "jackfield acp" } else { "a socket" };
            world.fault(format!(
                "a gap or a repeat after {cursor} of {of} through {client}: {message}"
            ));
        }
        self.cursor = heard.seq;
        if !world.ear.keep(&heard) {
            world.fault(format!("two clients heard different things: {message}"));
        }
    }
}

impl Drop for Conn {
    /// SIGKILL for a shim; a socket hangs up without a word.
    fn drop(&mut self) {
        let _gone = self.stream.shutdown(Shutdown::Both);
        if let Some(shim) = &mut self.shim {
            let _ended = shim.kill();
            let _reaped = shim.wait();
        }
    }
}
