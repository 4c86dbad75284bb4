//! Requests of the agent to its client: their params, and the steps that follow their responses.

use serde_json::{Value, json};

use super::words::{TurnStep, chunk};

/// A request to the client.
#[derive(Debug, Clone)]
pub(crate) enum OutgoingRequest {
    Permission {
        index: u32,
        stubborn: bool,
        title: String,
        /// The ids of the options, which are also their names and kinds.
        options: Vec<String>,
    },
    Elicit(ElicitationForm),
    FsRead {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    FsWrite(String, String),
    TerminalCreate(TerminalCommand, TerminalAction),
    TerminalKill(String),
    /// Reads the output of a terminal of an earlier turn.
    TerminalLook(String),
    TerminalWait(String),
    TerminalOutput {
        terminal: String,
        exit: String,
    },
    TerminalRelease {
        terminal: String,
        text: String,
    },
    Unknown,
}

/// The command of a terminal.
#[derive(Debug, Clone)]
pub(crate) struct TerminalCommand {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) limit: Option<u64>,
}

/// What follows the creation of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalAction {
    Wait,
    Kill,
    Leave,
}

/// The kind of an elicitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElicitationForm {
    Fields,
    Url,
    /// A form that names the client's own open request instead of the session.
    Request,
}

impl ElicitationForm {
    pub(crate) fn parse(text: &str) -> Option<ElicitationForm> {
        match text {
            "" | "form" => Some(ElicitationForm::Fields),
            "url" => Some(ElicitationForm::Url),
            "request" => Some(ElicitationForm::Request),
            _ => None,
        }
    }
}

/// The turn that sends the request.
pub(crate) struct RequestContext<'a> {
    pub(crate) session: &'a str,
    /// The JSON-RPC id of its prompt.
    pub(crate) prompt: &'a Value,
    /// The number of the prompt in its session, from 1.
    pub(crate) number: usize,
}

impl RequestContext<'_> {
    pub(crate) fn tool_id(&self, index: u32) -> String {
        format!("call-{}-{index}", self.number)
    }
}

const ELICITATION: &str = "fake-elicitation";

impl OutgoingRequest {
    /// The method and the params.
    pub(crate) fn request(&self, request_context: &RequestContext<'_>) -> (&'static str, Value) {
        let session = request_context.session;
        let on_terminal = |id: &str| json!({"sessionId": session, "terminalId": id});
        match self {
            OutgoingRequest::Permission { index, title, options, .. } => (
                "session/request_permission",
                permission_params(session, &request_context.tool_id(*index), title, options),
            ),
            OutgoingRequest::Elicit(form) => {
                ("elicitation/create", elicitation_params(*form, request_context))
            }
            OutgoingRequest::FsRead { path, line, limit } => {
                let mut params = json!({"sessionId": session, "path": path});
                for (name, it) in [("line", line), ("limit", limit)] {
                    if let Some(it) = it {
                        params[name] = json!(it);
                    }
                }
                ("fs/read_text_file", params)
            }
            OutgoingRequest::FsWrite(path, text) => {
                let params = json!({"sessionId": session, "path": path, "content": text});
                ("fs/write_text_file", params)
            }
            OutgoingRequest::TerminalCreate(TerminalCommand { program, args, limit }, _) => {
                let mut params = json!({"sessionId": session, "command": program, "args": args});
                if let Some(limit) = limit {
                    params["outputByteLimit"] = json!(limit);
                }
                ("terminal/create", params)
            }
            OutgoingRequest::TerminalKill(id) => ("terminal/kill", on_terminal(id)),
            OutgoingRequest::TerminalLook(id) => ("terminal/output", on_terminal(id)),
            OutgoingRequest::TerminalWait(id) => ("terminal/wait_for_exit", on_terminal(id)),
            OutgoingRequest::TerminalOutput { terminal, .. } => {
                ("terminal/output", on_terminal(terminal))
            }
            OutgoingRequest::TerminalRelease { terminal, .. } => {
                ("terminal/release", on_terminal(terminal))
            }
            OutgoingRequest::Unknown => {
                ("fake/nobodyServesThis", json!({"sessionId": session, "odd": [1, 2]}))
            }
        }
    }

