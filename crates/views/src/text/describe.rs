//! Descriptions that the human-readable views share: the text of a block, a sentence for an event, the
//! title of a tool call, and the option that an answer chose.

use super::TextPiece;
use crate::fallback::describe_fallback;
use jackfield_events::{
    ConnectionRefused, EventBody, MessageDropped, RestoreStep, ServedOutcome, SessionMoved,
    TurnEnded, TurnOutcome, UserAnswered, UserAsked,
};
use jackfield_protocol::{acp::Method, quote_argv};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn str_member<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A content block as text.
pub(crate) fn block_text(content: &Value) -> String {
    match str_member(content, "type") {
        "text" => str_member(content, "text").to_owned(),
        "resource_link" => format!("[{}]", str_member(content, "uri")),
        "resource" => format!("[{}]", str_member(&content["resource"], "uri")),
        other => format!("[{other}]"),
    }
}

/// Describes a turn that failed or was interrupted. The hub's own message about an interrupted turn starts with the
/// name of the outcome, which is not repeated.
pub(crate) fn describe_failed_turn(
    turn: u64,
    outcome: &TurnOutcome<Value>,
    message: &str,
) -> String {
    let name = outcome.name();
    let cause = message.strip_prefix(name).and_then(|it| it.strip_prefix(": ")).unwrap_or(message);
    format!("turn {turn} {name}: {cause}")
}

/// Describes an event in a sentence; `None` for events that are rendered differently or not at all.
pub(crate) fn describe_event(body: &EventBody<Value>) -> Option<String> {
    let description = match body {
        EventBody::Opened(it) => {
            let failed = it.fallback.as_ref().map(describe_fallback).unwrap_or_default();
            let opened = format!("session opened: {} in {}", it.agent, it.cwd);
            [vec![opened], failed].concat().join("; ")
        }
        EventBody::Forked(it) => {
            format!("session forked from {} after event {}", it.from, it.seq_there.0)
        }
        EventBody::Moved(SessionMoved { from, to, why }) => match to {
            None => format!("session moved from {from}: {why}"),
            Some(to) => format!("session moved from {from} to {to}: {why}"),
        },
        EventBody::Bound(it) => describe_restore(it.restore).to_owned(),
        EventBody::Reordered(it) => {
            let order: Vec<String> = it.order.iter().map(u64::to_string).collect();
            format!("prompt {} moved: the queue is {}", it.prompt, order.join(", "))
        }
        EventBody::Withdrawn(it) => format!("prompt {} did not run: {}", it.prompt, it.why),
        EventBody::Cancelled(it) => match it.step {
            0 | 1 => "cancellation requested".to_owned(),
            2 => "cancellation requested again".to_owned(),
            _ => "cancellation ignored; the agent process is stopped".to_owned(),
        },
        EventBody::Ended(TurnEnded { turn, outcome }) => match outcome {
            TurnOutcome::Stopped(result) => match str_member(result, "stopReason") {
                "end_turn" => return None,
                reason => format!("turn {turn} ended: {reason}"),
            },
            TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error) => {
                describe_failed_turn(*turn, outcome, str_member(error, "message"))
            }
        },
        EventBody::Refused(it) => {
            let client = describe_client(&it.by, it.peer.as_ref());
            format!("refused `{}` from {client}: {}", it.operation, it.why)
        }
        EventBody::HostRefused(it) => describe_refused_host(it),
        EventBody::LeftOut(MessageDropped { what, bytes, limit }) => {
            format!("dropped {what} of the agent: {bytes} bytes exceed the limit of {limit} bytes")
        }
        EventBody::Served(it) => describe_served(&it.call, &it.outcome),
        EventBody::Gone(it) => format!("agent exited: {}", it.status),
        EventBody::Quiet(it) => format!("quiet: {}", it.waits),
        EventBody::Slept(it) => format!("asleep: {}", it.why),
        EventBody::Closed => "session closed".to_owned(),
        EventBody::Imported(_)
        | EventBody::Said(_)
        | EventBody::Queued(_)
        | EventBody::Prompted(_)
        | EventBody::Asked(_)
        | EventBody::Answered(_)
        | EventBody::Learned(_)
        | EventBody::Sandboxed(_)
        | EventBody::Unasked(_)
        | EventBody::Configured(_) => return None,
    };
    Some(description)
}

/// A connection that the sandbox refused.
fn describe_refused_host(refused: &ConnectionRefused) -> String {
    format!("sandbox refused the connection to {}: {}", refused.destination(), refused.why)
}

