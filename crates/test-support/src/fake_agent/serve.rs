//! What the agent answers: one row per method, and the rules every request goes through first.

use std::mem;

use serde_json::{Value, json};

use super::{
    agent::Agent,
    flags::{Cancel, Death, Switch},
    process,
    turn::Turn,
    words::{Outcome, Step, chunk, script},
};

/// How a request ends.
pub(crate) enum Reply {
    Result(Value),
    Fault(i64, String, Value),
    /// The answer comes another time, or never.
    Later,
}

/// How a digest ends that stands before a prompt.
const DIGEST_END: &str = "The user's own message follows.]";

impl Reply {
    pub(crate) fn fault(code: i64, message: impl Into<String>) -> Reply {
        Reply::Fault(code, message.into(), Value::Null)
    }

    pub(crate) fn no_session(id: &str) -> Reply {
        Reply::Fault(-32002, "no such session".to_owned(), json!({"sessionId": id}))
    }
}

/// A request of the client, taken apart.
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) params: Value,
}

impl Request {
    pub(crate) fn text(&self, key: &str) -> &str {
        self.params[key].as_str().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &str {
        self.text("sessionId")
    }
}

type Serve = fn(&mut Agent, &Request) -> Reply;

const METHODS: &[(&str, Serve)] = &[
    ("initialize", Agent::initialize),
    ("authenticate", Agent::authenticate),
    ("session/new", Agent::new_session),
    ("session/load", Agent::load),
    ("session/resume", Agent::resume),
    ("session/list", Agent::list),
    ("session/close", Agent::close),
    ("session/delete", Agent::delete),
    ("session/prompt", Agent::prompt),
    ("session/set_mode", Agent::set_mode),
    ("session/set_config_option", Agent::set_config_option),
    ("session/set_model", Agent::set_model),
    ("_fake/echo", |_, request| Reply::Result(request.params.clone())),
    ("_fake/hang", |agent, request| {
        agent.hanging.push(request.id.clone());
        Reply::Later
    }),
];

impl Agent {
    pub(crate) fn on_line(&mut self, line: &[u8]) -> Result<(), Death> {
        if line.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(frame @ Value::Object(_)) => return self.on_frame(frame, false),
            Ok(_) => self.fault(&Value::Null, -32600, "not an object", &Value::Null),
            Err(why) => self.fault(&Value::Null, -32700, &why.to_string(), &Value::Null),
        }
        self.complain(format!("no frame: {}", String::from_utf8_lossy(line)));
        Ok(())
    }

    /// `due` says that a delay of this frame is over.
    pub(crate) fn on_frame(&mut self, mut frame: Value, due: bool) -> Result<(), Death> {
        let Some(method) = frame["method"].as_str().map(str::to_owned) else {
            self.on_answer(&frame);
            return Ok(());
        };
        let phase = method.strip_prefix("session/").unwrap_or(&method);
        if let Some(delay) = self.flags.delay_of(phase).filter(|_| !due) {
            self.postpone(delay, frame);
            return Ok(());
        }
        self.die_at(phase)?;
        if self.flags.silent_at(phase) {
            return Ok(());
        }
        let params = frame["params"].take();
        let Some(id) = frame.get("id").cloned() else {
            return self.on_notification(&method, &params);
        };
        let request = Request { id, params };
        match self.on_request(&method, &request) {
            Reply::Result(result) => self.reply(&request.id, &result),
            Reply::Fault(code, message, data) => self.fault(&request.id, code, &message, &data),
            Reply::Later => {}
        }
        self.die_at_prompt_start(&method)
    }

    fn die_at_prompt_start(&self, method: &str) -> Result<(), Death> {
        if method == "session/prompt" { self.die_at("prompt-start") } else { Ok(()) }
    }

