//! The methods of the agent, and the checks that precede each request.

use std::mem;

use serde_json::{Value, json};

use super::{
    agent::FakeAgent,
    flags::{CancelMode, FlagSwitch, ProcessEnd},
    process,
    turn::RunningTurn,
    words::{TurnOutcome, TurnStep, chunk, parse_prompt},
};

/// The result of a request.
pub(crate) enum MethodReply {
    Result(Value),
    Error(i64, String, Value),
    /// The response is sent later, or never.
    Later,
}

/// The last words of a digest that precedes a prompt.
const DIGEST_END: &str = "The user's own message follows.]";

impl MethodReply {
    pub(crate) fn error(code: i64, message: impl Into<String>) -> MethodReply {
        MethodReply::Error(code, message.into(), Value::Null)
    }

    pub(crate) fn missing_session(id: &str) -> MethodReply {
        MethodReply::Error(-32002, "no such session".to_owned(), json!({"sessionId": id}))
    }
}

/// A request of the client.
pub(crate) struct ClientRequest {
    pub(crate) id: Value,
    pub(crate) params: Value,
}

impl ClientRequest {
    pub(crate) fn text(&self, key: &str) -> &str {
        self.params[key].as_str().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &str {
        self.text("sessionId")
    }
}

type MethodHandler = fn(&mut FakeAgent, &ClientRequest) -> MethodReply;

const METHODS: &[(&str, MethodHandler)] = &[
    ("initialize", FakeAgent::initialize),
    ("authenticate", FakeAgent::authenticate),
    ("session/new", FakeAgent::new_session),
    ("session/load", FakeAgent::load),
    ("session/resume", FakeAgent::resume),
    ("session/list", FakeAgent::list),
    ("session/close", FakeAgent::close),
    ("session/delete", FakeAgent::delete),
    ("session/prompt", FakeAgent::prompt),
    ("session/set_mode", FakeAgent::set_mode),
    ("session/set_config_option", FakeAgent::set_config_option),
    ("session/set_model", FakeAgent::set_model),
    ("_fake/echo", |_, request| MethodReply::Result(request.params.clone())),
    ("_fake/hang", |agent, request| {
        agent.hanging_requests.push(request.id.clone());
        MethodReply::Later
    }),
];

impl FakeAgent {
    pub(crate) fn on_line(&mut self, line: &[u8]) -> Result<(), ProcessEnd> {
        if line.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(frame @ Value::Object(_)) => return self.on_frame(frame, false),
            Ok(_) => self.send_error(&Value::Null, -32600, "not an object", &Value::Null),
            Err(why) => self.send_error(&Value::Null, -32700, &why.to_string(), &Value::Null),
        }
        self.record_complaint(format!("no frame: {}", String::from_utf8_lossy(line)));
        Ok(())
    }

    /// `due` is true if the delay of this frame is over.
    pub(crate) fn on_frame(&mut self, mut frame: Value, due: bool) -> Result<(), ProcessEnd> {
        let Some(method) = frame["method"].as_str().map(str::to_owned) else {
            self.on_response(&frame);
            return Ok(());
        };
        let phase = method.strip_prefix("session/").unwrap_or(&method);
        if let Some(delay) = self.flags.delay_of(phase).filter(|_| !due) {
            self.postpone(delay, frame);
            return Ok(());
        }
        self.end_at_step(phase)?;
        if self.flags.is_silent_at(phase) {
            return Ok(());
        }
        let params = frame["params"].take();
        let Some(id) = frame.get("id").cloned() else {
            return self.on_notification(&method, &params);
        };
        let request = ClientRequest { id, params };
        match self.on_request(&method, &request) {
            MethodReply::Result(result) => self.send_result(&request.id, &result),
            MethodReply::Error(code, message, data) => {
                self.send_error(&request.id, code, &message, &data);
            }
            MethodReply::Later => {}
        }
        self.end_at_prompt_start(&method)
    }

    fn end_at_prompt_start(&self, method: &str) -> Result<(), ProcessEnd> {
        if method == "session/prompt" { self.end_at_step("prompt-start") } else { Ok(()) }
    }

