//! What the agent asks of its client: each ask knows its request and what its answer leads to.

use serde_json::{Value, json};

use super::words::{Step, chunk};

/// One request to the client.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Permission {
        index: u32,
        stubborn: bool,
        title: String,
    },
    Elicit(Form),
    FsRead {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    FsWrite(String, String),
    TerminalCreate(Command, Then),
    TerminalKill(String),
    /// A look at a terminal of an earlier turn.
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

/// What runs in a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) limit: Option<u64>,
}

/// What follows when a terminal is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Wait,
    Kill,
    Leave,
}

/// What an elicitation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Fields,
    Url,
    /// A form that names the client's own pending request instead of the session.
    Request,
}

impl Form {
    pub(crate) fn parse(text: &str) -> Option<Form> {
        match text {
            "" | "form" => Some(Form::Fields),
            "url" => Some(Form::Url),
            "request" => Some(Form::Request),
            _ => None,
        }
    }
}

/// The turn that asks.
pub(crate) struct Asker<'a> {
    pub(crate) session: &'a str,
    /// The JSON-RPC id of its prompt.
    pub(crate) prompt: &'a Value,
    /// Which prompt of the session it is, from 1.
    pub(crate) number: usize,
}

impl Asker<'_> {
    pub(crate) fn tool_id(&self, index: u32) -> String {
        format!("call-{}-{index}", self.number)
    }
}

const ELICITATION: &str = "fake-elicitation";

impl Ask {
    /// Method and params.
    pub(crate) fn request(&self, asker: &Asker<'_>) -> (&'static str, Value) {
        let session = asker.session;
        let on_terminal = |id: &str| json!({"sessionId": session, "terminalId": id});
        match self {
            Ask::Permission { index, title, .. } => {
                ("session/request_permission", permission(session, &asker.tool_id(*index), title))
            }
            Ask::Elicit(form) => ("elicitation/create", elicitation(*form, asker)),
            Ask::FsRead { path, line, limit } => {
                let mut params = json!({"sessionId": session, "path": path});
                for (name, it) in [("line", line), ("limit", limit)] {
                    if let Some(it) = it {
                        params[name] = json!(it);
                    }
                }
                ("fs/read_text_file", params)
            }
            Ask::FsWrite(path, text) => {
                let params = json!({"sessionId": session, "path": path, "content": text});
                ("fs/write_text_file", params)
            }
            Ask::TerminalCreate(Command { program, args, limit }, _) => {
                let mut params = json!({"sessionId": session, "command": program, "args": args});
                if let Some(limit) = limit {
                    params["outputByteLimit"] = json!(limit);
                }
                ("terminal/create", params)
            }
            Ask::TerminalKill(id) => ("terminal/kill", on_terminal(id)),
            Ask::TerminalLook(id) => ("terminal/output", on_terminal(id)),
            Ask::TerminalWait(id) => ("terminal/wait_for_exit", on_terminal(id)),
            Ask::TerminalOutput { terminal, .. } => ("terminal/output", on_terminal(terminal)),
            Ask::TerminalRelease { terminal, .. } => ("terminal/release", on_terminal(terminal)),
            Ask::Unknown => ("fake/nobodyServesThis", json!({"sessionId": session, "odd": [1, 2]})),
        }
    }