    fn on_request(&mut self, method: &str, request: &Request) -> Reply {
        let Some((_, serve)) = METHODS.iter().find(|(it, _)| *it == method) else {
            return Reply::fault(-32601, format!("no such method: {method}"));
        };
        if self.client.is_none() && method != "initialize" {
            return Reply::fault(-32600, "initialize first");
        }
        if let Some(capability) = capability_of(method).filter(|it| !self.flags.announces(it)) {
            return Reply::fault(-32601, format!("not announced: {capability}"));
        }
        let opens = matches!(method, "session/new" | "session/load" | "session/resume");
        if opens && !self.authenticated {
            return Reply::fault(-32000, "Authentication required");
        }
        let reply = serve(self, request);
        if let (true, Some(witness), Reply::Result(result)) = (opens, &mut self.witness, &reply) {
            witness.has(result["sessionId"].as_str().unwrap_or(request.session()));
        }
        reply
    }

    fn on_notification(&mut self, method: &str, params: &Value) -> Result<(), Death> {
        match method {
            "session/cancel" => self.cancel(params["sessionId"].as_str().unwrap_or_default())?,
            "$/cancel_request" => self.cancel_request(&params["requestId"])?,
            _ => self.complain(format!("unknown notification: {method}")),
        }
        Ok(())
    }

    fn on_answer(&mut self, frame: &Value) {
        let id = frame["id"].to_string();
        let Some((key, ask)) = self.asks.remove(&id) else {
            if !self.forgiven.remove(&id) {
                self.complain(format!("an answer nobody waits for: {frame}"));
            }
            return;
        };
        let error = frame.get("error").filter(|it| !it.is_null()).cloned();
        let answer = error.map_or_else(|| Ok(frame["result"].clone()), Err);
        if let Some(turn) = self.turns.iter_mut().find(|it| it.key == key) {
            turn.asks -= 1;
            let steps = ask.heard(&turn.asker(), answer);
            steps.into_iter().rev().for_each(|it| turn.steps.push_front(it));
        }
    }

    fn initialize(&mut self, request: &Request) -> Reply {
        self.client = Some(request.params["clientCapabilities"].clone());
        let version =
            self.flags.version.map_or(request.params["protocolVersion"].clone(), Value::from);
        let mut sessions = json!({});
        for name in
            ["resume", "list", "close", "delete"].iter().filter(|it| self.flags.announces(it))
        {
            sessions[name] = json!({});
        }
        let guarded = self.flags.on(Switch::Auth) || self.flags.on(Switch::AuthRefused);
        let login = json!({"id": "fake-login", "name": "Pretend to sign in"});
        let mut result = json!({
            "protocolVersion": version,
            "agentCapabilities": {
                "loadSession": self.flags.announces("load"),
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": sessions,
            },
            "authMethods": if guarded { json!([login]) } else { json!([]) },
            "agentInfo": {"name": "fake-agent", "version": env!("CARGO_PKG_VERSION")},
        });
        if self.flags.on(Switch::Nulls) {
            result["agentInfo"]["title"] = Value::Null;
            result["_meta"] = Value::Null;
        }
        Reply::Result(result)
    }

    fn authenticate(&mut self, request: &Request) -> Reply {
        if self.flags.on(Switch::AuthRefused) {
            return Reply::fault(-32000, "Authentication required");
        }
        if request.text("methodId") != "fake-login" {
            return Reply::fault(-32602, "no such method of authentication");
        }
        self.authenticated = true;
        Reply::Result(json!({}))
    }

    fn new_session(&mut self, request: &Request) -> Reply {
        let Some(cwd) = request.params["cwd"].as_str() else {
            return Reply::fault(-32602, "`cwd` is missing");
        };
        let Some(mcp_servers) = request.params.get("mcpServers") else {
            return Reply::fault(-32602, "`mcpServers` is missing");
        };
        let id = self.flags.on(Switch::SameSessionId).then_some("same");
        let id = self.sessions.create(id, cwd, mcp_servers.clone()).id.clone();
        for number in 1..=self.flags.early_updates {
            let update = chunk("agent_message_chunk", &format!("early {number}"));
            let frame = self.update_frame(&id, &update);
            self.out.frame(&frame);
        }
        let mut result = json!({"sessionId": id});
        self.describe(&id, &mut result);
        Reply::Result(result)
    }

