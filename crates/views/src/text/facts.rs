//! What the views for people say alike: which words a block has, how a fact is put into a sentence,
//! what a tool call is called, and which option an answer chose.

use super::Piece;
use jackfield_events::{
    EventBody, MessageDropped, ServedOutcome, SessionMoved, TurnEnded, TurnOutcome, UserAnswered,
    UserAsked,
};
use jackfield_protocol::acp::Method;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A content block as words.
pub(crate) fn words_of(content: &Value) -> String {
    match text(content, "type") {
        "text" => text(content, "text").to_owned(),
        "resource_link" => format!("[{}]", text(content, "uri")),
        "resource" => format!("[{}]", text(&content["resource"], "uri")),
        other => format!("[{other}]"),
    }
}

/// An event as a sentence; `None` for events that are shown in other ways or not at all.
pub(crate) fn remark(body: &EventBody<Value>) -> Option<String> {
    let remark = match body {
        EventBody::Opened(it) => format!("session opened: {} in {}", it.agent, it.cwd),
        EventBody::Forked(it) => {
            format!("session forked from {} after event {}", it.from, it.seq_there.0)
        }
        EventBody::Moved(SessionMoved { from, to, why }) => match to {
            None => format!("session moved from {from}: {why}"),
            Some(to) => format!("session moved from {from} to {to}: {why}"),
        },
        EventBody::Bound(it) => format!("session {} by a new agent process", it.rung.as_str()),
        EventBody::Withdrawn(it) => format!("prompt {} did not run: {}", it.prompt, it.why),
        EventBody::Cancelled(it) => match it.step {
            0 | 1 => "asked to stop".to_owned(),
            2 => "asked to stop again".to_owned(),
            _ => "did not stop: its process is ended".to_owned(),
        },
        EventBody::Ended(TurnEnded { turn, outcome }) => match outcome {
            TurnOutcome::Stopped(result) => match text(result, "stopReason") {
                "end_turn" => return None,
                reason => format!("turn {turn} ended: {reason}"),
            },
            TurnOutcome::Failed(error) | TurnOutcome::Interrupted(error) => {
                format!("turn {turn} {}: {}", outcome.name(), text(error, "message"))
            }
        },
        EventBody::Refused(it) => {
            let by = by_whom(&it.by, it.peer.as_ref());
            format!("refused `{}` of {by}: {}", it.operation, it.why)
        }
        EventBody::LeftOut(MessageDropped { what, bytes, limit }) => {
            format!("left out {what} of the agent: {bytes} bytes, and the limit is {limit}")
        }
        EventBody::Served(it) => served(&it.call, &it.outcome),
        EventBody::Gone(it) => format!("agent ended: {}", it.status),
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
        | EventBody::Unasked(_)
        | EventBody::Configured(_) => return None,
    };
    Some(remark)
}

/// The name that a client gives itself, and what the operating system reports about its process.
pub fn by_whom(by: &str, peer: Option<&Value>) -> String {
    let peer = peer.unwrap_or(&Value::Null);
    let number = |name: &str| peer[name].as_u64().map(|it| format!("{name} {it}"));
    let exe = peer["exe"].as_str().map(str::to_owned);
    let parts = [Some(by.to_owned()), number("pid"), number("uid"), exe];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A request of the agent that the daemon handled itself, and its outcome.
fn served(call: &Value, outcome: &ServedOutcome) -> String {
    let args = call["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let what = match Method::from_name(text(call, "method")) {
        Some(Method::FsReadTextFile) => format!("read {}", text(call, "path")),
        Some(Method::FsWriteTextFile) => format!("write {}", text(call, "path")),
        _ => {
            let words: Vec<&str> = std::iter::once(text(call, "command")).chain(args).collect();
            format!("run `{}`", words.join(" "))
        }
    };
    match outcome {
        ServedOutcome::Done => format!("the daemon did for the agent: {what}"),
        ServedOutcome::Denied(why) => format!("the daemon refused the agent: {what}: {why}"),
        ServedOutcome::Failed(why) => {
            format!("the daemon could not do for the agent: {what}: {why}")
        }
        ServedOutcome::Unknown => format!("the agent ended while the daemon was to: {what}"),
    }
}

/// The commands and paths of a request, as the policy read them.
pub(crate) fn about(call: &Value) -> impl Iterator<Item = Piece> {
    let parts = [("runs", "commands"), ("mcp", "mcp"), ("path", "paths")];
    parts.into_iter().flat_map(move |(word, member)| {
        let texts = call[member].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(move |it| Piece::Line { word, text: it.to_owned() })
    })
}

/// What an agent printed last, before it ended.
pub(crate) fn last_lines(stderr: &str) -> Vec<&str> {
    const LINES_MAX: usize = 5;
    let lines: Vec<&str> = stderr.lines().collect();
    let tail = lines.len().saturating_sub(LINES_MAX);
    lines[tail..].to_vec()
}

/// A tool call, as far as it is known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tool {
    pub title: String,
    pub kind: String,
}

/// The tool calls of a session by their ids.
#[derive(Debug, Default)]
pub(crate) struct Tools(BTreeMap<String, Tool>);

impl Tools {
    /// What is known of a call, put together with what is said of it now.
    pub(crate) fn learn(&mut self, call: &Value) -> Tool {
        let tool = self.0.entry(text(call, "toolCallId").to_owned()).or_default();
        for (known, said) in [(&mut tool.title, "title"), (&mut tool.kind, "kind")] {
            let said = text(call, said);
            if !said.is_empty() {
                said.clone_into(known);
            }
        }
        tool.clone()
    }
}

/// The names of the options of each ask, by number and id.
#[derive(Debug, Default)]
pub(crate) struct Options(BTreeMap<(u64, String), String>);

impl Options {
    /// Keeps what can be chosen, for when it is answered.
    pub(crate) fn learn(&mut self, asked: &UserAsked<Value>) {
        for option in asked.frame["params"]["options"].as_array().into_iter().flatten() {
            let (id, name) = (text(option, "optionId"), text(option, "name"));
            self.0.insert((asked.ask, id.to_owned()), name.to_owned());
        }
    }

    /// What was answered, in the words of the one who asked.
    pub(crate) fn chosen<'a>(&'a self, answered: &'a UserAnswered<Value>) -> &'a str {
        let answer = &answered.answer;
        let result = &answer["result"];
        match (text(answer, "void"), text(&result["outcome"], "optionId")) {
            ("", "") if result["action"].is_string() => text(result, "action"),
            ("", "") => "no option chosen",
            ("", option) => {
                self.0.get(&(answered.ask, option.to_owned())).map_or(option, String::as_str)
            }
            (void, _) => void,
        }
    }
}