    /// What the turn does when the answer, a result or an error, is there.
    pub(crate) fn heard(self, asker: &Asker<'_>, answer: Result<Value, Value>) -> Vec<Step> {
        let what = self.name();
        let answer = match answer {
            Ok(result) => result,
            Err(error) => {
                let message = error["message"].as_str().unwrap_or_default();
                return vec![Step::Say(format!("{what}: error {} {message}", error["code"]))];
            }
        };
        let next = |ask| vec![Step::Asks(vec![ask], None)];
        match self {
            Ask::Permission { index, stubborn, .. } => {
                decided(&asker.tool_id(index), &what, stubborn, &answer)
            }
            Ask::Elicit(form) => elicited(form, &answer),
            Ask::FsRead { .. } => {
                let text = answer["content"].as_str().unwrap_or("no content");
                vec![Step::Say(format!("{what}: {text}"))]
            }
            Ask::FsWrite(..) => vec![Step::Say(format!("{what}: done"))],
            Ask::TerminalCreate(_, then) => {
                let terminal = text_of(&answer["terminalId"]);
                match then {
                    Then::Wait => next(Ask::TerminalWait(terminal)),
                    Then::Kill => next(Ask::TerminalKill(terminal)),
                    Then::Leave => vec![Step::Say(format!("terminal: left {terminal}"))],
                }
            }
            Ask::TerminalKill(terminal) => next(Ask::TerminalWait(terminal)),
            Ask::TerminalLook(_) => vec![Step::Say(format!("{what}: {answer}"))],
            Ask::TerminalWait(terminal) => {
                let exit = format!("exit {} signal {}", answer["exitCode"], answer["signal"]);
                next(Ask::TerminalOutput { terminal, exit })
            }
            Ask::TerminalOutput { terminal, exit } => {
                let text = format!("{exit}: {}", text_of(&answer["output"]));
                next(Ask::TerminalRelease { terminal, text })
            }
            Ask::TerminalRelease { text, .. } => vec![Step::Say(format!("terminal: {text}"))],
            Ask::Unknown => vec![Step::Say(format!("{what}: result {answer}"))],
        }
    }

    fn name(&self) -> String {
        match self {
            Ask::Permission { index, .. } => format!("ask {index}"),
            Ask::Elicit(_) => "elicit".to_owned(),
            Ask::FsRead { .. } => "fs-read".to_owned(),
            Ask::FsWrite(..) => "fs-write".to_owned(),
            Ask::Unknown => "unknown-request".to_owned(),
            _ => "terminal".to_owned(),
        }
    }
}

fn permission(session: &str, tool: &str, title: &str) -> Value {
    let option = |id: &str| json!({"optionId": id, "name": id, "kind": id.replace('-', "_")});
    let options = ["allow-once", "allow-always", "reject-once", "reject-always"].map(option);
    json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": tool, "title": title, "kind": "edit", "status": "pending",
            "rawInput": {"path": "/fake/file"},
        },
        "options": options,
    })
}

fn decided(tool: &str, what: &str, stubborn: bool, answer: &Value) -> Vec<Step> {
    let outcome = &answer["outcome"];
    let choice = match outcome["outcome"].as_str() {
        Some("selected") => text_of(&outcome["optionId"]),
        Some(other) => other.to_owned(),
        None => format!("odd outcome {outcome}"),
    };
    let status = if choice.starts_with("allow") || stubborn { "completed" } else { "failed" };
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": tool, "status": status});
    vec![Step::Update(update), Step::Say(format!("{what}: {choice}"))]
}

fn elicitation(form: Form, asker: &Asker<'_>) -> Value {
    let branch = json!({"type": "string", "enum": ["main", "next"]});
    let schema =
        json!({"type": "object", "properties": {"branch": branch}, "required": ["branch"]});
    let (session, message) = (asker.session, "Which branch?");
    match form {
        Form::Fields => json!({
            "mode": "form", "sessionId": session, "message": message, "requestedSchema": schema,
        }),
        Form::Request => json!({
            "mode": "form", "requestId": asker.prompt, "message": message,
            "requestedSchema": schema,
        }),
        Form::Url => json!({
            "mode": "url", "sessionId": session, "message": "Sign in",
            "elicitationId": ELICITATION, "url": "http://127.0.0.1/fake",
        }),
    }
}

fn elicited(form: Form, answer: &Value) -> Vec<Step> {
    let text = format!("elicit: {} {}", text_of(&answer["action"]), answer["content"]);
    let mut steps = vec![Step::Say(text)];
    if form == Form::Url && answer["action"] == "accept" {
        let params = json!({"elicitationId": ELICITATION});
        steps.push(Step::Notify("elicitation/complete", params));
    }
    steps
}

/// The updates of a tool that runs without asking: created, a diff, completed.
pub(crate) fn tool_run(tool: &str) -> [Value; 4] {
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

/// A string as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
