//! Files and commands that the daemon itself reads, writes and runs for an agent (`fs/*`, `terminal/create`).
//!
//! Each request is judged by the rules like a permission request: a deny is answered with an error, an ask waits
//! for a person, everything else is done. The log has what was requested, what the rules said, and the outcome.

use super::{Session, ask::RequestOrigin};
use crate::{AgentId, SessionId, context::HubContext, log::Effect, parts::HubParts};
use jackfield_events::{EventBody, RawJson, RequestServed, ServedOutcome};
use jackfield_policy::{PolicyDecision, RuleEffect, ToolCallFacts};
use jackfield_protocol::{Fault, Frame, acp::Method, quote_argv};
use serde_json::{Value, json};

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct ServedRequest {
    agent: AgentId,
    /// The request id of the agent.
    request: Box<str>,
    call: RawJson,
    decision: Option<RawJson>,
}

impl Session {
    /// The agent has ended before its requests were answered: their outcome is unknown.
    pub(crate) fn end_served_requests(&mut self, cx: &mut HubContext) {
        for served in std::mem::take(&mut self.served) {
            let (call, decision) = (served.call, served.decision);
            self.append_event(
                cx,
                EventBody::Served(RequestServed {
                    call,
                    decision,
                    outcome: ServedOutcome::Unknown,
                }),
            );
        }
    }

    /// Remembers what a person allowed, so that the agent may do it in this turn.
    pub(super) fn remember_approved_call(&mut self, cx: &HubContext, ask: &Frame, answer: &Frame) {
        let params = ask.params_value();
        let result: Value =
            serde_json::from_str(answer.result().unwrap_or("null")).unwrap_or_default();
        let chosen = &result["outcome"]["optionId"];
        let mut options = params["options"].as_array().into_iter().flatten();
        let kind = options.find(|it| it["optionId"] == *chosen && chosen.is_string());
        if kind.and_then(|it| it["kind"].as_str()) != Some("allow_once") {
            return;
        }
        let approved = commands_and_paths(&self.read_tool_call(&cx.config, &params));
        if let Some(turn) = &mut self.turn {
            turn.approved.extend(approved);
        }
    }

    /// Whether a person has allowed all of it in this turn.
    fn is_approved_call(&self, cx: &HubContext, params: &Value) -> bool {
        let parts = commands_and_paths(&self.read_tool_call(&cx.config, params));
        let turn = self.turn.as_ref();
        !parts.is_empty()
            && turn.is_some_and(|turn| parts.iter().all(|it| turn.approved.contains(it)))
    }

    /// An agent requests a file or a terminal, and no client serves them.
    pub(super) fn judge_served_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
    ) {
        let Some(params) = permission_params(&self.id, frame) else {
            return self.send_to_daemon(parts, agent, frame);
        };
        let decision = self.judge_tool_call(&parts.cx, &params);
        match decision.effect {
            Some(RuleEffect::Deny) => {
                self.deny_served_request(parts, agent, frame, &decision.why, &decision);
            }
            Some(RuleEffect::Ask) if !self.is_approved_call(&parts.cx, &params) => {
                let ask = Frame::request(
                    "0",
                    Method::SessionRequestPermission.name(),
                    &params.to_string(),
                );
                self.open_user_request(parts, agent, ask, RequestOrigin::Served(frame.clone()));
            }
            _ => self.serve_request(parts, agent, frame, &decision),
        }
    }

    /// A person has answered the permission request of this request.
    pub(super) fn on_served_request_answered(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
        answer: &Frame,
    ) {
        let Some(params) = permission_params(&self.id, frame) else { return };
        let decision = self.judge_tool_call(&parts.cx, &params);
        let result: Value =
            serde_json::from_str(answer.result().unwrap_or("null")).unwrap_or_default();
        // A rule may have been added while the request was open.
        let denied = decision.effect == Some(RuleEffect::Deny);
        match result["outcome"]["optionId"].as_str() {
            Some("allow-once") if !denied => self.serve_request(parts, agent, frame, &decision),
            _ => self.deny_served_request(
                parts,
                agent,
                frame,
                "a person was asked and did not allow it",
                &decision,
            ),
        }
    }

    /// The daemon has served a request. Returns false if it is not a request of this session.
    pub(crate) fn on_request_served(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
    ) -> bool {
        let request = frame.id().unwrap_or_default();
        let is_it = |it: &ServedRequest| it.agent == agent && *it.request == *request;
        let Some(at) = self.served.iter().position(is_it) else { return false };
        let ServedRequest { call, decision, .. } = self.served.remove(at);
        let outcome = match frame.error() {
            None => ServedOutcome::Done,
            Some(error) => ServedOutcome::Failed(message_of(error).into()),
        };
        let served = EventBody::Served(RequestServed { call, decision, outcome });
        self.append_event(&mut parts.cx, served);
        self.run_after_log(parts, Effect::ToAgent { agent, text: frame.bytes().clone() });
        true
    }

    fn serve_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
        decision: &PolicyDecision,
    ) {
        let served = ServedRequest {
            agent,
            request: frame.id().expect("a request has an id").into(),
            call: RawJson::trusted(summary(frame).to_string()),
            decision: parts.cx.config.describe_decision(decision),
        };
        self.served.push(served);
        self.send_to_daemon(parts, agent, frame);
    }

    fn send_to_daemon(&mut self, parts: &mut HubParts, agent: AgentId, frame: &Frame) {
        self.run_after_log(parts, Effect::Serve { agent, frame: frame.clone() });
    }

    fn deny_served_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        frame: &Frame,
        why: &str,
        decision: &PolicyDecision,
    ) {
        let call = RawJson::trusted(summary(frame).to_string());
        let outcome = ServedOutcome::Denied(why.into());
        let decision = parts.cx.config.describe_decision(decision);
        let served = EventBody::Served(RequestServed { call, decision, outcome });
        self.append_event(&mut parts.cx, served);
        let agent_request_id = frame.id().expect("a request has an id");
        let fault = Fault::NotAllowed { why: why.to_owned() };
        let text = Frame::error_for(agent_request_id, &fault).bytes().clone();
        self.run_after_log(parts, Effect::ToAgent { agent, text });
    }
}

