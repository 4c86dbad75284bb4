//! Files and commands that the daemon itself reads, writes and runs for an agent (`fs/*`, `terminal/create`).
//!
//! Each request is judged by the rules like a permission request: a deny is answered with an error, an ask waits
//! for a person, everything else is done. The log has what was requested, what the rules said, and the outcome.

use super::{ask::RequestOrigin, rules::params_of};
use crate::{
    AgentId, Hub, SessionId, context::HubContext, log::Effect as After, session::Sessions,
};
use jackfield_events::{EventBody, RawJson, RequestServed, ServedOutcome};
use jackfield_policy::{PolicyDecision, RuleEffect, ToolCallFacts};
use jackfield_protocol::{Fault, Frame, acp::Method};
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

impl Sessions {
    /// The agent has ended before its requests were answered: their outcome is unknown.
    pub(crate) fn finish_served_request(&mut self, cx: &mut HubContext, id: &SessionId) {
        let Some(session) = self.by_id.get_mut(id) else { return };
        for served in std::mem::take(&mut session.served) {
            let (call, decision) = (served.call, served.decision);
            self.append_event(
                cx,
                id,
                EventBody::Served(RequestServed {
                    call,
                    decision,
                    outcome: ServedOutcome::Unknown,
                }),
            );
        }
    }

    /// Remembers what a person allowed, so that the agent may do it in this turn.
    pub(super) fn remember_approved_call(
        &mut self,
        cx: &HubContext,
        id: &SessionId,
        ask: &Frame,
        answer: &Frame,
    ) {
        let params = params_of(ask);
        let result: Value =
            serde_json::from_str(answer.result().unwrap_or("null")).unwrap_or_default();
        let chosen = &result["outcome"]["optionId"];
        let mut options = params["options"].as_array().into_iter().flatten();
        let kind = options.find(|it| it["optionId"] == *chosen && chosen.is_string());
        if kind.and_then(|it| it["kind"].as_str()) != Some("allow_once") {
            return;
        }
        let Some(session) = self.by_id.get(id) else { return };
        let parts = parts_of(&session.read_tool_call(&cx.config, &params));
        if let Some(turn) = self.by_id.get_mut(id).and_then(|it| it.turn.as_mut()) {
            turn.approved.extend(parts);
        }
    }

    /// Whether a person has allowed all of it in this turn.
    fn is_approved_call(&self, cx: &HubContext, id: &SessionId, params: &Value) -> bool {
        let Some(session) = self.by_id.get(id) else { return false };
        let parts = parts_of(&session.read_tool_call(&cx.config, params));
        let turn = session.turn.as_ref();
        !parts.is_empty()
            && turn.is_some_and(|turn| parts.iter().all(|it| turn.approved.contains(it)))
    }
}

impl Hub {
    /// An agent requests a file or a terminal, and no client serves them.
    pub(super) fn judge_served(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        let Some(params) = permission_params(id, frame) else {
            return self.carry_out(agent, id, frame);
        };
        let decision = self.sessions.judge_tool_call(&self.parts.cx, id, &params);
        match decision.effect {
            Some(RuleEffect::Deny) => self.deny_served(agent, id, frame, &decision.why, &decision),
            Some(RuleEffect::Ask)
                if !self.sessions.is_approved_call(&self.parts.cx, id, &params) =>
            {
                let ask = Frame::request(
                    "0",
                    Method::SessionRequestPermission.name(),
                    &params.to_string(),
                );
                self.open_ask(agent, id, ask, RequestOrigin::Served(frame.clone()));
            }
            _ => self.start_served(agent, id, frame, &decision),
        }
    }

    /// A person has answered the permission request of this request.
    pub(super) fn settle_served(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        frame: &Frame,
        answer: &Frame,
    ) {
        let Some(params) = permission_params(id, frame) else { return };
        let decision = self.sessions.judge_tool_call(&self.parts.cx, id, &params);
        let result: Value =
            serde_json::from_str(answer.result().unwrap_or("null")).unwrap_or_default();
        // A rule may have been added while the request was open.
        let denied = decision.effect == Some(RuleEffect::Deny);
        match result["outcome"]["optionId"].as_str() {
            Some("allow-once") if !denied => self.start_served(agent, id, frame, &decision),
            _ => self.deny_served(
                agent,
                id,
                frame,
                "a person was asked and did not allow it",
                &decision,
            ),
        }
    }