    fn on_request(&mut self, method: &str, request: &ClientRequest) -> MethodReply {
        let Some((_, serve)) = METHODS.iter().find(|(it, _)| *it == method) else {
            return MethodReply::error(-32601, format!("no such method: {method}"));
        };
        if self.client_capabilities.is_none() && method != "initialize" {
            return MethodReply::error(-32600, "initialize first");
        }
        if let Some(capability) = capability_of(method).filter(|it| !self.flags.has_capability(it))
        {
            return MethodReply::error(-32601, format!("not announced: {capability}"));
        }
        let opens = matches!(method, "session/new" | "session/load" | "session/resume");
        if opens && !self.authenticated {
            return MethodReply::error(-32000, "Authentication required");
        }
        let reply = serve(self, request);
        if let (true, Some(witness), MethodReply::Result(result)) =
            (opens, &mut self.witness, &reply)
        {
            witness.note_session(result["sessionId"].as_str().unwrap_or(request.session()));
        }
        reply
    }

    fn on_notification(&mut self, method: &str, params: &Value) -> Result<(), ProcessEnd> {
        match method {
            "session/cancel" => self.cancel(params["sessionId"].as_str().unwrap_or_default())?,
            "$/cancel_request" => self.cancel_request(&params["requestId"])?,
            _ => self.record_complaint(format!("unknown notification: {method}")),
        }
        Ok(())
    }

    fn on_response(&mut self, frame: &Value) {
        let id = frame["id"].to_string();
        let Some((key, ask)) = self.open_requests.remove(&id) else {
            if !self.abandoned_requests.remove(&id) {
                self.record_complaint(format!("an answer nobody waits for: {frame}"));
            }
            return;
        };
        let error = frame.get("error").filter(|it| !it.is_null()).cloned();
        let answer = error.map_or_else(|| Ok(frame["result"].clone()), Err);
        if let Some(turn) = self.turns.iter_mut().find(|it| it.key == key) {
            turn.open_requests -= 1;
            let steps = ask.steps_after_response(&turn.request_context(), answer);
            steps.into_iter().rev().for_each(|it| turn.steps.push_front(it));
        }
    }

    fn initialize(&mut self, request: &ClientRequest) -> MethodReply {
        self.client_capabilities = Some(request.params["clientCapabilities"].clone());
        let version =
            self.flags.version.map_or(request.params["protocolVersion"].clone(), Value::from);
        let mut sessions = json!({});
        for name in
            ["resume", "list", "close", "delete"].iter().filter(|it| self.flags.has_capability(it))
        {
            sessions[name] = json!({});
        }
        let guarded = self.flags.has_switch(FlagSwitch::Auth)
            || self.flags.has_switch(FlagSwitch::AuthRefused);
        let login = json!({"id": "fake-login", "name": "Pretend to sign in"});
        let mut result = json!({
            "protocolVersion": version,
            "agentCapabilities": {
                "loadSession": self.flags.has_capability("load"),
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": sessions,
            },
            "authMethods": if guarded { json!([login]) } else { json!([]) },
            "agentInfo": {"name": "fake-agent", "version": env!("CARGO_PKG_VERSION")},
        });
        if self.flags.has_switch(FlagSwitch::Nulls) {
            result["agentInfo"]["title"] = Value::Null;
            result["_meta"] = Value::Null;
        }
        MethodReply::Result(result)
    }

    fn authenticate(&mut self, request: &ClientRequest) -> MethodReply {
        if self.flags.has_switch(FlagSwitch::AuthRefused) {
            return MethodReply::error(-32000, "Authentication required");
        }
        if request.text("methodId") != "fake-login" {
            return MethodReply::error(-32602, "no such method of authentication");
        }
        self.authenticated = true;
        MethodReply::Result(json!({}))
    }

    fn new_session(&mut self, request: &ClientRequest) -> MethodReply {
        let Some(cwd) = request.params["cwd"].as_str() else {
            return MethodReply::error(-32602, "`cwd` is missing");
        };
        let Some(mcp_servers) = request.params.get("mcpServers") else {
            return MethodReply::error(-32602, "`mcpServers` is missing");
        };
        let id = self.flags.has_switch(FlagSwitch::SameSessionId).then_some("same");
        let id = self.sessions.create(id, cwd, mcp_servers.clone()).id.clone();
        for number in 1..=self.flags.early_updates {
            let update = chunk("agent_message_chunk", &format!("early {number}"));
            let frame = self.update_frame(&id, &update);
            self.out.write_frame(&frame);
        }
        let mut result = json!({"sessionId": id});
        self.describe(&id, &mut result);
        MethodReply::Result(result)
    }