/// The command lines and paths of a call.
fn commands_and_paths(call: &ToolCallFacts) -> Vec<String> {
    let commands = call.commands.iter().map(|it| it.text().to_owned());
    commands.chain(call.paths.iter().cloned()).chain(call.folders.iter().cloned()).collect()
}

/// The request as params of `session/request_permission`, if it does something that rules are about.
fn permission_params(id: &SessionId, frame: &Frame) -> Option<Value> {
    let params = frame.params_value();
    let path = &params["path"];
    let call = match frame.known_method()? {
        Method::FsReadTextFile => json!({
            "kind": "read",
            "title": format!("Read {}", path.as_str()?),
            "rawInput": { "path": path },
            "locations": [{ "path": path }],
        }),
        Method::FsWriteTextFile => json!({
            "kind": "edit",
            "title": format!("Write {}", path.as_str()?),
            "rawInput": { "path": path },
            "locations": [{ "path": path }],
            "content": [{ "type": "diff", "path": path, "newText": params["content"] }],
        }),
        Method::TerminalCreate => {
            let argv = argv_of(&params)?;
            let mut input = match argv.as_slice() {
                [shell, option, line] if shell == SHELL && option == "-c" => {
                    json!({ "command": line })
                }
                argv => json!({ "argv": argv }),
            };
            if params["cwd"].is_string() {
                input["cwd"] = params["cwd"].clone();
            }
            json!({ "kind": "execute", "title": quote_argv(&argv), "rawInput": input })
        }
        _ => return None,
    };
    let mut call = call;
    call["toolCallId"] = json!(format!("jackfield-{}", frame.id()?));
    Some(json!({ "sessionId": &**id, "toolCall": call, "options": options() }))
}

/// The shell that runs a command that is one line.
pub const SHELL: &str = "/bin/sh";

/// The program and its arguments as the daemon starts them. A line without arguments is run by a shell.
fn argv_of(params: &Value) -> Option<Vec<String>> {
    let command = params["command"].as_str()?;
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let args = texts(&params["args"]);
    let variables = params["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| Some(format!("{}={}", it["name"].as_str()?, it["value"].as_str()?)));
    let mut argv: Vec<String> = variables.collect();
    if !argv.is_empty() {
        argv.insert(0, "env".to_owned());
    }
    if args.is_empty() && command.contains(char::is_whitespace) {
        argv.extend([SHELL, "-c"].map(str::to_owned));
    }
    argv.push(command.to_owned());
    argv.extend(args);
    Some(argv)
}

fn options() -> Value {
    json!([
        { "optionId": "allow-once", "kind": "allow_once", "name": "Allow" },
        { "optionId": "allow-always", "kind": "allow_always", "name": "Always allow" },
        { "optionId": "reject-once", "kind": "reject_once", "name": "Reject" },
        { "optionId": "reject-always", "kind": "reject_always", "name": "Always reject" },
    ])
}

/// What the log stores of a request: everything except the content of files and the values of variables.
fn summary(frame: &Frame) -> Value {
    let params = frame.params_value();
    let mut call = json!({ "method": frame.method() });
    for name in ["path", "command", "args", "cwd", "line", "limit"] {
        if !params[name].is_null() {
            call[name] = params[name].clone();
        }
    }
    let variables = params["env"].as_array().into_iter().flatten();
    let names: Vec<&Value> = variables.map(|it| &it["name"]).collect();
    if !names.is_empty() {
        call["env"] = json!(names);
    }
    if let Some(content) = params["content"].as_str() {
        call["bytes"] = json!(content.len());
    }
    call
}

fn message_of(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    error["message"].as_str().unwrap_or_default().to_owned()
}