    /// The steps of the turn after the response, a result or an error.
    pub(crate) fn steps_after_response(
        self,
        request_context: &RequestContext<'_>,
        answer: Result<Value, Value>,
    ) -> Vec<TurnStep> {
        let what = self.name();
        let answer = match answer {
            Ok(result) => result,
            Err(error) => {
                let message = error["message"].as_str().unwrap_or_default();
                return vec![TurnStep::SendText(format!(
                    "{what}: error {} {message}",
                    error["code"]
                ))];
            }
        };
        let next = |ask| vec![TurnStep::SendRequests(vec![ask], None)];
        match self {
            OutgoingRequest::Permission { index, stubborn, .. } => {
                steps_after_permission(&request_context.tool_id(index), &what, stubborn, &answer)
            }
            OutgoingRequest::Elicit(form) => steps_after_elicitation(form, &answer),
            OutgoingRequest::FsRead { .. } => {
                let text = answer["content"].as_str().unwrap_or("no content");
                vec![TurnStep::SendText(format!("{what}: {text}"))]
            }
            OutgoingRequest::FsWrite(..) => vec![TurnStep::SendText(format!("{what}: done"))],
            OutgoingRequest::TerminalCreate(_, then) => {
                let terminal = text_of(&answer["terminalId"]);
                match then {
                    TerminalAction::Wait => next(OutgoingRequest::TerminalWait(terminal)),
                    TerminalAction::Kill => next(OutgoingRequest::TerminalKill(terminal)),
                    TerminalAction::Leave => {
                        vec![TurnStep::SendText(format!("terminal: left {terminal}"))]
                    }
                }
            }
            OutgoingRequest::TerminalKill(terminal) => {
                next(OutgoingRequest::TerminalWait(terminal))
            }
            OutgoingRequest::TerminalLook(_) => {
                vec![TurnStep::SendText(format!("{what}: {answer}"))]
            }
            OutgoingRequest::TerminalWait(terminal) => {
                let exit = format!("exit {} signal {}", answer["exitCode"], answer["signal"]);
                next(OutgoingRequest::TerminalOutput { terminal, exit })
            }
            OutgoingRequest::TerminalOutput { terminal, exit } => {
                let text = format!("{exit}: {}", text_of(&answer["output"]));
                next(OutgoingRequest::TerminalRelease { terminal, text })
            }
            OutgoingRequest::TerminalRelease { text, .. } => {
                vec![TurnStep::SendText(format!("terminal: {text}"))]
            }
            OutgoingRequest::Unknown => {
                vec![TurnStep::SendText(format!("{what}: result {answer}"))]
            }
        }
    }

    fn name(&self) -> String {
        match self {
            OutgoingRequest::Permission { index, .. } => format!("ask {index}"),
            OutgoingRequest::Elicit(_) => "elicit".to_owned(),
            OutgoingRequest::FsRead { .. } => "fs-read".to_owned(),
            OutgoingRequest::FsWrite(..) => "fs-write".to_owned(),
            OutgoingRequest::Unknown => "unknown-request".to_owned(),
            _ => "terminal".to_owned(),
        }
    }
}

/// The options of a permission request, unless the prompt names others.
pub(crate) fn default_options() -> Vec<String> {
    ["allow-once", "allow-always", "reject-once", "reject-always"].map(str::to_owned).to_vec()
}

fn permission_params(session: &str, tool: &str, title: &str, options: &[String]) -> Value {
    let option = |id: &String| json!({"optionId": id, "name": id, "kind": id.replace('-', "_")});
    let options: Vec<Value> = options.iter().map(option).collect();
    json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": tool, "title": title, "kind": "edit", "status": "pending",
            "rawInput": {"path": "/fake/file"},
        },
        "options": options,
    })
}

fn steps_after_permission(tool: &str, what: &str, stubborn: bool, answer: &Value) -> Vec<TurnStep> {
    let outcome = &answer["outcome"];
    let choice = match outcome["outcome"].as_str() {
        Some("selected") => text_of(&outcome["optionId"]),
        Some(other) => other.to_owned(),
        None => format!("odd outcome {outcome}"),
    };
    let status = if choice.starts_with("allow") || stubborn { "completed" } else { "failed" };
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": tool, "status": status});
    vec![TurnStep::Update(update), TurnStep::SendText(format!("{what}: {choice}"))]
}

fn elicitation_params(form: ElicitationForm, request_context: &RequestContext<'_>) -> Value {
    let branch = json!({"type": "string", "enum": ["main", "next"]});
    let schema =
        json!({"type": "object", "properties": {"branch": branch}, "required": ["branch"]});
    let (session, message) = (request_context.session, "Which branch?");
    match form {
        ElicitationForm::Fields => json!({
            "mode": "form", "sessionId": session, "message": message, "requestedSchema": schema,
        }),
        ElicitationForm::Request => json!({
            "mode": "form", "requestId": request_context.prompt, "message": message,
            "requestedSchema": schema,
        }),
        ElicitationForm::Url => json!({
            "mode": "url", "sessionId": session, "message": "Sign in",
            "elicitationId": ELICITATION, "url": "http://127.0.0.1/fake",
        }),
    }
}

fn steps_after_elicitation(form: ElicitationForm, answer: &Value) -> Vec<TurnStep> {
    let text = format!("elicit: {} {}", text_of(&answer["action"]), answer["content"]);
    let mut steps = vec![TurnStep::SendText(text)];
    if form == ElicitationForm::Url && answer["action"] == "accept" {
        let params = json!({"elicitationId": ELICITATION});
        steps.push(TurnStep::Notify("elicitation/complete", params));
    }
    steps
}

/// The updates of a tool call without permission request: created, in progress, completed with a diff.
pub(crate) fn tool_call_updates(tool: &str) -> [Value; 4] {
    let text = json!({"type": "content", "content": {"type": "text", "text": "one line changed"}});
    let diff = json!({"type": "diff", "path": "/fake/file", "oldText": "a\n", "newText": "b\n"});
    let update = |status: &str, content: Value| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": tool, "status": status,
            "content": content,
        })
    };
    [
        json!({
            "sessionUpdate": "tool_call", "toolCallId": tool, "title": "edit /fake/file",
            "kind": "edit", "status": "pending", "locations": [{"path": "/fake/file", "line": 1}],
            "rawInput": {"path": "/fake/file"},
        }),
        update("in_progress", json!([text])),
        update("completed", json!([diff])),
        chunk("agent_message_chunk", "tool: done"),
    ]
}

/// A string unchanged, any other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