    fn prompt(&mut self, request: &ClientRequest) -> MethodReply {
        let id = request.session();
        if self.turns.iter().any(|it| it.session == id && !it.answered) {
            return MethodReply::error(-32600, "a turn is running in this session");
        }
        let Some(session) = self.sessions.open(id) else { return MethodReply::missing_session(id) };
        let blocks = request.params["prompt"].as_array().map_or(&[][..], Vec::as_slice);
        let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        let text = texts.join("\n");
        session.append_entry(super::session::HistoryEntry::User(text.clone()));
        let number = session.prompts.len();
        self.turns_begun += 1;
        let key = self.turns_begun;
        let mut turn =
            RunningTurn::new(key, id, request.id.clone(), request.params.clone(), number);
        // A digest of a lost conversation contains earlier prompts, which must not run again.
        let own: Vec<&str> = texts.into_iter().filter(|it| !it.ends_with(DIGEST_END)).collect();
        turn.steps.extend(parse_prompt(&own.join("\n")));
        if self.flags.has_switch(FlagSwitch::EchoUser) {
            let frame = self.update_frame(id, &chunk("user_message_chunk", &text));
            self.out.write_frame(&frame);
        }
        self.turns.push(turn);
        MethodReply::Later
    }

    /// Handles `session/cancel` as `--cancel` demands.
    fn cancel(&mut self, session: &str) -> Result<(), ProcessEnd> {
        let running = self.turns.iter().position(|it| it.session == session && !it.answered);
        let Some(index) = running else { return Ok(()) };
        let cancelled = TurnOutcome::Stop("cancelled".to_owned());
        match self.flags.cancel {
            CancelMode::Honour => self.end_turn(index, cancelled),
            CancelMode::Ignore => Ok(()),
            CancelMode::Error => self
                .end_turn(index, TurnOutcome::Error(-32603, "Internal error: aborted".to_owned())),
            CancelMode::Die => Err(self.flags.die_with),
            CancelMode::KeepStreaming => {
                let mut turn = self.turns.remove(index);
                turn.outcome = cancelled;
                turn.hangs = false;
                self.abandon_requests(&mut turn);
                self.answer_prompt(&mut turn)?;
                self.turns.push(turn);
                Ok(())
            }
            CancelMode::Drain => {
                let mut turn = self.turns.remove(index);
                turn.outcome = cancelled;
                (turn.hangs, turn.wake_at) = (false, None);
                self.abandon_requests(&mut turn);
                turn.steps = [TurnStep::Burst { next: 1, count: 10, size: 0 }].into();
                self.turns.push(turn);
                Ok(())
            }
        }
    }

    /// Handles `$/cancel_request` for a prompt or a `_fake/hang`.
    fn cancel_request(&mut self, id: &Value) -> Result<(), ProcessEnd> {
        if self.flags.has_switch(FlagSwitch::CancelRequestIgnored) {
            return Ok(());
        }
        if let Some(index) = self.hanging_requests.iter().position(|it| it == id) {
            let id = self.hanging_requests.remove(index);
            self.send_error(&id, -32800, "Request cancelled", &Value::Null);
        }
        let running = self.turns.iter().position(|it| it.id == *id && !it.answered);
        let cancelled = TurnOutcome::Error(-32800, "Request cancelled".to_owned());
        running.map_or(Ok(()), |index| self.end_turn(index, cancelled))
    }

    /// Ends a turn at once, with steps left or not.
    pub(crate) fn end_turn(
        &mut self,
        index: usize,
        outcome: TurnOutcome,
    ) -> Result<(), ProcessEnd> {
        let mut turn = self.turns.remove(index);
        turn.outcome = outcome;
        self.abandon_requests(&mut turn);
        self.answer_prompt(&mut turn)
    }

    /// The turn no longer waits for its requests, but their responses may still arrive.
    fn abandon_requests(&mut self, turn: &mut RunningTurn) {
        turn.open_requests = 0;
        for (id, (key, ask)) in mem::take(&mut self.open_requests) {
            if key == turn.key {
                self.abandoned_requests.insert(id);
            } else {
                self.open_requests.insert(id, (key, ask));
            }
        }
    }

    fn send_result(&mut self, id: &Value, result: &Value) {
        self.out.write_frame(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(crate) fn send_error(&mut self, id: &Value, code: i64, message: &str, data: &Value) {
        let mut error = json!({"code": code, "message": message});
        if !data.is_null() {
            error["data"] = data.clone();
        }
        self.out.write_frame(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn record_complaint(&mut self, what: String) {
        process::write_stderr_line(&format!("fake-agent: {what}"));
        self.complaints.push(what);
    }
}

/// The capability that a method requires.
fn capability_of(method: &str) -> Option<&str> {
    let name = method.strip_prefix("session/")?;
    ["load", "resume", "list", "close", "delete"].contains(&name).then_some(name)
}