    fn start_served(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        frame: &Frame,
        decision: &PolicyDecision,
    ) {
        let served = ServedRequest {
            agent,
            request: frame.id().expect("a request has an id").into(),
            call: RawJson::trusted(summary(frame).to_string()),
            decision: self.parts.cx.config.describe_decision(decision),
        };
        if let Some(session) = self.sessions.by_id.get_mut(id) {
            session.served.push(served);
        }
        self.carry_out(agent, id, frame);
    }

    fn carry_out(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        self.after_log(id, After::Serve { agent, frame: frame.clone() });
    }

    fn deny_served(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        frame: &Frame,
        why: &str,
        decision: &PolicyDecision,
    ) {
        let call = RawJson::trusted(summary(frame).to_string());
        let outcome = ServedOutcome::Denied(why.into());
        let decision = self.parts.cx.config.describe_decision(decision);
        let served = EventBody::Served(RequestServed { call, decision, outcome });
        self.sessions.append_event(&mut self.parts.cx, id, served);
        let agent_request_id = frame.id().expect("a request has an id");
        let fault = Fault::NotAllowed { why: why.to_owned() };
        let text = Frame::error_for(agent_request_id, &fault).bytes().clone();
        self.after_log(id, After::ToAgent { agent, text });
    }

    /// The daemon has served the request.
    pub(crate) fn on_served(&mut self, agent: AgentId, frame: &Frame) {
        if !self.parts.agents.processes.contains_key(&agent) {
            return;
        }
        let request = frame.id().unwrap_or_default();
        let is_it = |it: &ServedRequest| it.agent == agent && *it.request == *request;
        let found = self.served_by(agent).into_iter().find_map(|id| {
            let session = self.sessions.by_id.get_mut(&id)?;
            let at = session.served.iter().position(is_it)?;
            Some((id, session.served.remove(at)))
        });
        let text = frame.bytes().clone();
        let Some((id, served)) = found else {
            return self.parts.cx.outputs.push_back(crate::Output::ToAgent { agent, text });
        };
        let outcome = match frame.error() {
            None => ServedOutcome::Done,
            Some(error) => ServedOutcome::Failed(message_of(error).into()),
        };
        self.sessions.append_event(
            &mut self.parts.cx,
            &id,
            EventBody::Served(RequestServed {
                call: served.call,
                decision: served.decision,
                outcome,
            }),
        );
        self.after_log(&id, After::ToAgent { agent, text });
    }
}

/// The command lines and paths of a call.
fn parts_of(call: &ToolCallFacts) -> Vec<String> {
    let commands = call.commands.iter().map(|it| it.text().to_owned());
    commands.chain(call.paths.iter().cloned()).chain(call.folders.iter().cloned()).collect()
}

/// The request as params of `session/request_permission`, if it does something that rules are about.
fn permission_params(id: &SessionId, frame: &Frame) -> Option<Value> {
    let params = params_of(frame);
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
            let words = words_of(&params)?;
            let mut input = match words.as_slice() {
                [shell, option, line] if shell == SHELL && option == "-c" => {
                    json!({ "command": line })
                }
                words => json!({ "argv": words }),
            };
            if params["cwd"].is_string() {
                input["cwd"] = params["cwd"].clone();
            }
            json!({ "kind": "execute", "title": words.join(" "), "rawInput": input })
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
fn words_of(params: &Value) -> Option<Vec<String>> {
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
    let mut words: Vec<String> = variables.collect();
    if !words.is_empty() {
        words.insert(0, "env".to_owned());
    }
    if args.is_empty() && command.contains(char::is_whitespace) {
        words.extend([SHELL, "-c"].map(str::to_owned));
    }
    words.push(command.to_owned());
    words.extend(args);
    Some(words)
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
    let params = params_of(frame);
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