/// How an agent process got the conversation of a session back.
fn describe_restore(method: RestoreStep) -> &'static str {
    match method {
        RestoreStep::Resumed => "agent restarted and resumed the conversation",
        RestoreStep::Reloaded => "agent restarted and reloaded the conversation",
        RestoreStep::Forked => "agent started from a fork of the conversation",
        RestoreStep::Reseeded => "agent restarted from a summary of the conversation",
        RestoreStep::Failed => "agent could not be restarted with the conversation",
    }
}

/// Describes a client by the name it gives itself and the process that the operating system reports.
pub fn describe_client(by: &str, peer: Option<&Value>) -> String {
    let peer = peer.unwrap_or(&Value::Null);
    let number = |name: &str| peer[name].as_u64().map(|it| format!("{name} {it}"));
    let exe = peer["exe"].as_str().map(str::to_owned);
    let parts = [Some(by.to_owned()), number("pid"), number("uid"), exe];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes a request of the agent that the daemon handled itself, and its outcome.
fn describe_served(call: &Value, outcome: &ServedOutcome) -> String {
    let args = call["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let request = match Method::from_name(str_member(call, "method")) {
        Some(Method::FsReadTextFile) => format!("read {}", str_member(call, "path")),
        Some(Method::FsWriteTextFile) => format!("write {}", str_member(call, "path")),
        _ => {
            let command = str_member(call, "command");
            let is_line = command.contains(char::is_whitespace) && args.clone().next().is_none();
            let argv = [command].into_iter().chain(args);
            format!("run `{}`", if is_line { command.to_owned() } else { quote_argv(argv) })
        }
    };
    match outcome {
        ServedOutcome::Done => format!("daemon handled the agent's request: {request}"),
        ServedOutcome::Denied(why) => {
            format!("daemon denied the agent's request: {request}: {why}")
        }
        ServedOutcome::Failed(why) => {
            format!("daemon failed to handle the agent's request: {request}: {why}")
        }
        ServedOutcome::Unknown => {
            format!("agent exited while the daemon handled its request: {request}")
        }
    }
}

/// The commands and paths of a permission request, as the policy parsed them.
pub(crate) fn request_details(call: &Value) -> impl Iterator<Item = TextPiece> {
    let parts = [("runs", "commands"), ("mcp", "mcp"), ("path", "paths")];
    parts.into_iter().flat_map(move |(label, member)| {
        let texts = call[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(move |it| TextPiece::Line { label, text: it.to_owned() })
    })
}

/// The last lines that an agent wrote to stderr before it exited.
pub(crate) fn last_stderr_lines(stderr: &str) -> Vec<&str> {
    const LINES_MAX: usize = 5;
    let lines: Vec<&str> = stderr.lines().collect();
    let tail = lines.len().saturating_sub(LINES_MAX);
    lines[tail..].to_vec()
}

/// A tool call as far as it is known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ToolSummary {
    pub title: String,
    pub kind: String,
}

/// The tool calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct ToolSummaries(BTreeMap<String, ToolSummary>);

impl ToolSummaries {
    /// Merges an update of a call and returns what is known about the call.
    pub(crate) fn merge_call(&mut self, call: &Value) -> ToolSummary {
        let tool = self.0.entry(str_member(call, "toolCallId").to_owned()).or_default();
        for (known, member) in [(&mut tool.title, "title"), (&mut tool.kind, "kind")] {
            let value = str_member(call, member);
            if !value.is_empty() {
                value.clone_into(known);
            }
        }
        tool.clone()
    }
}

/// The names of the options of each request to the user, by request number and option id.
#[derive(Debug, Default)]
pub(crate) struct OptionNames(BTreeMap<(u64, String), String>);

impl OptionNames {
    /// Remembers the options of a request for its answer.
    pub(crate) fn remember(&mut self, asked: &UserAsked<Value>) {
        for option in asked.frame["params"]["options"].as_array().into_iter().flatten() {
            let (id, name) = (str_member(option, "optionId"), str_member(option, "name"));
            self.0.insert((asked.ask, id.to_owned()), name.to_owned());
        }
    }

    /// The answer as the agent named it.
    pub(crate) fn chosen_name<'a>(&'a self, answered: &'a UserAnswered<Value>) -> &'a str {
        let answer = &answered.answer;
        let result = &answer["result"];
        match (str_member(answer, "void"), str_member(&result["outcome"], "optionId")) {
            ("", "") if result["action"].is_string() => str_member(result, "action"),
            ("", "") => "no option chosen",
            ("", option) => {
                self.0.get(&(answered.ask, option.to_owned())).map_or(option, String::as_str)
            }
            (void, _) => void,
        }
    }
}