    fn prompt(&mut self, request: &Request) -> Reply {
        let id = request.session();
        if self.turns.iter().any(|it| it.session == id && !it.answered) {
            return Reply::fault(-32600, "a turn is running in this session");
        }
        let Some(session) = self.sessions.open(id) else { return Reply::no_session(id) };
        let blocks = request.params["prompt"].as_array().map_or(&[][..], Vec::as_slice);
        let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        let text = texts.join("\n");
        session.remember(super::session::Entry::User(text.clone()));
        let number = session.prompts.len();
        self.turns_begun += 1;
        let key = self.turns_begun;
        let mut turn = Turn::new(key, id, request.id.clone(), request.params.clone(), number);
        // What it is told of a conversation it has lost is not for it to do again.
        let own: Vec<&str> = texts.into_iter().filter(|it| !it.ends_with(DIGEST_END)).collect();
        turn.steps.extend(script(&own.join("\n")));
        if self.flags.on(Switch::EchoUser) {
            let frame = self.update_frame(id, &chunk("user_message_chunk", &text));
            self.out.frame(&frame);
        }
        self.turns.push(turn);
        Reply::Later
    }

    /// `session/cancel`, as `--cancel` says.
    fn cancel(&mut self, session: &str) -> Result<(), Death> {
        let running = self.turns.iter().position(|it| it.session == session && !it.answered);
        let Some(index) = running else { return Ok(()) };
        let cancelled = Outcome::Stop("cancelled".to_owned());
        match self.flags.cancel {
            Cancel::Honour => self.end_turn(index, cancelled),
            Cancel::Ignore => Ok(()),
            Cancel::Error => {
                self.end_turn(index, Outcome::Error(-32603, "Internal error: aborted".to_owned()))
            }
            Cancel::Die => Err(self.flags.die_with),
            Cancel::KeepStreaming => {
                let mut turn = self.turns.remove(index);
                turn.outcome = cancelled;
                turn.hangs = false;
                self.forgive_asks(&mut turn);
                self.answer(&mut turn)?;
                self.turns.push(turn);
                Ok(())
            }
            Cancel::Drain => {
                let mut turn = self.turns.remove(index);
                turn.outcome = cancelled;
                (turn.hangs, turn.wake) = (false, None);
                self.forgive_asks(&mut turn);
                turn.steps = [Step::Burst { next: 1, count: 10, size: 0 }].into();
                self.turns.push(turn);
                Ok(())
            }
        }
    }

    /// `$/cancel_request` for a prompt or for a `_fake/hang`.
    fn cancel_request(&mut self, id: &Value) -> Result<(), Death> {
        if self.flags.on(Switch::CancelRequestIgnored) {
            return Ok(());
        }
        if let Some(index) = self.hanging.iter().position(|it| it == id) {
            let id = self.hanging.remove(index);
            self.fault(&id, -32800, "Request cancelled", &Value::Null);
        }
        let running = self.turns.iter().position(|it| it.id == *id && !it.answered);
        let cancelled = Outcome::Error(-32800, "Request cancelled".to_owned());
        running.map_or(Ok(()), |index| self.end_turn(index, cancelled))
    }

    /// Ends a turn at once, whatever it still had to do.
    pub(crate) fn end_turn(&mut self, index: usize, outcome: Outcome) -> Result<(), Death> {
        let mut turn = self.turns.remove(index);
        turn.outcome = outcome;
        self.forgive_asks(&mut turn);
        self.answer(&mut turn)
    }

    /// The turn no longer waits for its asks, but their answers may come.
    fn forgive_asks(&mut self, turn: &mut Turn) {
        turn.asks = 0;
        for (id, (key, ask)) in mem::take(&mut self.asks) {
            if key == turn.key {
                self.forgiven.insert(id);
            } else {
                self.asks.insert(id, (key, ask));
            }
        }
    }

    fn reply(&mut self, id: &Value, result: &Value) {
        self.out.frame(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(crate) fn fault(&mut self, id: &Value, code: i64, message: &str, data: &Value) {
        let mut error = json!({"code": code, "message": message});
        if !data.is_null() {
            error["data"] = data.clone();
        }
        self.out.frame(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn complain(&mut self, what: String) {
        process::note(&format!("fake-agent: {what}"));
        self.complaints.push(what);
    }
}

/// The capability without which a method is not served.
fn capability_of(method: &str) -> Option<&str> {
    let name = method.strip_prefix("session/")?;
    ["load", "resume", "list", "close", "delete"].contains(&name).then_some(name)
}
